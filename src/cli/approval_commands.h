#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/context.h"

namespace hive::cli {

/// `myrmex approvals list`.
ExitCode run_approvals_list(Context& context, bool all);

/// `myrmex approvals show`. Ids may be cut to a beginning of at least four digits that no other request has.
ExitCode run_approvals_show(Context& context, const std::string& id);

enum class ApprovalDecision { approve, reject, withdraw };

struct DecideOptions {
  std::string id;
  std::string digest;  ///< what must be decided about; empty: what is shown
  std::string comment;
  bool yes = false;  ///< without a question
};

/// `myrmex approvals approve`, `deny` and `withdraw`. What is sent carries the digest of what was shown, so that
/// nothing else can be approved.
ExitCode run_approvals_decide(Context& context, ApprovalDecision decision, const DecideOptions& options);

struct ResultOptions {
  std::string id;
  /// nullopt: ask once. Zero: wait until the request has ended.
  std::optional<std::chrono::milliseconds> wait;
  bool raw = false;
};

/// `myrmex approvals result`: prints what the call answered, and ends as `call` would.
ExitCode run_approvals_result(Context& context, const ResultOptions& options);

/// The value of `--wait` or `--wait=SECONDS`: zero where no number is given.
Result<std::chrono::milliseconds> parse_wait(const std::string& text);

}  // namespace hive::cli
