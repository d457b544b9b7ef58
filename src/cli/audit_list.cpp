#include "cli/audit_list.h"

#include <cstdio>

#include <unistd.h>

#include "base/strings.h"
#include "cli/audit_files.h"
#include "cli/exit_code.h"
#include "cli/json_fields.h"
#include "cli/json_text.h"
#include "cli/url_text.h"
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

/// The newest entry last.
Result<std::string> page_table(const audit::Page& page, const std::string& source, std::size_t width, bool color) {
  Table table({"SEQ", "TIME", "KIND", "PRINCIPAL", "ACTION", "TARGET", "OUTCOME", "REMARK"});
  for (auto line = page.entries.rbegin(); line != page.entries.rend(); ++line) {
    audit::EntryView entry = TRY_CONTEXT(source, audit::EntryView::parse(*line));
    table.add({std::to_string(entry.seq()), entry.text(audit::Field::time), entry.text(audit::Field::kind),
               entry.text(audit::Field::principal), entry.text(audit::Field::action), what_of(entry),
               entry.text(audit::Field::outcome), cut_to_width(remark_of(entry), widest_remark)});
  }
  return table.render(width, color);
}

std::string older_entries(std::uint64_t before_seq) {
  return fmt::format("older entries: --before {}", before_seq);
}

std::string audit_path(const audit::Query& query) {
  std::string path = fmt::format("/api/audit?limit={}", query.limit);
  auto add = [&path](std::string_view name, std::string_view value) {
    if (!value.empty()) path += fmt::format("&{}={}", name, percent_encoded(value));
  };
  add("actor", query.principal);
  add("agent", query.agent);
  add("tool", query.tool);
  add("action", query.action);
  add("call_id", query.call_id);
  add("request_id", query.request_id);
  add("reason", query.reason);
  add("outcome", query.outcome ? protocol::to_string(*query.outcome) : "");
  add("since", query.since);
  add("until", query.until);
  if (query.before_seq) path += fmt::format("&before={}", *query.before_seq);
  return path;
}

Result<audit::Page> parse_page(std::string_view body) {
  JsonFields fields = TRY(JsonFields::parse(body, "page of the audit log"));
  audit::Page page;
  for (std::string_view entry : fields.elements("entries"))
    page.entries.emplace_back(entry);
  if (auto before = json::decode_integer(fields.raw("next_before")); before && *before > 0) {
    page.before_seq = static_cast<std::uint64_t>(*before);
  }
  return page;
}

}  // namespace

int run_audit_list(const std::string& log, const audit::Query& query, const OutputOptions& format) {
  auto page = audit::read_entries(log, query);
  if (!page) return report_error(page.error());
  if (format.json) {
    std::fputs(page_json(*page).c_str(), stdout);
    return static_cast<int>(ExitCode::success);
  }
  auto table = page_table(*page, log, Output(STDOUT_FILENO, STDERR_FILENO).width(), format.color);
  if (!table) return report_error(table.error());
  std::fputs(table->c_str(), stdout);
  std::fputs("not verified; run myrmex audit verify\n", stderr);
  if (page->before_seq) std::fputs((older_entries(*page->before_seq) + "\n").c_str(), stderr);
  return static_cast<int>(ExitCode::success);
}

ExitCode run_audit_list_of_gateway(Context& context, const audit::Query& query) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto body = gateway->get_json(audit_path(query));
  if (!body) return context.fail_with(body.error());
  auto page = parse_page(*body);
  if (!page) return context.fail_with({ExitCode::error, page.error().message});
  if (context.format.json) {
    context.output.write(json_for_terminal(page_json(*page)));
    return ExitCode::success;
  }
  auto table = page_table(*page, "the gateway's audit log", context.output.width(), context.format.color);
  if (!table) return context.fail_with({ExitCode::error, escape_for_terminal(table.error().message)});
  context.output.write(*table);
  if (page->before_seq) context.output.note(older_entries(*page->before_seq));
  return ExitCode::success;
}

}  // namespace hive::cli
