#include "cli/token_commands.h"

#include <algorithm>

#include <unistd.h>

#include "base/strings.h"
#include "cli/json_text.h"
#include "cli/prompt.h"
#include "cli/standard_input.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "gateway/policy/authenticator.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr std::size_t token_bytes = 32;
constexpr std::size_t shortest_token = 20;
constexpr std::size_t longest_token = 4096;

std::string hash_of(std::string_view token) {
  return "sha256:" + to_hex(crypto::sha256(token));
}

/// The member of the configuration's "tokens".
std::string configuration_entry(const std::string& hash, const std::string& role, const std::string& identity) {
  std::string entry = json::encode_string(hash) + ": ";
  if (identity.empty()) return entry + json::encode_string(role);
  return entry + "{\"role\": " + json::encode_string(role) + ", \"identity\": " + json::encode_string(identity) + "}";
}

Result<std::string> read_token(int cancel_fd) {
  if (::isatty(STDIN_FILENO) != 1) return read_standard_input(longest_token + 2, "token hash");
  return ask_line("Token (not shown): ", false, cancel_fd);
}

/// Why a text is no token that the gateway should trust; empty when it is one.
std::string objection_to(std::string_view token, bool force) {
  if (token.empty()) return "token hash: no token on standard input: pipe it in, or run this on a terminal to be asked";
  if (token.size() > longest_token) return fmt::format("token hash: more than {} characters", longest_token);
  if (token.starts_with("sha256:")) return "token hash: this is a hash already";
  if (!std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; })) {
    return "token hash: a token is one word of visible ASCII characters, because it is sent in a header";
  }
  if (token.size() < shortest_token && !force) {
    return fmt::format(
        "token hash: {} characters can be guessed: use {} or more (`myrmex token new` makes one), or add "
        "--force",
        token.size(), shortest_token);
  }
  return "";
}

}  // namespace

ExitCode run_token_new(Context& context, const std::string& role, const std::string& identity) {
  std::string token = crypto::random_hex(token_bytes);
  std::string hash = hash_of(token);
  std::string principal = policy::token_principal_name(token);
  std::string entry = role.empty() ? "" : configuration_entry(hash, role, identity);
  if (context.format.json) {
    std::string object = "{\"token\":" + json::encode_string(token) + ",\"hash\":" + json::encode_string(hash) +
                         ",\"principal\":" + json::encode_string(principal);
    if (!entry.empty()) object += ",\"tokens\":{" + entry + "}";
    context.output.write(pretty_json(object + "}"));
    return ExitCode::success;
  }
  std::string text = fmt::format("token      {}\nhash       {}\nprincipal  {}\n", token, hash, principal);
  if (!entry.empty())
    text += fmt::format("\nfor \"tokens\" in the gateway's configuration:\n  {}\n", json_for_terminal(entry));
  context.output.write(text);
  context.output.note("The token is shown this once. Give it to its user, and put the hash into the configuration.");
  return ExitCode::success;
}

ExitCode run_token_hash(Context& context, bool force) {
  auto input = read_token(context.cancel_fd);
  if (!input) {
    bool cancelled = input.error().code == ErrorCode::cancelled;
    return context.fail_with({cancelled ? ExitCode::interrupted : ExitCode::error, input.error().message});
  }
  std::string_view token = trim(*input);
  if (std::string objection = objection_to(token, force); !objection.empty()) {
    return context.fail_with({ExitCode::usage, objection});
  }
  std::string principal = policy::token_principal_name(token);
  if (context.format.json) {
    context.output.write(pretty_json("{\"hash\":" + json::encode_string(hash_of(token)) +
                                     ",\"principal\":" + json::encode_string(principal) + "}"));
  } else {
    context.output.write(hash_of(token) + "\n");
    context.output.note("in the audit log: " + principal);
  }
  return ExitCode::success;
}

}  // namespace hive::cli
