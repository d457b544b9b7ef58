#include "config/agent_check.h"

#include <algorithm>
#include <filesystem>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "base/strings.h"
#include "config/agent_config.h"
#include "config/command_review.h"
#include "config/file_mode.h"
#include "config/secret_reference.h"
#include "crypto/ssh_key.h"
#include "protocol/document.h"

namespace hive::config {

namespace {

boost::json::array to_array(const std::vector<std::string>& texts) {
  boost::json::array array;
  for (const std::string& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

/// Text in colours, or not.
struct Style {
  bool colour;
  [[nodiscard]] std::string paint(std::string_view code, std::string_view text) const {
    return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
  [[nodiscard]] std::string bold(std::string_view text) const { return paint("1", text); }
  [[nodiscard]] std::string warning(std::string_view text) const { return paint("33", text); }
  [[nodiscard]] std::string error(std::string_view text) const { return paint("31", text); }
};

/// Words, broken into lines of at most 100 characters, the second and later ones indented.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (std::string_view word : split(text, ' ')) {
    if (column > indent && column + 1 + word.size() > 100) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string seconds(std::chrono::milliseconds duration) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

std::string size_text(std::size_t bytes) {
  if (bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes % (1 << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} bytes", bytes);
}

std::string counted(std::size_t number, std::string_view word) {
  return fmt::format("{} {}{}", number, word, number == 1 ? "" : "s");
}

bool is_under(const std::string& path, const std::string& folder) {
  return folder == "/" || path == folder || path.starts_with(folder + "/");
}

// What concerns the whole agent and not one entry.
std::vector<Finding> review_agent(const AgentConfig& config) {
  std::vector<Finding> findings;
  for (const std::string& root : config.file_read_roots) {
    if (!config.private_key_path.empty() && is_under(config.private_key_path, root)) {
      findings.push_back(
          {"file_read_roots",
           fmt::format("file_read_roots: {} holds the agent's private key, so file_read can read it", root), ""});
    } else if (root == "/" || root == "/etc" || root == "/root" || root == "/home" || root == "/proc" ||
               root == "/dev") {
      findings.push_back({"file_read_roots",
                          fmt::format("file_read_roots: {} holds secrets of the machine; name what is needed", root),
                          ""});
    }
  }
  if (config.allowed_commands.empty()) {
    findings.push_back({"allowed_commands", "allowed_commands is empty: run_command refuses everything", ""});
  }
  return findings;
}

// The key as the agent will load it when it dials. A file whose mode is wrong has been reported by the loader of the
// configuration, with the same remedy.
std::optional<std::string> problem_of_key(const AgentConfig& config) {
  const std::string& path = config.private_key_path;
  if (path.empty()) return std::nullopt;
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    return fmt::format("private_key_path: {} is not there; make it with: ssh-keygen -t ed25519 -N \"\" -C {} -f {}",
                       path, config.agent_id.empty() ? "AGENT_ID" : config.agent_id, path);
  }
  if (!check_private_key_mode(path)) return std::nullopt;
  Result<crypto::PrivateKey> key = crypto::PrivateKey::load(path);
  if (key) return std::nullopt;
  return fmt::format("private_key_path: {}", key.error().message);
}

std::string join_addresses(const AgentConfig& config) {
  std::string text;
  for (const GatewayAddress& address : config.gateways) {
    text += (text.empty() ? "" : ", ") + address.to_string();
  }
  return text;
}

// Without the password.
std::string proxy_text(const AgentConfig& config) {
  std::string text = config.proxy->to_string();
  if (!config.proxy->user.empty()) text += fmt::format(", as {}", quote(config.proxy->user));
  if (!config.no_proxy.empty()) text += fmt::format(", not for {}", join(config.no_proxy, ", "));
  return text;
}

/// Builds both forms of the report side by side, so that they cannot differ.
class ReportWriter {
 public:
  explicit ReportWriter(const CheckOptions& options) : options_(options), style_{options.colour} {}

  /// Before all else, so that nobody has to scroll for them.
  void errors(std::string_view message) {
    for (std::string_view line : split(message, '\n')) {
      report_.errors.emplace_back(line);
      report_.text += fmt::format("{} {}\n", style_.error("error:"), escape_for_terminal(line));
    }
  }

  void agent(const std::string& path, const AgentConfig& config) {
    if (!report_.errors.empty()) report_.text += '\n';
    document_["agent_id"] = config.agent_id;
    document_["gateways"] = join_addresses(config);
    if (config.proxy) document_["proxy"] = config.proxy->to_string();
    report_.text += fmt::format("{}\n\n", style_.bold(fmt::format("{}: agent {}", path, config.agent_id)));
    line("gateways", join_addresses(config));
    line("key", config.private_key.empty() ? config.private_key_path : "from the reference in private_key");
    line("host key", config.gateway_host_key.empty()
                         ? fmt::format("trust on first use, kept in {}", config.known_host_key_path)
                         : "pinned by gateway_host_key");
    if (config.proxy) line("proxy", proxy_text(config));
    line("file_read", config.file_read_roots.empty() ? "reads nothing (file_read_roots is empty)"
                                                     : "below " + join(config.file_read_roots, ", "));
    line("read_logs", "the journal, " + join(config.log_paths, ", "));
    findings(review_agent(config), "", document_);
    for (std::size_t i = 0; i < config.allowed_commands.size(); ++i) {
      if (is_broken(i)) {
        broken_entry(i, config.allowed_commands[i]);
        continue;
      }
      entry(i, config.allowed_commands[i],
            review_command(config.allowed_commands[i], std::span(config.allowed_commands).first(i),
                           options_.search_path));
    }
  }

  CheckReport finish(const std::string& path) {
    document_["file"] = path;
    report_.text +=
        fmt::format("\n{}, {}\n", counted(report_.errors.size(), "error"), counted(report_.warnings.size(), "warning"));
    document_["ok"] = report_.errors.empty();
    document_["errors"] = to_array(report_.errors);
    document_["warnings"] = to_array(report_.warnings);
    document_["entries"] = std::move(entries_);
    report_.json = json::to_pretty_text(document_);
    return std::move(report_);
  }

 private:
  // Whether an error names the entry: then what was read of it is not what it means.
  [[nodiscard]] bool is_broken(std::size_t index) const {
    std::string place = fmt::format(": allowed_commands[{}]", index);
    return std::ranges::any_of(report_.errors, [&](const std::string& error) { return error.contains(place); });
  }

  void broken_entry(std::size_t index, const AllowedCommand& command) {
    std::string name = command.name.empty() ? "(no usable name)" : command.name;
    report_.text += fmt::format("\n{}\n", style_.bold(fmt::format("{}. {}", index + 1, escape_for_terminal(name))));
    line("admits", "cannot be told before its errors, see above, are mended");
  }

  void line(std::string_view name, std::string_view text) {
    report_.text += fmt::format("  {:<10} {}\n", name, wrapped(escape_for_terminal(text), 13));
  }

  void entry(std::size_t index, const AllowedCommand& command, const CommandReview& review) {
    std::string title = fmt::format("{}. {}", index + 1, command.name);
    report_.text += fmt::format(
        "\n{}{}\n", style_.bold(title),
        review.executable.empty() || review.executable == command.name ? "" : fmt::format("  ({})", review.executable));
    line("admits", review.admits);
    for (const std::string& example : review.examples) {
      if (command.args_regex.empty() || review.examples == std::vector<std::string>{""}) break;
      std::string_view name = review.lists_all ? "" : "  e.g.";
      line(name, example.empty() ? command.name + " (no arguments)" : fmt::format("{} {}", command.name, example));
    }
    std::string limits = fmt::format("{}, {} of output", seconds(command.timeout), size_text(command.max_output_bytes));
    if (!command.user.empty()) limits += ", as user " + command.user;
    line("limits", limits);

    boost::json::object object;
    object["name"] = command.name;
    object["args_regex"] = command.args_regex;
    object["executable"] = review.executable.empty() ? boost::json::value() : boost::json::value(review.executable);
    object["admits"] = review.admits;
    object["examples"] = to_array(review.examples);
    object["lists_all"] = review.lists_all;
    object["timeout_seconds"] = std::chrono::duration_cast<std::chrono::seconds>(command.timeout).count();
    object["max_output_bytes"] = command.max_output_bytes;
    object["user"] = command.user;
    findings(review.findings, fmt::format("allowed_commands[{}] {}", index, command.name), object);
    entries_.push_back(std::move(object));
  }

  void findings(const std::vector<Finding>& found, const std::string& place, boost::json::object& object) {
    boost::json::array list;
    for (const Finding& finding : found) {
      report_.text +=
          fmt::format("  {} {}\n", style_.warning("WARNING   "), wrapped(escape_for_terminal(finding.message), 13));
      std::string program = place.empty() ? "" : place.substr(place.find(' ') + 1);
      if (!finding.example.empty()) line("  admitted", fmt::format("{} {}", program, finding.example));
      report_.warnings.push_back(
          fmt::format("{}{}{}{}", place, place.empty() ? "" : ": ", finding.message,
                      finding.example.empty() ? "" : fmt::format(" (admitted: {})", finding.example)));
      list.push_back({{"code", finding.code}, {"message", finding.message}, {"example", finding.example}});
    }
    object["findings"] = std::move(list);
  }

  const CheckOptions& options_;
  Style style_;
  CheckReport report_;
  boost::json::object document_;
  boost::json::array entries_;
};

}  // namespace

CheckReport check_agent_config(const std::string& path, const CheckOptions& options) {
  ReportWriter writer(options);
  AgentConfigDraft draft =
      inspect_agent_config(path, options.sources == nullptr ? SecretSources::system() : *options.sources);
  if (draft.error) writer.errors(draft.error->message);
  if (auto problem = problem_of_key(draft.config)) writer.errors(fmt::format("{}: {}", path, *problem));
  // Without a single thing understood there is nothing to explain.
  bool is_readable = !draft.config.private_key_path.empty() || !draft.config.private_key.empty() ||
                     !draft.config.allowed_commands.empty();
  if (!draft.error || is_readable) writer.agent(path, draft.config);
  return writer.finish(path);
}

}  // namespace hive::config
