#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "base/strings.h"
#include "cli/prompt.h"
#include "container/commands.h"
#include "container/names.h"
#include "container/priv_client.h"
#include "container/program.h"
#include "container/unit.h"
#include "protocol/json.h"

namespace hive::container {

namespace {

/// The container of a word on the command line: checked, and there.
Result<std::string> existing(const std::string& word, const Layout& layout) {
  std::string name = TRY(container_of(word));
  if (::access(layout.conf(name).c_str(), F_OK) != 0) {
    return fail(ErrorCode::not_found, "there is no container {}; `hive-container list` shows them", name);
  }
  return name;
}

/// What a switch did, for people.
void tell_switch(const Session& session, const std::string& name, std::string_view result) {
  auto members = json::parse_object(result);
  if (!members) return;
  auto text_of = [&](std::string_view key) {
    return json::find(*members, key).and_then(json::decode_string).value_or("");
  };
  if (!json::find(*members, "switched").and_then(json::decode_boolean).value_or(false)) return;
  std::string salvage = text_of("salvage_path");
  session.output.note(escape_for_terminal(
      salvage.empty() ? fmt::format("{} has a root that is thrown away at every stop now", name)
                      : fmt::format("{} has a root that is thrown away at every stop now; what was in the old one: {}",
                                    name, salvage)));
  if (text_of("salvage") == "skipped_low_disk") {
    session.output.note("the old root was not copied, because the disk would be too full; it is kept whole: " +
                        escape_for_terminal(text_of("old_root")));
  }
}

/// What goes out before every start: hive-priv writes the flags, and switches an old root when there is one.
Result<void> write_flags(const Session& session, const std::string& name) {
  const Record record = TRY(load_record(name, session.layout));
  const PrivAnswer answer = TRY(ask_priv(flags_request(record, session.layout), session.layout));
  if (!answer.ok) {
    return fail(ErrorCode::permission_denied, "hive-priv refuses to prepare {} ({}): {}", name, answer.code,
                answer.message);
  }
  tell_switch(session, name, answer.result);
  return {};
}

Result<void> start_one(Session& session, const std::string& word) {
  const std::string name = TRY(existing(word, session.layout));
  if (TRY(unit_state(name)).is_running()) return {};
  TRY(write_flags(session, name));
  return start_unit(name);
}

Result<void> stop_one(Session& session, const std::string& word) {
  return stop_unit(TRY(existing(word, session.layout)));
}

/// Does it for all, also when one fails; the exit code is that of the first failure.
template <class Step>
ExitCode for_each(Session& session, const std::vector<std::string>& words, Step step) {
  ExitCode code = ExitCode::success;
  for (const std::string& word : words) {
    auto done = step(session, word);
    if (done) continue;
    ExitCode failed = session.fail_with(done.error());
    if (code == ExitCode::success) code = failed;
  }
  return code;
}

Result<void> remove_all(const std::vector<std::string>& paths) {
  std::vector<std::string> command{"rm", "-rf", "--one-file-system", "--"};
  command.insert(command.end(), paths.begin(), paths.end());
  return must_run(command);
}

}  // namespace

ExitCode Session::fail_with(const Error& error) const {
  output.note("hive-container: " + escape_for_terminal(error.message));
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return ExitCode::usage;
    case ErrorCode::permission_denied:
      return ExitCode::refused;
    case ErrorCode::not_found:
      return ExitCode::not_found;
    case ErrorCode::unavailable:
    case ErrorCode::timed_out:
      return ExitCode::unreachable;
    case ErrorCode::cancelled:
      return ExitCode::cancelled;
    default:
      return ExitCode::error;
  }
}

ExitCode run_create(Session& session, const CreateOptions& options, bool start) {
  auto made = create_container(options, session.layout, [&](const std::string& step) { session.output.note(step); });
  if (!made) return session.fail_with(made.error());
  if (session.format.json) {
    session.output.write(fmt::format("{{\"name\": {}, \"uid\": {}, \"agent\": {}}}\n", json::encode_string(made->name),
                                     made->uid, json::encode_string(made->hive_agent)));
  } else {
    session.output.write(fmt::format("Container {} is there; its agent's user has uid {}, its folders lie in {}.\n",
                                     made->name, made->uid, session.layout.agent(agent_of(made->name))));
    if (!start) session.output.write(fmt::format("Next: hive-container start {}\n", agent_of(made->name)));
  }
  return start ? run_start(session, {made->name}) : ExitCode::success;
}

ExitCode run_start(Session& session, const std::vector<std::string>& names) {
  return for_each(session, names, start_one);
}

ExitCode run_stop(Session& session, const std::vector<std::string>& names) {
  return for_each(session, names, stop_one);
}

ExitCode run_restart(Session& session, const std::vector<std::string>& names) {
  return for_each(session, names, [](Session& each, const std::string& word) -> Result<void> {
    TRY(stop_one(each, word));
    return start_one(each, word);
  });
}

ExitCode run_destroy(Session& session, const DestroyOptions& options) {
  auto destroyed = [&]() -> Result<void> {
    const std::string name = TRY(existing(options.name, session.layout));
    const std::string agent(agent_of(name));
    if (!options.yes) {
      if (!cli::can_ask()) {
        return fail(ErrorCode::invalid_argument, "nothing is destroyed without --yes: this would remove {}", name);
      }
      const std::string answer = TRY(cli::ask_line(
          fmt::format("Remove {} and its root? The agent's folders and kept old roots stay. [y/N] ", name), true, -1));
      if (answer != "y" && answer != "Y" && answer != "yes") return fail(ErrorCode::cancelled, "nothing was destroyed");
    }
    TRY(stop_unit(name));
    // The configuration goes first: without it nothing starts the container any more, wherever this is interrupted.
    TRY(remove_all({session.layout.conf(name)}));
    TRY(remove_all({session.layout.root(name), session.layout.template_root(name), session.layout.unit_drop_ins(name),
                    session.layout.record(name)}));
    TRY(must_run({"systemctl", "daemon-reload"}));
    if (!session.format.json) {
      session.output.write(
          fmt::format("{} is gone. What stays:\n  {}  the agent's folders\n", name, session.layout.agent(agent)));
      std::error_code error;
      for (std::filesystem::directory_iterator at(session.layout.roots(), error), end; !error && at != end;
           at.increment(error)) {
        if (at->path().filename().string().starts_with(name + ".pre-ephemeral-")) {
          session.output.write("  " + escape_for_terminal(at->path().string()) + "  an old root\n");
        }
      }
    } else {
      session.output.write(fmt::format("{{\"destroyed\": {}}}\n", json::encode_string(name)));
    }
    return {};
  }();
  return destroyed ? ExitCode::success : session.fail_with(destroyed.error());
}

ExitCode run_command(Session& session, const RunOptions& options) {
  auto name = existing(options.name, session.layout);
  if (!name) return session.fail_with(name.error());
  auto state = unit_state(*name);
  if (!state) return session.fail_with(state.error());
  if (!state->is_running()) {
    return session.fail_with(
        {ErrorCode::not_found,
         fmt::format("{} does not run; start it with: hive-container start {}", *name, agent_of(*name))});
  }
  // As a unit of the guest: under its limits, its filters and its own root, not with what this process may do.
  std::vector<std::string> command{"/usr/bin/systemd-run",
                                   "--quiet",
                                   "--collect",
                                   "--wait",
                                   "--machine=" + *name,
                                   session.output.is_terminal() && cli::can_ask() ? "--pty" : "--pipe"};
  if (!options.user.empty()) command.push_back("--uid=" + options.user);
  command.emplace_back("--");
  command.insert(command.end(), options.command.begin(), options.command.end());
  return session.fail_with(become_program(command));
}

ExitCode run_logs(Session& session, const LogOptions& options) {
  auto name = existing(options.name, session.layout);
  if (!name) return session.fail_with(name.error());
  std::vector<std::string> command{"/usr/bin/journalctl", fmt::format("--lines={}", options.lines)};
  if (!session.output.is_terminal() || options.follow) command.emplace_back("--no-pager");
  if (options.follow) command.emplace_back("--follow");
  if (session.format.json) command.emplace_back("--output=json");
  if (options.host) {
    command.push_back("--unit=" + unit_of(*name));
  } else {
    command.push_back("--machine=" + *name);
    if (!options.unit.empty()) command.push_back("--unit=" + options.unit);
  }
  return session.fail_with(become_program(command));
}

}  // namespace hive::container
