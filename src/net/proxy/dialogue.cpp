#include "net/proxy/dialogue.h"

#include "net/proxy/http_connect.h"
#include "net/proxy/socks5.h"

namespace hive::net::proxy {

Result<std::unique_ptr<Dialogue>> Dialogue::begin(const config::ProxyAddress& proxy, std::string_view host,
                                                  std::uint16_t port) {
  // A zone names one of our own interfaces.
  if (host.contains('%')) {
    return fail(ErrorCode::invalid_argument, "proxy {}: an address with a zone cannot be reached through a proxy",
                proxy.to_string());
  }
  if (proxy.scheme == config::ProxyScheme::http) return begin_http_connect(proxy, host, port);
  return begin_socks5(proxy, host, port);
}

Result<std::size_t> Dialogue::feed(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && !finished_) {
    // The next question is not sent yet, so nothing can be its answer.
    if (!output_.empty()) return failed(ErrorCode::unavailable, "answers before it is asked");
    if (++taken_ > max_answer_bytes) {
      return failed(ErrorCode::resource_exhausted,
                    fmt::format("answers with more than {} bytes; {}", max_answer_bytes, progress()));
    }
    TRY(take(bytes[used++]));
  }
  return used;
}

Error Dialogue::ended() const {
  return failed(ErrorCode::unavailable, fmt::format("closed the connection; {}", progress())).error();
}

std::unexpected<Error> Dialogue::failed(ErrorCode code, std::string_view message) const {
  return fail(code, "proxy {} {}", proxy_, message);
}

}  // namespace hive::net::proxy
