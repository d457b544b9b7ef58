#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "gateway/audit/entry.h"
#include "gateway/audit/verifier.h"

namespace hive::audit {

/// Counts what the entries of a log tell. Not thread-safe.
class LogStatistics {
 public:
  void add(const EntryView& entry);
  void fill(VerifyReport& report) const;

 private:
  void count(std::map<std::string, std::uint64_t, std::less<>>& counts, const EntryView& entry, Field field);

  std::map<std::string, std::uint64_t, std::less<>> by_kind_;
  std::map<std::string, std::uint64_t, std::less<>> by_outcome_;
  std::unordered_map<std::string, std::uint64_t> open_calls_;  // call id to the entry of its intent
  std::vector<RecoveryNote> recoveries_;
  std::string first_time_;
  std::string last_time_;
};

}  // namespace hive::audit
