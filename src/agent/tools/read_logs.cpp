#include <fcntl.h>
#include <sys/stat.h>

#include "agent/arguments.h"
#include "agent/command_tool.h"
#include "agent/tools/file_access.h"
#include "agent/tools/journal.h"
#include "agent/tools/tools.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "exec/executable.h"
#include "protocol/agent_protocol.h"
#include "protocol/json.h"

namespace hive::agent {

namespace {

constexpr std::int64_t default_lines = 50;
constexpr std::int64_t max_lines = 100;
// How far from the end of a log its last lines are looked for.
constexpr size_t max_log_bytes = size_t{512} << 10;
constexpr std::chrono::milliseconds journal_timeout = std::chrono::seconds(10);

// The text stands in an answer twice, the second time in lines; together they must fit into a line of the tunnel.
constexpr size_t max_encoded_log_bytes = size_t{1700} << 10;
constexpr std::string_view cut_mark = "[...]";

// Log files may hold bytes that JSON writes as six. The newest lines matter, so what must go goes from the start.
std::string keep_encodable_end(std::string text) {
  for (;;) {
    std::string encoded;
    json::append_string(encoded, text);
    if (encoded.size() <= max_encoded_log_bytes) return text;
    // The next try assumes that the escapes are spread evenly.
    size_t kept = std::min(text.size() * max_encoded_log_bytes / encoded.size(), text.size()) * 9 / 10;
    size_t begin = text.size() - kept;
    while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
      ++begin;
    text.replace(0, begin, cut_mark);
  }
}

ToolReply no_log_reply(std::string_view source, std::string_view looked_at) {
  ToolReply reply;
  reply.text = fmt::format("no log found (looked at {})", looked_at);
  reply.structured = fmt::format(R"({{"source":{},"lines":[]}})", json::encode_string(source));
  return reply;
}

// What of the journal a query asks for, in words.
std::string describe(const JournalQuery& query) {
  std::string text = "the journal";
  if (query.unit) text += " of unit " + quote(*query.unit);
  if (query.since) text += " since " + quote(*query.since);
  if (query.priority) text += " of priority " + quote(*query.priority) + " and worse";
  return text;
}

ToolReply log_reply(std::string_view source, std::string text, std::span<const std::string> lines) {
  ToolReply reply;
  reply.structured = fmt::format(R"({{"source":{},"lines":[)", json::encode_string(source));
  for (const std::string& line : lines) {
    if (&line != lines.data()) reply.structured += ',';
    json::append_string(reply.structured, line);
  }
  reply.structured += "]}";
  reply.text = std::move(text);
  return reply;
}

Result<std::string> last_lines_of(const std::string& path, std::int64_t lines) {
  // Without waiting should somebody have put a pipe there.
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return std::unexpected(system_error(errno, "open " + path));
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) return std::unexpected(system_error(errno, "stat " + path));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid_argument, "{} is not a regular file", path);
  return read_last_lines(file, static_cast<size_t>(lines), max_log_bytes);
}

// Reads the first usable of the configured logs; nullopt when none exists.
std::optional<ToolReply> read_text_logs(const std::vector<std::string>& paths, std::int64_t lines) {
  std::string problems;
  for (const std::string& path : paths) {
    auto text = last_lines_of(path, lines);
    if (text) {
      std::string valid = keep_encodable_end(utf8::replace_invalid(*text));
      std::vector<std::string> parts;
      for (std::string_view line : split(valid, '\n'))
        parts.emplace_back(line);
      if (valid.empty()) parts.clear();
      return log_reply(path, std::move(valid), parts);
    }
    if (::access(path.c_str(), F_OK) != 0) continue;
    if (!problems.empty()) problems += "; ";
    problems += text.error().message;
  }
  if (problems.empty()) return std::nullopt;
  return ToolReply{.text = "logs cannot be read: " + problems,
                   .structured = {},
                   .outcome = protocol::Outcome::failure,
                   .reason = "logs_unreadable",
                   .error_code = protocol::internal_error_code};
}

CancelHook read_journal(ToolServices& services, ToolCall call, const std::string& program,
                        std::vector<std::string> arguments, std::string looked_at) {
  exec::Command command;
  command.path = program;
  command.argv = std::move(arguments);
  command.argv.insert(command.argv.begin(), "journalctl");
  auto environment = exec::build_environment(exec::current_account(), {});
  if (environment) command.environment = *std::move(environment);
  command.timeout = std::min(call.timeout.value_or(journal_timeout), journal_timeout);
  command.max_output_bytes = max_log_bytes;
  auto done = [reply = std::move(call.reply), timeout = command.timeout,
               looked_at = std::move(looked_at)](exec::CommandResult result) mutable {
    if (result.ending != exec::Ending::exited || result.exit_code != 0) {
      ToolReply failure = command_reply(result, max_log_bytes, timeout);
      failure.structured.clear();
      reply(std::move(failure));
      return;
    }
    std::string text = keep_encodable_end(exec::render(result.output, max_log_bytes).text);
    std::vector<std::string> entries = journal_entries(text);
    // journalctl says the same, nothing, of a unit that it does not know and of one that has logged nothing.
    if (entries.empty()) {
      reply(no_log_reply("journal", looked_at));
      return;
    }
    reply(log_reply("journal", std::move(text), entries));
  };
  auto running = services.runner.run(std::move(command), {}, std::move(done));
  return [running = std::move(running)] { running->cancel(); };
}

}  // namespace

CancelHook read_logs(ToolServices& services, ToolCall call) {
  Arguments arguments = HIVE_TRY_ARGUMENT(call, Arguments::parse(call.arguments, "read_logs", true));
  JournalQuery query;
  query.lines = HIVE_TRY_ARGUMENT(call, arguments.integer("lines")).value_or(default_lines);
  query.unit = HIVE_TRY_ARGUMENT(call, arguments.string("unit"));
  query.since = HIVE_TRY_ARGUMENT(call, arguments.string("since"));
  query.priority = HIVE_TRY_ARGUMENT(call, arguments.string("priority"));
  if (query.lines < 1 || query.lines > max_lines) {
    call.reply(invalid_arguments(fmt::format("argument \"lines\" must be from 1 to {}", max_lines)));
    return {};
  }
  std::vector<std::string> journal = HIVE_TRY_ARGUMENT(call, journal_arguments(query));

  if (query.is_specific()) {
    auto program = exec::resolve_executable("journalctl");
    if (!program) {
      call.reply(failed(
          "not_installed",
          "failed to resolve command: unit, since and priority need the systemd journal; " + program.error().message));
      return {};
    }
    return read_journal(services, std::move(call), *program, std::move(journal), describe(query));
  }
  // A log file is preferred, as with the reference; hosts that only keep a journal have none.
  bool any_file = false;
  std::string looked_at = join(services.config.log_paths, ", ");
  if (!looked_at.empty()) looked_at += " and ";
  looked_at += "the journal";
  for (const std::string& path : services.config.log_paths)
    any_file = any_file || ::access(path.c_str(), F_OK) == 0;
  if (!any_file) {
    if (auto program = exec::resolve_executable("journalctl")) {
      return read_journal(services, std::move(call), *program, std::move(journal), std::move(looked_at));
    }
    looked_at += ", which needs journalctl";
  }
  return run_in_pool(services, std::move(call), [paths = services.config.log_paths, lines = query.lines, looked_at] {
    auto reply = read_text_logs(paths, lines);
    if (reply) return *std::move(reply);
    return no_log_reply("none", looked_at);
  });
}

}  // namespace hive::agent
