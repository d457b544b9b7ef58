#include "container/unit.h"

#include "base/strings.h"
#include "container/program.h"

namespace hive::container {

namespace {

/// The last line of the unit's journal that a program of ours wrote at the last start.
std::string last_refusal(const std::string& unit) {
  auto text = output_of({"journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=20", "--unit=" + unit});
  if (!text) return {};
  std::string found;
  for (std::string_view line : split(*text, '\n')) {
    if (line.starts_with("check-rootfs: ") || line.starts_with("hive-container-start: ")) found = line;
  }
  return found;
}

}  // namespace

std::string unit_of(std::string_view name) {
  return fmt::format("container@{}.service", name);
}

Result<UnitState> unit_state(std::string_view name) {
  const std::string text =
      TRY(output_of({"systemctl", "show", "--timestamp=utc",
                     "--property=ActiveState,StateChangeTimestamp,Result,MemoryCurrent,TasksCurrent", unit_of(name)}));
  UnitState state;
  for (std::string_view line : split(text, '\n')) {
    size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view key = line.substr(0, equals);
    std::string_view value = line.substr(equals + 1);
    if (value.starts_with('[')) value = {};  // "[not set]"
    if (key == "ActiveState") state.active = value;
    if (key == "StateChangeTimestamp") state.since = value;
    if (key == "Result") state.result = value;
    if (key == "MemoryCurrent") state.memory = value;
    if (key == "TasksCurrent") state.tasks = value;
  }
  if (state.active.empty()) return fail(ErrorCode::corrupt, "systemctl show says nothing about {}", unit_of(name));
  return state;
}

Result<void> start_unit(std::string_view name) {
  const std::string unit = unit_of(name);
  auto started = must_run({"systemctl", "start", unit});
  if (started) return {};
  std::string reason = last_refusal(unit);
  if (reason.empty()) return fail(ErrorCode::io, "{} does not start; see: journalctl -u {}", name, unit);
  return fail(ErrorCode::permission_denied, "{} does not start: {}", name, reason);
}

Result<void> stop_unit(std::string_view name) {
  const std::string unit = unit_of(name);
  TRY(must_run({"systemctl", "stop", unit}));
  // A refused start would otherwise count against the next ones. A unit that is not loaded has nothing to forget, and
  // systemctl calls that an error.
  if (TRY(unit_state(name)).active == "failed") TRY(must_run({"systemctl", "reset-failed", unit}));
  return {};
}

}  // namespace hive::container
