#include "gateway/fleet/flap_history.h"

#include <algorithm>

#include "base/strings.h"

namespace hive::fleet {

namespace {

// Enough to stay above every limit; more need not be remembered.
constexpr std::size_t max_connections = 24;
constexpr std::size_t max_addresses = 4;

}  // namespace

void FlapHistory::add(const std::string& address, bool replaces, SteadyTime now, WallTime wall_now) {
  expire(now);
  if (connections_.size() == max_connections) connections_.erase(connections_.begin());
  connections_.push_back({now, address, replaces});
  bool contested = count_returns() >= contested_returns;
  if (!contested && connections_.size() < flapping_connections) return;
  auto next = std::make_shared<Flapping>();
  // It is flapping since the first of the connections by which it is.
  next->since = flapping_ != nullptr
                    ? flapping_->since
                    : wall_now - std::chrono::duration_cast<WallTime::duration>(now - connections_.front().at);
  next->connections = static_cast<std::uint32_t>(connections_.size());
  next->contested = contested || (flapping_ != nullptr && flapping_->contested);
  for (auto each = connections_.rbegin(); each != connections_.rend(); ++each) {
    bool is_known = std::ranges::find(next->addresses, each->address) != next->addresses.end();
    if (!is_known && next->addresses.size() < max_addresses) next->addresses.push_back(each->address);
  }
  flapping_ = std::move(next);
}

// A takes the place from B that B took from A.
std::size_t FlapHistory::count_returns() const {
  std::size_t returns = 0;
  for (std::size_t i = 2; i < connections_.size(); ++i) {
    if (connections_[i].replaces && connections_[i].address == connections_[i - 2].address &&
        connections_[i].address != connections_[i - 1].address) {
      ++returns;
    }
  }
  return returns;
}

void FlapHistory::expire(SteadyTime now) {
  std::erase_if(connections_, [now](const Connection& connection) { return now - connection.at >= window; });
}

bool FlapHistory::settle(SteadyTime now) {
  if (flapping_ == nullptr) return false;
  expire(now);
  // Not at the limit itself, or it would be told as an end and a beginning.
  if (connections_.size() > flapping_connections / 2) return false;
  flapping_ = nullptr;
  return true;
}

std::optional<std::string> FlapHistory::take_news(SteadyTime now) {
  if (flapping_ == nullptr || (told_at_ && now - *told_at_ < news_interval)) return std::nullopt;
  told_at_ = now;
  auto replaced = std::ranges::count_if(connections_, &Connection::replaces);
  // More are not remembered.
  bool is_full = flapping_->connections == max_connections;
  std::string text = fmt::format("{}{} connections within {} minutes, since {}, from {}", is_full ? "at least " : "",
                                 flapping_->connections, window.count(), format_rfc3339(flapping_->since),
                                 join(flapping_->addresses, ", "));
  if (flapping_->contested) return text + "; they replace each other: is one key used on two machines?";
  if (replaced > 0) text += fmt::format("; {} of them replaced one that stood", replaced);
  return text;
}

}  // namespace hive::fleet
