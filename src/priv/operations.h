#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "priv/journal.h"
#include "priv/refusal.h"
#include "priv/request.h"
#include "priv/site.h"

namespace hive::priv {

/// What an operation gives back: the JSON object of its result, and what the journal gets beside it.
struct Done {
  std::string result;
  std::vector<std::pair<std::string_view, std::string>> numbers;
};

/// Does one request. The caller is known to be permitted.
Outcome<Done> perform(const Layout& layout, const Settings& settings, Host& host, const Request& request);

/// Makes the flags of a container those of an ephemeral root, after saving what its root held. Idempotent, and cheap
/// when nothing is to do, because it is sent before every start.
Outcome<Done> write_nspawn_flags(const Site& site, const WriteFlagsRequest& request);

/// One request from its line to its answer, both without line end: parses it, asks who may, does it, and writes it
/// down. Never fails: a refusal is an answer too.
class Desk {
 public:
  Desk(const Layout& layout, const Settings& settings, Host& host, Journal& journal)
      : layout_(layout), settings_(settings), host_(host), journal_(journal) {}

  std::string answer(std::string_view line, const PeerIds& peer);

  /// The answer for a request that could not even be read, and its entry in the journal.
  std::string refuse_unread(const Refusal& refusal, const PeerIds& peer);

 private:
  const Layout& layout_;
  const Settings& settings_;
  Host& host_;
  Journal& journal_;
};

std::string ok_answer(std::string_view result);
std::string refusal_answer(const Refusal& refusal);

}  // namespace hive::priv
