// Requests from the network: how the bytes are cut into pieces must not change what they mean.
#include "fuzz_target.h"
#include "net/http/message.h"
#include "net/http/request_parser.h"
#include "net/http/target.h"

namespace {

using namespace hive;
using net::http::RequestParser;

constexpr net::http::ParserLimits limits{
    .max_header_bytes = 2048, .max_target_bytes = 512, .max_header_fields = 20, .max_body_bytes = 4096};

struct Reading {
  RequestParser::State state;
  std::size_t used;
  std::size_t body;
};

Reading read_in_pieces(std::string_view text, std::size_t piece) {
  RequestParser parser(limits);
  std::size_t used = 0;
  std::size_t offered = 0;
  while (offered < text.size() && parser.state() != RequestParser::State::complete &&
         parser.state() != RequestParser::State::failed) {
    offered = std::min(text.size(), offered + piece);
    // A parser that takes less than it got wants to see the rest again, with more behind it.
    std::size_t taken = parser.feed(text.substr(used, offered - used));
    CHECK(taken <= offered - used);
    used += taken;
  }
  CHECK(parser.body_size() <= limits.max_body_bytes);
  return {parser.state(), used, parser.body_size()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 16384) return 0;
  std::string_view text = fuzz::as_text(data, size);
  Reading whole = read_in_pieces(text, text.size() + 1);
  Reading single = read_in_pieces(text, 1);
  if (whole.state == RequestParser::State::complete || single.state == RequestParser::State::complete) {
    CHECK(whole.state == single.state && whole.used == single.used && whole.body == single.body);
  }
  for (std::string_view method : {"GET", "OPTIONS"}) {
    Result<net::http::Target> target = net::http::parse_target(text, method);
    if (target) CHECK(!target->path.contains("/../") && !target->path.contains('\0'));
  }
  return 0;
}
