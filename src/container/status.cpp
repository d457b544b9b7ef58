#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "base/strings.h"
#include "cli/json_text.h"
#include "container/commands.h"
#include "container/conf.h"
#include "container/names.h"
#include "container/priv_client.h"
#include "container/unit.h"
#include "protocol/json.h"

namespace hive::container {

namespace {

struct View {
  std::string name;
  UnitState unit;
  std::string address;
  bool ephemeral = false;
  std::string problem;  ///< of the configuration
  size_t kept_roots = 0;
};

size_t count_kept_roots(const std::string& name, const Layout& layout) {
  size_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(layout.roots(), error), end; !error && at != end; at.increment(error)) {
    count += at->path().filename().string().starts_with(name + ".pre-ephemeral-") ? 1 : 0;
  }
  return count;
}

Result<View> look_at(const std::string& name, const Layout& layout) {
  View view{.name = name, .unit = TRY(unit_state(name)), .address = {}, .problem = {}};
  // One broken file must not hide the others.
  if (auto conf = Conf::load(layout.conf(name))) {
    view.address = conf->get("LOCAL_ADDRESS");
    view.ephemeral = conf->is_ephemeral();
  } else {
    view.problem = conf.error().message;
  }
  view.kept_roots = count_kept_roots(name, layout);
  return view;
}

std::string to_json(const View& view) {
  auto number = [](const std::string& text) { return parse_int64(text) ? text : std::string("null"); };
  return fmt::format(
      R"({{"name": {}, "agent": {}, "state": {}, "since": {}, "result": {}, "address": {}, "ephemeral": {}, )"
      R"("memory_bytes": {}, "tasks": {}, "kept_roots": {}, "problem": {}}})",
      json::encode_string(view.name), json::encode_string(agent_of(view.name)), json::encode_string(view.unit.active),
      json::encode_string(view.unit.since), json::encode_string(view.unit.result), json::encode_string(view.address),
      view.ephemeral, number(view.unit.memory), number(view.unit.tasks), view.kept_roots,
      json::encode_string(view.problem));
}

cli::Style style_of(const View& view) {
  if (view.unit.active == "failed" || !view.problem.empty()) return cli::Style::bad;
  return view.unit.is_running() ? cli::Style::good : cli::Style::faint;
}

void print(const Session& session, const View& view) {
  auto line = [&session](std::string_view key, std::string_view value) {
    if (!value.empty()) session.output.write(fmt::format("{:<12}{}\n", key, escape_for_terminal(value)));
  };
  line("container", view.name);
  session.output.write(
      fmt::format("{:<12}{}\n", "state", cli::styled(view.unit.active, style_of(view), session.format.color)));
  line("since", view.unit.since);
  if (view.unit.active == "failed") line("result", view.unit.result);
  line("root", view.ephemeral ? "thrown away at every stop" : "persistent until the next `hive-container start`");
  line("address", view.address);
  line("memory", view.unit.memory.empty() ? "" : view.unit.memory + " bytes");
  line("tasks", view.unit.tasks);
  line("old roots", view.kept_roots == 0 ? "" : fmt::format("{} kept", view.kept_roots));
  line("problem", view.problem);
}

}  // namespace

ExitCode run_list(Session& session) {
  auto names = list_containers(session.layout);
  if (!names) return session.fail_with(names.error());
  std::string array;
  cli::Table table({"CONTAINER", "STATE", "ROOT", "ADDRESS", "OLD ROOTS", "SINCE"});
  for (const std::string& name : *names) {
    auto view = look_at(name, session.layout);
    if (!view) return session.fail_with(view.error());
    array += (array.empty() ? "" : ", ") + to_json(*view);
    table.add({view->name, view->problem.empty() ? view->unit.active : "broken",
               view->ephemeral ? "thrown away" : "persistent", view->address, std::to_string(view->kept_roots),
               view->problem.empty() ? view->unit.since : view->problem});
  }
  if (session.format.json) {
    session.output.write(cli::pretty_json("[" + array + "]"));
  } else if (names->empty()) {
    session.output.write("No containers. Make one with: hive-container create NAME\n");
  } else {
    session.output.write(table.render(session.output.width(), session.format.color));
  }
  return ExitCode::success;
}

ExitCode run_status(Session& session, const std::string& word) {
  auto name = container_of(word);
  if (!name) return session.fail_with(name.error());
  if (::access(session.layout.conf(*name).c_str(), F_OK) != 0) {
    return session.fail_with({ErrorCode::not_found, fmt::format("there is no container {}", *name)});
  }
  auto view = look_at(*name, session.layout);
  if (!view) return session.fail_with(view.error());
  if (session.format.json) {
    session.output.write(cli::pretty_json(to_json(*view)));
  } else {
    print(session, *view);
  }
  return view->unit.is_running() ? ExitCode::success : ExitCode::not_found;
}

ExitCode run_salvages(Session& session, const std::string& word) {
  auto answer = [&]() -> Result<PrivAnswer> {
    return ask_priv(container_request("list_salvages", TRY(container_of(word))), session.layout);
  }();
  if (!answer) return session.fail_with(answer.error());
  if (!answer->ok) {
    if (answer->code == "no_such_container") return session.fail_with({ErrorCode::not_found, answer->message});
    return session.fail_with(
        {ErrorCode::permission_denied, fmt::format("hive-priv refuses ({}): {}", answer->code, answer->message)});
  }
  if (session.format.json) {
    session.output.write(cli::pretty_json(answer->result));
    return ExitCode::success;
  }
  auto members = json::parse_object(answer->result);
  if (!members) return session.fail_with(members.error());
  cli::Table table({"KIND", "SIZE", "FILES", "PATH"});
  auto add = [&](std::string_view key, const char* kind) -> Result<void> {
    for (std::string_view raw : TRY(json::parse_array(json::find(*members, key).value_or("[]")))) {
      const std::vector<json::Member> tree = TRY(json::parse_object(raw));
      auto number = [&](std::string_view name) {
        auto value = json::find(tree, name).and_then(json::decode_integer);
        return value ? std::to_string(*value) : std::string("?");
      };
      table.add({kind, number("bytes"), number("entries"),
                 json::find(tree, "path").and_then(json::decode_string).value_or("")});
    }
    return {};
  };
  for (auto [key, kind] : {std::pair("salvages", "salvage"), std::pair("old_roots", "old root")}) {
    if (auto added = add(key, kind); !added) return session.fail_with(added.error());
  }
  session.output.write(table.render(session.output.width(), session.format.color));
  return ExitCode::success;
}

}  // namespace hive::container
