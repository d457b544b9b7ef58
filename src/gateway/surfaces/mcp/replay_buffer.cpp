#include "gateway/surfaces/mcp/replay_buffer.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "crypto/random.h"

namespace hive::mcp_surface {

std::string ReplayBuffer::event_id(std::string_view stream, std::uint64_t number) {
  return fmt::format("{}_{}", stream, number);
}

std::string ReplayBuffer::open() {
  std::string name = crypto::random_hex(12);
  streams_[name].opened = ++order_;
  std::size_t ended = 0;
  auto oldest = streams_.end();
  for (auto each = streams_.begin(); each != streams_.end(); ++each) {
    if (!each->second.ended_at) continue;
    ++ended;
    if (oldest == streams_.end() || each->second.opened < oldest->second.opened) oldest = each;
  }
  if (ended > limits_.ended_streams) erase(oldest);
  return name;
}

std::uint64_t ReplayBuffer::append(std::string_view stream, SharedMessage keep, bool is_answer) {
  auto found = streams_.find(stream);
  if (found == streams_.end()) return 0;
  Stream& into = found->second;
  bytes_ += keep->size();
  ++events_;
  std::uint64_t number = ++into.last_number;
  into.events.push_back({{number, std::move(keep)}, ++order_, is_answer});
  shrink();
  return number;
}

void ReplayBuffer::end(std::string_view stream, SteadyTime now) {
  if (auto found = streams_.find(stream); found != streams_.end()) found->second.ended_at = now;
}

void ReplayBuffer::forget_ended_before(SteadyTime time) {
  for (auto each = streams_.begin(); each != streams_.end();) {
    auto next = std::next(each);
    if (each->second.ended_at && *each->second.ended_at < time) erase(each);
    each = next;
  }
}

std::optional<ReplayBuffer::Replay> ReplayBuffer::after(std::string_view event_id) const {
  std::size_t separator = event_id.rfind('_');
  if (separator == std::string_view::npos) return std::nullopt;
  std::string_view stream = event_id.substr(0, separator);
  std::string_view digits = event_id.substr(separator + 1);
  bool is_number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  std::optional<std::int64_t> number = is_number ? parse_int64(digits) : std::nullopt;
  auto found = streams_.find(stream);
  if (!number || found == streams_.end()) return std::nullopt;
  if (static_cast<std::uint64_t>(*number) > found->second.last_number) return std::nullopt;
  return Replay{std::string(stream), after(stream, static_cast<std::uint64_t>(*number)),
                found->second.ended_at.has_value()};
}

std::vector<ReplayBuffer::Event> ReplayBuffer::after(std::string_view stream, std::uint64_t number) const {
  std::vector<Event> events;
  auto found = streams_.find(stream);
  if (found == streams_.end()) return events;
  for (const Kept& each : found->second.events) {
    if (each.event.number > number) events.push_back(each.event);
  }
  return events;
}

void ReplayBuffer::shrink() {
  while (events_ > limits_.events || bytes_ > limits_.bytes) {
    if (!drop_oldest(false) && !drop_oldest(true)) return;
  }
}

// An answer that is dropped takes its stream with it: who asks for the rest is then told that it is gone.
bool ReplayBuffer::drop_oldest(bool answers) {
  auto oldest = streams_.end();
  std::deque<Kept>::iterator place;
  for (auto each = streams_.begin(); each != streams_.end(); ++each) {
    std::deque<Kept>& events = each->second.events;
    auto first = std::ranges::find(events, answers, &Kept::is_answer);
    if (first == events.end()) continue;
    if (oldest != streams_.end() && first->order > place->order) continue;
    oldest = each;
    place = first;
  }
  if (oldest == streams_.end()) return false;
  if (answers) {
    erase(oldest);
    return true;
  }
  bytes_ -= place->event.message->size();
  --events_;
  oldest->second.events.erase(place);
  return true;
}

void ReplayBuffer::erase(Streams::iterator stream) {
  for (const Kept& each : stream->second.events) {
    bytes_ -= each.event.message->size();
    --events_;
  }
  streams_.erase(stream);
}

}  // namespace hive::mcp_surface
