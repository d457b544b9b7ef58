#include "cli/audit_list.h"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

#include "base/strings.h"
#include "cli/audit_files.h"
#include "cli/exit_code.h"
#include "gateway/audit/entry.h"

namespace hive::cli {

namespace {

// A file or a pipe has no width of its own, and arguments may be very long. JSON has them whole.
constexpr std::size_t widest_remark = 200;

std::string page_json(const audit::Page& page) {
  std::string out = "{\"entries\":[";
  for (size_t i = 0; i < page.entries.size(); ++i)
    out += (i > 0 ? ",\n" : "\n") + page.entries[i];
  out += "]";
  if (page.before_seq) out += fmt::format(",\"before_seq\":{}", *page.before_seq);
  return out += "}\n";
}

std::string what_of(const audit::EntryView& entry) {
  std::string agent = entry.text(audit::Field::agent);
  std::string tool = entry.text(audit::Field::tool);
  if (tool.empty()) return agent;
  return agent.empty() ? tool : agent + "__" + tool;
}

std::string remark_of(const audit::EntryView& entry) {
  std::string reason = entry.text(audit::Field::reason);
  std::string detail = entry.text(audit::Field::detail);
  if (detail.empty() && reason.empty()) return entry.text(audit::Field::arguments);
  if (detail.empty() || reason.empty()) return reason + detail;
  return reason + ": " + detail;
}

}  // namespace

int run_audit_list(const std::string& log, const audit::Query& query, const OutputOptions& format) {
  auto page = audit::read_entries(log, query);
  if (!page) return report_error(page.error());
  if (format.json) {
    std::fputs(page_json(*page).c_str(), stdout);
    return static_cast<int>(ExitCode::success);
  }
  Table table({"SEQ", "TIME", "KIND", "PRINCIPAL", "ACTION", "TARGET", "OUTCOME", "REMARK"});
  std::ranges::reverse(page->entries);
  for (const std::string& line : page->entries) {
    auto entry = audit::EntryView::parse(line);
    if (!entry) return report_error(with_context(std::move(entry).error(), log));
    table.add({std::to_string(entry->seq()), entry->text(audit::Field::time), entry->text(audit::Field::kind),
               entry->text(audit::Field::principal), entry->text(audit::Field::action), what_of(*entry),
               entry->text(audit::Field::outcome), cut_to_width(remark_of(*entry), widest_remark)});
  }
  std::fputs(table.render(Output(STDOUT_FILENO, STDERR_FILENO).width(), format.color).c_str(), stdout);
  std::fputs("not verified; run myrmex audit verify\n", stderr);
  if (page->before_seq) {
    std::fputs(fmt::format("older entries: --before {}\n", *page->before_seq).c_str(), stderr);
  }
  return static_cast<int>(ExitCode::success);
}

}  // namespace hive::cli
