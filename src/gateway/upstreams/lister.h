#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gateway/upstreams/catalog.h"
#include "gateway/upstreams/connection.h"

/// Private to this room.
namespace hive::upstreams {

/// Everything of one kind that a server lists, page by page, within the limits. On the connection's worker.
class Lister : public std::enable_shared_from_this<Lister> {
 public:
  struct Listed {
    std::vector<ListedItem> items;
    std::vector<std::string> notes;  ///< what was left out and why
  };
  using Done = std::move_only_function<void(Result<Listed>)>;

  /// `connection` is used until `done` is called or the lister is gone; whoever ends it drops the lister first.
  Lister(Connection& connection, ItemKind kind, ListingLimits limits, std::chrono::milliseconds timeout, Done done);
  void start() { ask({}); }

 private:
  void ask(const std::string& cursor);
  void take(Reply reply);
  void take_page(ListingPage page);
  void finish(Result<Listed> result);

  Connection& connection_;
  const ItemKind kind_;
  const ListingLimits limits_;
  const std::chrono::milliseconds timeout_;
  Done done_;
  Listed listed_;
  std::set<std::string, std::less<>> names_;
  std::set<std::string> cursors_;  ///< a server that repeats one would be asked for ever
  std::size_t bytes_ = 0;
  std::size_t left_out_ = 0;
  std::size_t pages_ = 0;
};

}  // namespace hive::upstreams
