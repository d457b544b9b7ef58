#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace hive::cli {

/// An option that some command knows.
struct KnownOption {
  std::string name;  ///< with its dashes
  std::string description;
  std::string value_name;  ///< "FILE"; empty when it takes no value
  bool takes_value = false;
};

/// The options of `app` and of all its commands.
std::vector<KnownOption> all_options(const CLI::App& app);
/// The options and the visible commands of one level.
std::vector<KnownOption> options_of(const CLI::App& app);
std::vector<const CLI::App*> commands_of(const CLI::App& app);

/// Rewrites the spellings of the reference's command line: "-url X" and "-url=X" for "--url", "-o=json" for "-o json".
/// Words behind "--" and values of options stay as they are.
std::vector<std::string> with_current_spelling(std::span<const std::string> words,
                                               std::span<const KnownOption> options);

/// The positions of the words that are neither options nor values of options, up to the first "--".
std::vector<size_t> positional_words(std::span<const std::string> words, std::span<const KnownOption> options);

/// Whether the first positional word names a command; the failure names the nearest one. Words without a command are
/// fine (`myrmex --version`).
Result<void> check_command(const CLI::App& app, std::span<const std::string> words,
                           std::span<const KnownOption> options);

/// Says which of the words that nobody took is wrong, without repeating a value that may be a secret.
std::string unexpected_word_message(std::span<const std::string> unexpected, std::span<const KnownOption> options);

}  // namespace hive::cli
