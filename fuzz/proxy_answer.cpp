// What an HTTP or SOCKS proxy answers: never a crash, never more taken than was given, nothing taken once the tunnel
// stands, the same verdict whatever the pieces, and no credentials in an error.
#include <string>

#include "fuzz_target.h"
#include "net/proxy/dialogue.h"

namespace {

using namespace hive;

struct Verdict {
  bool stands = false;
  std::size_t used = 0;
  std::string error;
  bool operator==(const Verdict&) const = default;
};

// Questions that come up are taken as sent at once, so answers in one piece and in many are the same to the dialogue.
Verdict read_answer(const config::ProxyAddress& proxy, std::string_view answer, std::size_t piece) {
  auto begun = net::proxy::Dialogue::begin(proxy, "gateway.example", 2222);
  CHECK(begun.has_value());
  net::proxy::Dialogue& dialogue = **begun;
  CHECK(!dialogue.take_output().empty());
  Verdict verdict;
  while (verdict.used < answer.size() && !dialogue.finished()) {
    std::string_view next = answer.substr(verdict.used, piece);
    Result<std::size_t> used = dialogue.feed(next);
    if (!used) {
      verdict.error = used.error().message;
      // Unless the proxy itself has said it.
      CHECK(answer.contains("hunter2") || !verdict.error.contains("hunter2"));
      CHECK(!verdict.error.contains('\n'));
      return verdict;
    }
    CHECK(*used <= next.size());
    CHECK(*used > 0);
    verdict.used += *used;
    (void)dialogue.take_output();
  }
  CHECK(verdict.used <= net::proxy::max_answer_bytes);
  verdict.stands = dialogue.finished();
  if (!verdict.stands) verdict.error = dialogue.ended().message;
  return verdict;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const config::ProxyAddress proxies[] = {config::parse_proxy("http://me:hunter2@proxy:3128").value(),
                                                 config::parse_proxy("http://proxy:3128").value(),
                                                 config::parse_proxy("socks5h://me:hunter2@proxy:1080").value(),
                                                 config::parse_proxy("socks5h://proxy:1080").value()};
  const config::ProxyAddress& proxy = proxies[data[0] % std::size(proxies)];
  std::string_view answer = fuzz::as_text(data + 1, size - 1);
  Verdict byte_by_byte = read_answer(proxy, answer, 1);
  // Bytes that come before their question are refused, and only whole pieces show that; HTTP has one question.
  if (proxy.scheme == config::ProxyScheme::http) {
    CHECK(read_answer(proxy, answer, 7).stands == byte_by_byte.stands);
    CHECK(read_answer(proxy, answer, answer.size() + 1).stands == byte_by_byte.stands);
  } else {
    (void)read_answer(proxy, answer, answer.size() + 1);
  }
  (void)config::parse_proxy(answer);
  return 0;
}
