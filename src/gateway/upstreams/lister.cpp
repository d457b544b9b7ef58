#include "gateway/upstreams/lister.h"

#include "base/strings.h"
#include "base/utf8.h"
#include "protocol/json.h"

namespace hive::upstreams {

namespace {

constexpr std::size_t max_notes = 8;
constexpr std::int64_t method_not_found = -32601;

std::optional<std::int64_t> error_code(std::string_view raw_error) {
  auto members = json::parse_object(raw_error).value_or(std::vector<json::Member>());
  auto code = json::find(members, "code");
  return code ? json::decode_integer(*code) : std::nullopt;
}

std::string error_message(std::string_view raw_error) {
  auto members = json::parse_object(raw_error).value_or(std::vector<json::Member>());
  auto message = json::find(members, "message");
  std::string text = message ? json::decode_string(*message).value_or("") : "";
  return std::string(utf8::truncate(text, 200));
}

}  // namespace

Lister::Lister(Connection& connection, ItemKind kind, ListingLimits limits, std::chrono::milliseconds timeout,
               Done done)
    : connection_(connection), kind_(kind), limits_(limits), timeout_(timeout), done_(std::move(done)) {}

void Lister::ask(const std::string& cursor) {
  ConnectionRequest request;
  request.method = list_method(kind_);
  if (!cursor.empty()) request.params = R"({"cursor":)" + json::encode_string(cursor) + "}";
  request.timeout = timeout_;
  request.done = [weak = weak_from_this()](Reply reply) {
    if (auto self = weak.lock()) self->take(std::move(reply));
  };
  connection_.request(std::move(request));
}

void Lister::take(Reply reply) {
  switch (reply.kind) {
    case ReplyKind::result: {
      Result<ListingPage> page = parse_listing_page(kind_, reply.body, limits_);
      return page ? take_page(*std::move(page)) : finish(std::unexpected(page.error()));
    }
    case ReplyKind::error:
      // Declared and not there: nothing is offered.
      if (error_code(reply.body) == method_not_found) return finish(std::move(listed_));
      return finish(fail(ErrorCode::unavailable, "{}: the server says: {}", list_method(kind_),
                         quote(error_message(reply.body))));
    default:
      return finish(fail(ErrorCode::unavailable, "{}: {}", list_method(kind_),
                         reply.detail.empty() ? reply.reason : reply.detail));
  }
}

void Lister::take_page(ListingPage page) {
  left_out_ += page.left_out_count;
  for (std::string& note : page.left_out) {
    if (listed_.notes.size() < max_notes) listed_.notes.push_back(std::move(note));
  }
  bool is_full = false;
  for (ListedItem& item : page.items) {
    std::size_t size = item.name.size() + item.raw.size();
    is_full = listed_.items.size() >= limits_.max_items || bytes_ + size > limits_.max_bytes;
    if (is_full) break;
    if (!names_.insert(item.name).second) {
      ++left_out_;
      if (listed_.notes.size() < max_notes) {
        listed_.notes.push_back(fmt::format("{} is listed twice; the first one counts", quote(item.name)));
      }
      continue;
    }
    bytes_ += size;
    listed_.items.push_back(std::move(item));
  }
  bool is_endless = ++pages_ >= limits_.max_pages && !page.next_cursor.empty();
  bool is_circle = !page.next_cursor.empty() && !cursors_.insert(page.next_cursor).second;
  if (is_full || is_endless || is_circle) {
    listed_.notes.insert(
        listed_.notes.begin(),
        fmt::format("{}: {}; what came later is left out", list_method(kind_),
                    is_circle ? "the server repeats itself"
                    : is_full ? fmt::format("more than {} entries or {} bytes", limits_.max_items, limits_.max_bytes)
                              : fmt::format("more than {} pages", limits_.max_pages)));
  } else if (!page.next_cursor.empty()) {
    return ask(page.next_cursor);
  }
  if (left_out_ > listed_.notes.size()) {
    listed_.notes.push_back(fmt::format("{}: {} entries are left out", list_method(kind_), left_out_));
  }
  finish(std::move(listed_));
}

void Lister::finish(Result<Listed> result) {
  if (done_) std::exchange(done_, nullptr)(std::move(result));
}

}  // namespace hive::upstreams
