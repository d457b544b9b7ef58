#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cli/context.h"

namespace hive::cli {

/// The worse of two ends of calls for many agents: what is not known to have ended is worse than what went wrong, which
/// is worse than what did not run.
ExitCode worse_of(ExitCode left, ExitCode right);

/// Prints the results of a call of many agents as they come.
class FanOutReport {
 public:
  struct Style {
    bool group = false;           ///< nothing but each output once, at the end
    std::size_t agent_width = 0;  ///< of the column of agents
  };

  FanOutReport(Context& context, Style style);
  ~FanOutReport();
  FanOutReport(const FanOutReport&) = delete;
  FanOutReport& operator=(const FanOutReport&) = delete;

  /// The data of one event of the stream: "start", "result" or "end". What is not understood is ignored, as a newer
  /// gateway may say more.
  void take(std::string_view event, std::string_view data);

  /// Prints the groups and a line that sums it up; returns the exit code. A stream without an end leaves it open what
  /// became of the agents that are missing.
  ExitCode finish();
  /// The same for a stream that was given up by Ctrl-C.
  ExitCode interrupted();

 private:
  void take_result(std::string_view data);
  void print_line(std::string_view agent, std::string_view outcome, std::string_view time, std::string_view text);
  void print_groups();
  void draw_bar();
  void clear_bar();
  [[nodiscard]] std::string summary() const;

  Context& context_;
  const Style style_;
  const bool draws_;  // on a terminal
  std::size_t agents_ = 0;
  std::size_t left_out_ = 0;
  std::size_t ended_ = 0;
  std::size_t succeeded_ = 0;
  std::map<std::string, std::size_t> counts_;  // by outcome
  // The agents by outcome, reason and output.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> groups_;
  std::string id_;
  std::string stopped_by_;
  std::int64_t duration_us_ = 0;
  ExitCode worst_ = ExitCode::success;
  bool has_ended_ = false;
  bool bar_shown_ = false;
};

}  // namespace hive::cli
