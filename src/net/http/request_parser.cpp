#include "net/http/request_parser.h"

#include <algorithm>
#include <optional>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "base/strings.h"
#include "net/http/ascii.h"
#include "net/http/head_scanner.h"
#include "net/http/target.h"

namespace hive::net::http {

namespace beast = boost::beast;
using BeastError = beast::http::error;

namespace {

constexpr std::size_t max_leading_empty_lines = 2;  // RFC 9112 section 2.2 asks for at least one
constexpr std::size_t max_body_reservation = 65536;
constexpr std::size_t max_chunk_extension_bytes = 256;

/// Whether the comma-separated list `value` contains `token`.
bool list_contains(std::string_view value, std::string_view token) {
  return std::ranges::any_of(split(value, ','),
                             [&](std::string_view item) { return equal_ignoring_case(trim(item), token); });
}

bool has_bare_line_feed(std::string_view text) {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return true;
  }
  return false;
}

Refusal refusal_for(const beast::error_code& error) {
  if (error == BeastError::body_limit) return {413, "body_too_large", "the request body is larger than accepted"};
  if (error == BeastError::header_limit) return {431, "head_too_large", "the request head is larger than accepted"};
  if (error == BeastError::bad_version) {
    return {505, "unsupported_version", "the request line does not end with HTTP/1.1 or HTTP/1.0"};
  }
  if (error == BeastError::bad_method) return {400, "bad_request", "the request method is malformed"};
  if (error == BeastError::bad_target) return {400, "bad_request", "the request target is malformed"};
  if (error == BeastError::bad_field) return {400, "bad_request", "a header name is malformed"};
  if (error == BeastError::bad_value) return {400, "bad_request", "a header value is malformed"};
  if (error == BeastError::bad_content_length || error == BeastError::multiple_content_length) {
    return {400, "bad_request", "Content-Length is not one plain decimal number, or stands beside Transfer-Encoding"};
  }
  if (error == BeastError::bad_transfer_encoding) {
    return {400, "bad_request", "Transfer-Encoding is repeated or stands beside Content-Length"};
  }
  if (error == BeastError::bad_chunk || error == BeastError::bad_chunk_extension) {
    return {400, "bad_request", "a chunk of the request body is malformed"};
  }
  return {400, "bad_request", "the request is malformed"};
}

}  // namespace

class RequestParser::Reader {
 public:
  explicit Reader(const ParserLimits& limits) : limits_(limits) { reset(); }

  std::size_t feed(std::string_view data) {
    std::size_t used = 0;
    if (state_ == State::head) used = feed_head(data);
    if (state_ == State::body) used += feed_body(data.substr(used));
    return used;
  }

  void reset() {
    parser_.emplace(*this);
    parser_->header_limit(static_cast<std::uint32_t>(limits_.max_header_bytes));
    parser_->body_limit(limits_.max_body_bytes);
    scanner_ = HeadScanner();
    state_ = State::head;
    begun_ = false;
    leading_empty_lines_ = 0;
    raw_target_.clear();
    has_content_length_ = has_transfer_encoding_ = false;
    host_count_ = 0;
    http_1_0_ = closes_ = keeps_alive_token_ = false;
    expects_continue_ = false;
    refusal_ = {};
    request_.reset();
  }

  State state_ = State::head;
  bool begun_ = false;
  bool http_1_0_ = false;
  bool closes_ = false;
  bool keeps_alive_token_ = false;
  bool expects_continue_ = false;
  Refusal refusal_;
  std::shared_ptr<Request> request_;

 private:
  class Grammar final : public beast::http::basic_parser<true> {
   public:
    explicit Grammar(Reader& reader) : reader_(reader) {}

   private:
    static std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

    void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                         beast::error_code& error) override {
      error = {};
      reader_.on_request_line(view(method), view(target), version);
    }
    void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
    void on_field_impl(beast::http::field known, beast::string_view name, beast::string_view value,
                       beast::error_code& error) override {
      error = {};
      reader_.on_field(known, view(name), view(value));
    }
    void on_header_impl(beast::error_code& error) override { error = {}; }
    void on_body_init_impl(const boost::optional<std::uint64_t>& size, beast::error_code& error) override {
      error = {};
      if (size) {
        reader_.request_->body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(*size, max_body_reservation)));
      }
    }
    std::size_t on_body_impl(beast::string_view piece, beast::error_code& error) override {
      error = {};
      reader_.request_->body.append(piece.data(), piece.size());
      return piece.size();
    }
    void on_chunk_header_impl(std::uint64_t, beast::string_view extensions, beast::error_code& error) override {
      error = {};
      if (extensions.size() > max_chunk_extension_bytes) error = BeastError::bad_chunk_extension;
    }
    std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view piece, beast::error_code& error) override {
      return on_body_impl(piece, error);
    }
    void on_finish_impl(beast::error_code& error) override { error = {}; }

    Reader& reader_;
  };

  void refuse(unsigned status, std::string_view code, std::string_view detail) {
    if (state_ == State::failed) return;
    state_ = State::failed;
    refusal_ = {status, std::string(code), std::string(detail)};
  }

  std::size_t feed_head(std::string_view data) {
    std::size_t skipped = 0;
    while (!begun_ && data.substr(skipped).starts_with("\r\n")) {
      if (++leading_empty_lines_ > max_leading_empty_lines) {
        refuse(400, "bad_request", "the request begins with empty lines");
        return skipped;
      }
      skipped += 2;
    }
    data.remove_prefix(skipped);
    if (data.empty() || (!begun_ && data == "\r")) return skipped;
    begun_ = true;
    if (data.starts_with("PRI * HTTP/2.0\r\n")) {
      refuse(505, "unsupported_version", "HTTP/2 is not spoken here; use HTTP/1.1");
      return skipped;
    }
    std::optional<std::size_t> head_size = scanner_.scan(data.substr(0, limits_.max_header_bytes));
    if (!head_size) {
      if (!scanner_.error().empty()) {
        refuse(400, "bad_request", scanner_.error());
      } else if (data.size() >= limits_.max_header_bytes) {
        refuse(431, "head_too_large",
               fmt::format("the request head is larger than {} bytes", limits_.max_header_bytes));
      }
      return skipped;
    }
    request_ = std::make_shared<Request>();
    request_->headers.reserve(8);
    beast::error_code error;
    parser_->eager(false);
    parser_->put({data.data(), *head_size}, error);
    if (error) {
      refuse_beast(error);
    } else if (!parser_->is_header_done()) {
      refuse(400, "bad_request", "the request head is malformed");
    } else {
      finish_head();
    }
    return skipped + *head_size;
  }

  std::size_t feed_body(std::string_view data) {
    std::size_t used = 0;
    parser_->eager(true);
    while (state_ == State::body && used < data.size()) {
      beast::error_code error;
      std::string_view rest = data.substr(used);
      std::size_t count = parser_->put({rest.data(), rest.size()}, error);
      used += count;
      if (parser_->is_done()) {
        state_ = State::complete;
      } else if (error == BeastError::need_more) {
        // Only a chunk's framing waits for more; it must fit in what a head may have, and is text with lines like it.
        if (has_bare_line_feed(data.substr(used))) {
          refuse(400, "bad_request", "a line of a chunk ends with a bare line feed");
        } else if (data.size() - used >= limits_.max_header_bytes) {
          refuse(400, "bad_request", "the framing of a chunk is larger than accepted");
        }
        break;
      } else if (error) {
        refuse_beast(error);
      }
    }
    return used;
  }

  void refuse_beast(const beast::error_code& error) {
    Refusal refusal = refusal_for(error);
    if (error == BeastError::body_limit) {
      refusal.detail = fmt::format("the request body is larger than {} bytes", limits_.max_body_bytes);
    }
    refuse(refusal.status, refusal.code, refusal.detail);
  }

  void on_request_line(std::string_view method, std::string_view target, int version) {
    request_->method = method;
    raw_target_ = target;
    http_1_0_ = version == 10;
  }

  void on_field(beast::http::field known, std::string_view name, std::string_view value) {
    using beast::http::field;
    if (state_ != State::head) return;  // a trailer: checked by the grammar, used by nobody
    if (request_->headers.size() >= limits_.max_header_fields) {
      return refuse(431, "head_too_large",
                    fmt::format("the request has more than {} header fields", limits_.max_header_fields));
    }
    switch (known) {
      case field::host:
        ++host_count_;
        break;
      case field::connection:
        closes_ = closes_ || list_contains(value, "close");
        keeps_alive_token_ = keeps_alive_token_ || list_contains(value, "keep-alive");
        break;
      case field::content_length:
        if (has_content_length_ || !std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; })) {
          return refuse(400, "bad_request", "Content-Length is repeated or not one plain decimal number");
        }
        has_content_length_ = true;
        break;
      case field::transfer_encoding:
        if (!equal_ignoring_case(value, "chunked")) {
          return refuse(501, "unsupported_transfer_encoding", "the only Transfer-Encoding accepted is \"chunked\"");
        }
        has_transfer_encoding_ = true;
        break;
      case field::expect:
        if (!equal_ignoring_case(value, "100-continue")) {
          return refuse(417, "unsupported_expectation", "the only expectation accepted is \"100-continue\"");
        }
        expects_continue_ = true;
        break;
      default:
        break;
    }
    request_->headers.emplace_back(to_lower(name), std::string(value));
  }

  void finish_head() {
    if (state_ == State::failed) return;
    if (raw_target_.size() > limits_.max_target_bytes) {
      return refuse(414, "target_too_long",
                    fmt::format("the request target is longer than {} bytes", limits_.max_target_bytes));
    }
    if (has_transfer_encoding_ && http_1_0_) {
      return refuse(400, "bad_request", "Transfer-Encoding is not part of HTTP/1.0");
    }
    if (host_count_ > 1 || (host_count_ == 0 && !http_1_0_)) {
      return refuse(400, "bad_request",
                    host_count_ == 0 ? "the Host header is missing" : "the Host header is repeated");
    }
    Result<Target> target = parse_target(raw_target_, request_->method);
    if (!target) return refuse(400, "bad_request", target.error().message);
    request_->path = std::move(target->path);
    request_->query = std::move(target->query);
    if (!target->authority.empty()) {
      std::erase_if(request_->headers, [](const auto& header) { return header.first == "host"; });
      request_->headers.emplace_back("host", std::move(target->authority));
    }
    if (http_1_0_) expects_continue_ = false;  // RFC 9110 section 10.1.1
    state_ = parser_->is_done() ? State::complete : State::body;
  }

  ParserLimits limits_;
  std::optional<Grammar> parser_;
  HeadScanner scanner_;
  std::size_t leading_empty_lines_ = 0;
  std::string raw_target_;
  bool has_content_length_ = false;
  bool has_transfer_encoding_ = false;
  int host_count_ = 0;
};

RequestParser::RequestParser(const ParserLimits& limits) : reader_(std::make_unique<Reader>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

std::size_t RequestParser::feed(std::string_view data) {
  return reader_->feed(data);
}

void RequestParser::reset() {
  reader_->reset();
}

RequestParser::State RequestParser::state() const {
  return reader_->state_;
}

bool RequestParser::has_begun() const {
  return reader_->begun_;
}

const Refusal& RequestParser::refusal() const {
  return reader_->refusal_;
}

std::size_t RequestParser::body_size() const {
  return reader_->request_ ? reader_->request_->body.size() : 0;
}

bool RequestParser::is_http_1_0() const {
  return reader_->http_1_0_;
}

bool RequestParser::keeps_alive() const {
  if (reader_->closes_) return false;
  return !reader_->http_1_0_ || reader_->keeps_alive_token_;
}

bool RequestParser::expects_continue() const {
  return reader_->expects_continue_;
}

std::shared_ptr<Request> RequestParser::take() {
  return std::move(reader_->request_);
}

}  // namespace hive::net::http
