// What our checker accepts, Boost.JSON must accept as well and read alike: gates and executors must never see two
// meanings in one text.
#include <boost/json/error.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "fuzz_target.h"
#include "protocol/json.h"

namespace {

using namespace hive;

constexpr json::Limits limits{.max_bytes = 65536, .max_depth = 20, .max_values = 2000};

// The value at `raw` against what Boost.JSON read, member by member.
void compare(std::string_view raw, const boost::json::value& value) {
  if (const boost::json::object* object = value.if_object()) {
    Result<std::vector<json::Member>> members = json::parse_object(raw, limits);
    CHECK(members.has_value());
    CHECK(members->size() == object->size());
    CHECK(!json::parse_array(raw, limits).has_value());
    for (const json::Member& member : *members) {
      const boost::json::value* other = object->if_contains(member.key);
      CHECK(other != nullptr);
      CHECK(json::find(*members, member.key) == member.value);
      compare(member.value, *other);
    }
  } else if (const boost::json::array* array = value.if_array()) {
    Result<std::vector<std::string_view>> elements = json::parse_array(raw, limits);
    CHECK(elements.has_value());
    CHECK(elements->size() == array->size());
    for (std::size_t i = 0; i < array->size(); ++i) {
      compare((*elements)[i], array->at(i));
    }
  } else if (const boost::json::string* text = value.if_string()) {
    std::optional<std::string> decoded = json::decode_string(raw);
    CHECK(decoded.has_value());
    CHECK(std::string_view(*decoded) == std::string_view(text->data(), text->size()));
    std::string encoded = json::encode_string(*decoded);
    CHECK(json::validate(encoded, limits.max_bytes < encoded.size() ? json::Limits{} : limits).has_value());
    CHECK(json::decode_string(encoded) == decoded);
  } else if (value.is_bool()) {
    CHECK(json::decode_boolean(raw) == value.get_bool());
  } else if (value.is_null()) {
    CHECK(json::is_null(raw));
  } else {
    std::optional<std::int64_t> number = json::decode_integer(raw);
    if (number && value.is_int64()) CHECK(*number == value.get_int64());
    if (number) CHECK(value.is_int64() || raw == "-0");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::as_text(data, size);
  bool accepted = json::validate(text, limits).has_value();
  CHECK(!(json::parse_object(text, limits).has_value() && !accepted));
  CHECK(!(json::parse_array(text, limits).has_value() && !accepted));
  if (!accepted) return 0;
  boost::json::parse_options options;
  options.max_depth = limits.max_depth + 1;
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(boost::json::string_view(text.data(), text.size()), error, {}, options);
  // A number that no machine type holds is legal JSON and passes through as text; whoever builds it gets this error.
  if (error == boost::json::error::exponent_overflow) return 0;
  CHECK(!error);
  std::size_t start = text.find_first_not_of(" \t\r\n");
  std::size_t end = text.find_last_not_of(" \t\r\n");
  compare(text.substr(start, end - start + 1), value);
  return 0;
}
