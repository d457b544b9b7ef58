#include "cli/fan_out_report.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "cli/call_result.h"
#include "cli/json_fields.h"
#include "cli/json_text.h"

namespace hive::cli {

namespace {

constexpr std::size_t bar_width = 30;
constexpr std::size_t outcome_width = 17;
constexpr std::size_t time_width = 9;

struct Ending {
  std::string outcome;
  std::string reason;
  std::string text;  ///< the output, or why there is none; as it came
  ExitCode code = ExitCode::error;
};

/// Calls that were not begun because others had gone wrong say nothing that those do not say.
ExitCode code_of(std::string_view outcome, std::string_view reason) {
  if (outcome == "approval_required") return ExitCode::pending_approval;
  if (reason == "fan_out_stopped") return ExitCode::success;
  auto known = protocol::outcome_from_string(outcome);
  return known ? exit_code_for(*known, reason) : ExitCode::error;
}

std::string text_of(const JsonFields& fields, std::string_view data, const std::string& outcome,
                    const std::string& reason) {
  if (outcome == "approval_required") {
    return fmt::format("nothing ran yet: myrmex approvals approve {}", fields.text("approval_id"));
  }
  if (std::string message = fields.text("message"); !message.empty()) return message;
  if (fields.number("left_out_bytes") > 0) {
    return fmt::format("[{} bytes of output were not read in time and are left out]", fields.number("left_out_bytes"));
  }
  auto answer = parse_call_answer(data, outcome, reason);
  if (!answer) return "";
  std::string text;
  for (const std::string& block : answer->texts)
    text += block;
  return answer->texts.empty() ? answer->raw_result : text;
}

Result<Ending> ending_of(const JsonFields& fields, std::string_view data) {
  Ending ending;
  ending.outcome = fields.text("outcome");
  ending.reason = fields.text("reason");
  ending.text = text_of(fields, data, ending.outcome, ending.reason);
  ending.code = code_of(ending.outcome, ending.reason);
  return ending;
}

/// The first line that says something, and how many more there are.
std::string first_line_of(std::string_view text) {
  std::string_view shown;
  std::size_t more = 0;
  for (std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    if (shown.empty()) {
      shown = trim(line);
    } else {
      ++more;
    }
  }
  std::string line = escape_for_terminal(shown);
  if (more > 0) line += fmt::format(" (+{} line{})", more, more == 1 ? "" : "s");
  return line;
}

std::string time_text(std::int64_t microseconds) {
  if (microseconds < 1'000'000) return fmt::format("{} ms", (microseconds + 999) / 1000);
  return fmt::format("{:.1f} s", static_cast<double>(microseconds) / 1e6);
}

cli::Style style_of(std::string_view outcome) {
  if (outcome == "success") return cli::Style::good;
  return outcome == "failure" || outcome == "unknown" ? cli::Style::bad : cli::Style::warning;
}

std::string padded(std::string text, std::size_t width) {
  std::size_t shown = display_width(text);
  if (shown < width) text.append(width - shown, ' ');
  return text;
}

}  // namespace

ExitCode worse_of(ExitCode left, ExitCode right) {
  static constexpr std::array order = {ExitCode::success,  ExitCode::pending_approval, ExitCode::unreachable,
                                       ExitCode::denied,   ExitCode::failure,          ExitCode::error,
                                       ExitCode::unsettled};
  return std::ranges::find(order, left) < std::ranges::find(order, right) ? right : left;
}

FanOutReport::FanOutReport(Context& context, Style style)
    : context_(context),
      style_(style),
      draws_(context.output.error_is_terminal() && context.environment("TERM") != "dumb") {}

FanOutReport::~FanOutReport() {
  clear_bar();
}

void FanOutReport::take(std::string_view event, std::string_view data) {
  if (event == "result") return take_result(data);
  if (event != "start" && event != "end") return;
  auto fields = JsonFields::parse(data, "event");
  if (!fields) return;
  id_ = fields->text("fan_out");
  agents_ = static_cast<std::size_t>(std::max<std::int64_t>(fields->number("agents"), 0));
  left_out_ = static_cast<std::size_t>(std::max<std::int64_t>(fields->number("left_out"), 0));
  if (event == "start") return draw_bar();
  has_ended_ = true;
  stopped_by_ = fields->text("stopped_by");
  duration_us_ = fields->number("duration_us");
}

void FanOutReport::take_result(std::string_view data) {
  auto fields = JsonFields::parse(data, "result");
  auto ending = fields ? ending_of(*fields, data) : std::unexpected(fields.error());
  if (!ending) return;
  ++ended_;
  ++counts_[ending->outcome];
  if (ending->code == ExitCode::success) ++succeeded_;
  worst_ = worse_of(worst_, ending->code);
  std::string agent = fields->text("agent");
  if (context_.format.json) {
    clear_bar();
    context_.output.write(json_line(data));
  } else if (style_.group) {
    groups_[{ending->outcome, ending->reason, std::move(ending->text)}].push_back(std::move(agent));
  } else {
    std::string text = first_line_of(ending->text);
    if (!ending->reason.empty()) text += (text.empty() ? "(" : " (") + escape_for_terminal(ending->reason) + ")";
    clear_bar();
    print_line(agent, ending->outcome,
               fields->number("duration_us") == 0 ? "" : time_text(fields->number("duration_us")), text);
  }
  draw_bar();
}

void FanOutReport::print_line(std::string_view agent, std::string_view outcome, std::string_view time,
                              std::string_view text) {
  std::string name = padded(escape_for_terminal(agent), style_.agent_width);
  std::string word = escape_for_terminal(outcome);
  std::size_t gap = word.size() < outcome_width ? outcome_width - word.size() : 0;
  std::string line = fmt::format("{}   {}{} {:>{}}   ", name, styled(word, style_of(outcome), context_.format.color),
                                 std::string(gap, ' '), time, time_width);
  std::size_t taken = display_width(name) + outcome_width + time_width + 7;
  std::size_t width = context_.output.width();
  line += width > taken + 10 ? cut_to_width(text, width - taken) : std::string(text);
  line.resize(line.find_last_not_of(' ') + 1);
  context_.output.write(line + "\n");
}

void FanOutReport::print_groups() {
  std::vector<const decltype(groups_)::value_type*> order;
  for (const auto& group : groups_)
    order.push_back(&group);
  std::ranges::stable_sort(order, std::ranges::greater(), [](const auto* group) { return group->second.size(); });
  for (const auto* group : order) {
    const auto& [outcome, reason, text] = group->first;
    std::vector<std::string> agents = group->second;
    std::ranges::sort(agents);
    context_.output.write(fmt::format("--- {} ({}): {}{}\n", escape_for_terminal(join(agents, ", ")), agents.size(),
                                      styled(escape_for_terminal(outcome), style_of(outcome), context_.format.color),
                                      reason.empty() ? "" : " (" + escape_for_terminal(reason) + ")"));
    std::string shown = text_for_terminal(text);
    if (!shown.empty() && !shown.ends_with('\n')) shown += '\n';
    context_.output.write(shown);
  }
}

void FanOutReport::draw_bar() {
  if (!draws_ || agents_ == 0) return;
  std::size_t filled = bar_width * std::min(ended_, agents_) / agents_;
  std::string text =
      fmt::format("[{}{}] {}/{}", std::string(filled, '#'), std::string(bar_width - filled, ' '), ended_, agents_);
  if (ended_ > succeeded_) text += fmt::format(", {} not successful", ended_ - succeeded_);
  context_.output.status(text);
  bar_shown_ = true;
}

void FanOutReport::clear_bar() {
  if (std::exchange(bar_shown_, false)) context_.output.status("");
}

std::string FanOutReport::summary() const {
  std::string text = fmt::format("{} agent{}: ", agents_, agents_ == 1 ? "" : "s");
  std::vector<std::string> parts;
  for (const auto& [outcome, count] : counts_)
    parts.push_back(fmt::format("{} {}", count, escape_for_terminal(outcome)));
  text += parts.empty() ? "nothing heard" : join(parts, ", ");
  if (has_ended_) text += " in " + time_text(duration_us_);
  if (stopped_by_ == "fan_out_stopped") text += "; stopped after errors (--stop-after)";
  if (stopped_by_ == "fan_out_deadline") text += "; the deadline had passed (--deadline)";
  if (stopped_by_ == "draining") text += "; the gateway is stopping";
  if (left_out_ > 0) {
    text += fmt::format("; {} more {} offline and left out (--offline asks them too)", left_out_,
                        left_out_ == 1 ? "is" : "are");
  }
  if (!id_.empty()) text += "; request " + escape_for_terminal(id_);
  return text;
}

ExitCode FanOutReport::finish() {
  clear_bar();
  print_groups();
  if (!has_ended_) {
    context_.output.note("myrmex: " + summary());
    return context_.fail_with({ExitCode::unsettled,
                               "the gateway ended the stream before all results: what became of the other agents is "
                               "unknown; the audit log will tell"});
  }
  context_.output.note("myrmex: " + summary());
  return worst_;
}

ExitCode FanOutReport::interrupted() {
  clear_bar();
  print_groups();
  context_.output.note("myrmex: " + summary());
  return context_.fail_with({ExitCode::interrupted,
                             "cancelled: the connection is closed, and the gateway ends the calls that run and starts "
                             "no more"});
}

}  // namespace hive::cli
