#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.h"

namespace CLI {
class App;
}

namespace hive::cli {

/// The script for "bash", "zsh" or "fish". It asks `myrmex __complete words -- WORD...` for candidates, so that it
/// never falls behind the program.
std::string completion_script(std::string_view shell);

/// What can stand in the place of a word.
struct Candidate {
  std::string word;
  std::string description;
};

struct Candidates {
  std::vector<Candidate> words;
  bool takes_file = false;      ///< a file name belongs here
  bool stays_attached = false;  ///< no space behind the word: a value follows
};

/// Names of the fleet; empty when the gateway cannot be asked.
struct FleetNames {
  std::vector<std::string> agents;
  std::vector<std::string> tags;
  std::vector<Candidate> tools;
  /// The argument names of a tool.
  std::vector<Candidate> arguments;
};

/// Who is asked for names.
struct NameSource {
  /// Gets the tool whose arguments are wanted, or an empty name.
  std::function<FleetNames(const std::string& tool)> fleet;
  /// The ids of requests for approval: those that wait, or all that are kept.
  std::function<std::vector<Candidate>(bool all)> approvals;
  /// The upstream servers that hold back a tool, or the tools that one of them holds back.
  std::function<std::vector<Candidate>(const std::string& upstream)> held_back = {};
};

/// Candidates for the last of `words` (the words behind "myrmex" up to the cursor; the last may be empty).
Candidates complete_words(const CLI::App& app, std::span<const std::string> words, const NameSource& names);

/// `myrmex __complete KIND`: "tools" and "agents" print names, "words" prints what the scripts read: a line a
/// candidate, "word<TAB>description", and the directives ":files" and ":nospace". Never says anything on standard
/// error.
ExitCode run_complete(Context& context, const CLI::App& app, const std::string& kind,
                      const std::vector<std::string>& words);

}  // namespace hive::cli
