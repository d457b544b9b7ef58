#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/approval_view.h"
#include "cli/context.h"

namespace hive::cli {

/// Something that happened to a request between two looks at the list.
struct ApprovalEvent {
  std::string_view what;  ///< "new", "vote", "approved", "rejected", "withdrawn", "expired", "ended"
  const ApprovalView* approval;
};

/// Tells what is new in each list. The first list tells of pending requests only: what was decided before is no news.
class ApprovalNews {
 public:
  /// The events refer to `approvals`.
  std::vector<ApprovalEvent> take(const std::vector<ApprovalView>& approvals);

 private:
  struct Seen {
    std::string status;
    std::size_t votes = 0;
    bool has_ended = false;
  };
  std::map<std::string, Seen, std::less<>> seen_;
  bool is_first_ = true;
};

/// `myrmex approvals watch`: prints new requests and what becomes of them until Ctrl-C; with -o json an object a line.
/// A gateway that is away for a while is waited for.
ExitCode run_approvals_watch(Context& context);

}  // namespace hive::cli
