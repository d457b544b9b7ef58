// A configuration that is read keeps its bytes; a key that is set reads back as it was meant, and no other key changes.
#include <string>
#include <vector>

#include "fuzz_target.h"
#include "priv/conf_file.h"

using namespace hive;
using namespace hive::priv;

namespace {

using Assignments = std::vector<std::pair<std::string, std::string>>;

Assignments others(const ConfFile& conf, std::string_view key) {
  Assignments all;
  for (const auto& [name, value] : conf.assignments()) {
    if (name != key) all.emplace_back(name, value);
  }
  return all;
}

}  // namespace

// The text up to the first 0 byte is the file, what follows is a value.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = fuzz::as_text(data, size);
  std::string_view text = input.substr(0, input.find('\0'));
  std::string value(input.substr(std::min(text.size() + 1, input.size())));
  auto conf = ConfFile::parse(text);
  if (!conf) return 0;
  CHECK(conf->text() == text);
  static_cast<void>(conf->nspawn_flags());

  constexpr std::string_view key = "EXTRA_NSPAWN_FLAGS";
  Assignments before = others(*conf, key);
  ConfFile changed = *conf;
  changed.set(key, value);
  auto again = ConfFile::parse(changed.text());
  if (value.find('\0') != std::string::npos || changed.text().size() > ConfFile::max_bytes) return 0;
  CHECK(again.has_value());
  CHECK(again->value(key) == value);
  CHECK(others(*again, key) == before);

  changed.remove(key);
  auto without = ConfFile::parse(changed.text());
  CHECK(without.has_value());
  CHECK(!without->value(key).has_value());
  CHECK(others(*without, key) == before);
  return 0;
}
