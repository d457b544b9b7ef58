#include "cli/command_line.h"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>

#include "base/strings.h"

namespace hive::cli {

namespace {

/// Commands of the reference that this version does not have.
constexpr std::array<std::string_view, 1> commands_of_the_reference = {"ask"};

const KnownOption* find_option(std::span<const KnownOption> options, std::string_view name) {
  auto found = std::ranges::find(options, name, &KnownOption::name);
  return found == options.end() ? nullptr : &*found;
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

/// Whether the word behind this one is its value.
bool wants_next_word(std::string_view word, std::span<const KnownOption> options) {
  const KnownOption* option = find_option(options, word);
  return option != nullptr && option->takes_value;
}

}  // namespace

std::vector<KnownOption> options_of(const CLI::App& app) {
  std::vector<KnownOption> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_group().empty()) continue;
    bool takes_value = option->get_items_expected_min() > 0;
    std::string value_name = takes_value ? option->get_type_name() : "";
    for (const std::string& name : option->get_lnames())
      options.push_back({"--" + name, option->get_description(), value_name, takes_value});
    for (const std::string& name : option->get_snames())
      options.push_back({"-" + name, option->get_description(), value_name, takes_value});
  }
  return options;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_name().empty() && !command->get_group().empty()) commands.push_back(command);
  }
  return commands;
}

std::vector<KnownOption> all_options(const CLI::App& app) {
  std::vector<KnownOption> options = options_of(app);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (KnownOption& option : all_options(*command)) {
      if (find_option(options, option.name) == nullptr) options.push_back(std::move(option));
    }
  }
  return options;
}

std::vector<std::string> with_current_spelling(std::span<const std::string> words,
                                               std::span<const KnownOption> options) {
  std::vector<std::string> current;
  for (size_t k = 0; k < words.size(); ++k) {
    std::string word = words[k];
    if (word == "--") {
      // CLI11 takes the marker in the middle of a list of operands for the end of the command. It is only needed where
      // an operand looks like an option.
      std::span<const std::string> operands = words.subspan(k + 1);
      if (std::ranges::any_of(operands, is_option)) current.push_back(word);
      current.insert(current.end(), operands.begin(), operands.end());
      break;
    }
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    if (is_option(word) && !word.starts_with("--") && name.size() > 2 && find_option(options, "-" + name) != nullptr) {
      word.insert(0, 1, '-');
      current.push_back(word);
    } else if (is_option(word) && name.size() == 2 && equals == 2 && wants_next_word(name, options)) {
      current.push_back(name);
      current.push_back(word.substr(equals + 1));
    } else {
      current.push_back(word);
    }
    if (wants_next_word(current.back(), options) && k + 1 < words.size()) current.push_back(words[++k]);
  }
  return current;
}

std::vector<size_t> positional_words(std::span<const std::string> words, std::span<const KnownOption> options) {
  std::vector<size_t> positions;
  for (size_t k = 0; k < words.size() && words[k] != "--"; ++k) {
    if (!is_option(words[k])) {
      positions.push_back(k);
    } else if (wants_next_word(words[k], options)) {
      ++k;
    }
  }
  return positions;
}

Result<void> check_command(const CLI::App& app, std::span<const std::string> words,
                           std::span<const KnownOption> options) {
  std::vector<size_t> positions = positional_words(words, options);
  if (positions.empty()) return {};
  const std::string& word = words[positions.front()];
  auto has_that_name = [&word](const CLI::App* command) { return command->get_name() == word; };
  if (auto found = app.get_subcommands(has_that_name); !found.empty()) {
    // A command that consists of commands, as `audit` does, is looked into as well.
    bool has_more = positions.size() > 1 && !commands_of(*found.front()).empty();
    return has_more ? check_command(*found.front(), words.subspan(positions[1]), options) : Result<void>();
  }
  if (std::ranges::find(commands_of_the_reference, word) != commands_of_the_reference.end()) {
    return fail(ErrorCode::not_found,
                "the command \"{}\" is not part of this version; `myrmex help` lists those that are", word);
  }
  std::vector<std::string_view> names;
  std::vector<const CLI::App*> commands = commands_of(app);
  for (const CLI::App* command : commands)
    names.push_back(command->get_name());
  std::string path = app.get_parent() == nullptr ? "" : app.get_name() + " ";
  auto nearest = nearest_name(word, names);
  return fail(ErrorCode::not_found, "unknown command {}{}", path.empty() ? quote(word) : quote(path + word),
              nearest ? fmt::format("; did you mean \"{}{}\"?", path, *nearest)
                      : fmt::format("; `myrmex help{}` lists all", path.empty() ? "" : " " + app.get_name()));
}

std::string unexpected_word_message(std::span<const std::string> unexpected, std::span<const KnownOption> options) {
  for (const std::string& word : unexpected) {
    if (!is_option(word)) continue;
    std::string name = word.substr(0, word.find('='));
    std::vector<std::string_view> names;
    for (const KnownOption& option : options)
      names.push_back(option.name);
    if (find_option(options, name) != nullptr) return fmt::format("option {} does not belong to this command", name);
    auto nearest = nearest_name(name, names);
    return fmt::format("unknown option {}{}", quote(name), nearest ? fmt::format("; did you mean {}?", *nearest) : "");
  }
  return unexpected.empty() ? "unexpected words"
                            : fmt::format("unexpected word {}", quote(unexpected.front().substr(0, 60)));
}

}  // namespace hive::cli
