#include "agent/doctor_report.h"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "base/strings.h"
#include "protocol/document.h"

namespace hive::agent {

namespace {

std::string_view colour_of(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return "32";
    case CheckStatus::warning:
      return "33";
    case CheckStatus::failed:
      return "31";
    case CheckStatus::skipped:
      return "2";
  }
  return "0";
}

std::string painted(std::string_view text, std::string_view code, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace

std::string as_text(const DoctorReport& report, bool colour) {
  std::string text;
  for (const CheckGroup& group : report.groups) {
    if (!text.empty()) text += '\n';
    text += painted(escape_for_terminal(group.title), "1", colour) + '\n';
    for (const Check& check : group.checks) {
      text += painted(fmt::format("{:<7}", to_string(check.status)), colour_of(check.status), colour);
      text += fmt::format("   {:<9}   {}\n", check.name, escape_for_terminal(check.detail));
      if (!check.remedy.empty()) text += fmt::format("{:22}-> {}\n", "", escape_for_terminal(check.remedy));
    }
  }
  return text;
}

std::string as_json(const DoctorReport& report) {
  boost::json::array groups;
  for (const CheckGroup& group : report.groups) {
    boost::json::array checks;
    for (const Check& check : group.checks) {
      boost::json::object object{{"name", check.name}, {"status", to_string(check.status)}, {"detail", check.detail}};
      if (!check.remedy.empty()) object["remedy"] = check.remedy;
      checks.push_back(std::move(object));
    }
    groups.push_back(boost::json::object{{"title", group.title}, {"checks", std::move(checks)}});
  }
  return json::to_pretty_text(boost::json::object{{"ok", report.exit == DoctorExit::healthy},
                                                  {"exit_code", static_cast<int>(report.exit)},
                                                  {"file", report.file},
                                                  {"agent_id", report.agent_id},
                                                  {"groups", std::move(groups)}});
}

}  // namespace hive::agent
