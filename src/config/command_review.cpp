#include "config/command_review.h"

#include <algorithm>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"
#include "config/pattern.h"
#include "config/pattern_probe.h"
#include "config/pattern_samples.h"
#include "config/program_kind.h"

namespace hive::config {

namespace {

constexpr std::size_t max_listed = 8;

bool is_program(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0111) != 0;
}

std::string find_program(const std::string& name, std::string_view search_path) {
  if (name.starts_with('/')) return is_program(name) ? name : "";
  for (std::string_view folder : split(search_path, ':')) {
    if (!folder.starts_with('/')) continue;
    std::string path = fmt::format("{}/{}", folder, name);
    if (is_program(path)) return path;
  }
  return "";
}

void review_program(const AllowedCommand& command, CommandReview& review) {
  if (review.executable.empty()) {
    review.findings.push_back(
        {"missing",
         fmt::format("{} is not installed here; a call that is admitted ends as a failure, not as "
                     "a denial",
                     command.name),
         ""});
    return;
  }
  struct stat file{};
  struct stat folder{};
  std::string folder_path = review.executable.substr(0, std::max<std::size_t>(review.executable.rfind('/'), 1));
  if (::stat(review.executable.c_str(), &file) != 0 || ::stat(folder_path.c_str(), &folder) != 0) return;
  auto add = [&](std::string message) { review.findings.push_back({"writable", std::move(message), ""}); };
  if ((file.st_mode & 022) != 0) {
    add(fmt::format("{0} has mode {1:04o}: others can change what the agent runs; run: chmod go-w {0}",
                    review.executable, file.st_mode & 07777U));
  } else if ((folder.st_mode & 002) != 0) {
    add(fmt::format("everyone can replace programs in {0}; run: chmod o-w {0}", folder_path));
  } else if (file.st_uid != 0 && file.st_uid != ::geteuid()) {
    add(fmt::format("{0} belongs to user {1}, who can change what the agent runs; run: chown root {0}",
                    review.executable, file.st_uid));
  }
}

void review_kind(const AllowedCommand& command, CommandReview& review) {
  bool no_arguments =
      command.args_regex.empty() || (review.lists_all && review.examples == std::vector<std::string>{""});
  switch (kind_of_program(command.name)) {
    case ProgramKind::ordinary:
      return;
    case ProgramKind::shell:
      review.findings.push_back(
          {"shell",
           fmt::format("{} is a shell: whoever can choose its arguments can run anything; put what "
                       "is needed into a script and allow that",
                       program_name(command.name)),
           ""});
      return;
    case ProgramKind::interpreter:
      review.findings.push_back({"interpreter",
                                 fmt::format("{} runs code that its arguments hold or name; put what is needed into a "
                                             "script and allow that",
                                             program_name(command.name)),
                                 ""});
      return;
    case ProgramKind::runs_programs:
      // A closed list of argument lines is as good as the programs in it.
      if (no_arguments || review.lists_all) return;
      review.findings.push_back(
          {"runs_programs",
           fmt::format("{} can start other programs (by an option, a pager, an editor or a hook); "
                       "list its argument lines word for word",
                       program_name(command.name)),
           ""});
      return;
  }
}

void review_place(const AllowedCommand& command, std::span<const AllowedCommand> earlier, CommandReview& review) {
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    if (earlier[i].name != command.name) continue;
    review.findings.push_back(
        {"shadowed",
         fmt::format("is never asked: the first entry with a name decides, and entry {} is called "
                     "{} as well; join the patterns with \"|\"",
                     i + 1, command.name),
         ""});
    return;
  }
}

void review_surroundings(const AllowedCommand& command, CommandReview& review) {
  for (const auto& [name, value] : command.env) {
    if (!name.starts_with("LD_") && name != "PATH" && name != "IFS" && name != "BASH_ENV" && name != "ENV") continue;
    review.findings.push_back(
        {"environment", fmt::format("the variable {} changes which code the program runs", name), ""});
  }
  if (!command.user.empty() && ::getpwnam(command.user.c_str()) == nullptr) {
    review.findings.push_back({"user", fmt::format("there is no user {} here", quote(command.user)), ""});
  }
}

std::string describe(const AllowedCommand& command, const CommandReview& review) {
  if (command.args_regex.empty()) return "no arguments";
  if (review.lists_all && review.examples == std::vector<std::string>{""}) return "no arguments";
  if (review.lists_all && review.examples.size() == 1) return "exactly these arguments";
  if (review.lists_all) return fmt::format("{} argument lines", review.examples.size());
  return fmt::format("argument lines that match {}", escape_for_terminal(command.args_regex));
}

void review_pattern(const AllowedCommand& command, CommandReview& review) {
  if (command.args_regex.empty()) return;
  Result<Pattern> pattern = Pattern::compile(command.args_regex);
  if (!pattern) return;  // the loader has refused it already
  std::optional<PatternOutline> outline = outline_pattern(command.args_regex);
  std::vector<std::string> samples;
  if (outline) {
    for (std::string& sample : outline->samples) {
      if (pattern->admits(sample) && std::ranges::find(samples, sample) == samples.end()) {
        samples.push_back(std::move(sample));
      }
    }
    // Only if every sample was believed, and none of them stands twice.
    review.lists_all = !samples.empty() && samples.size() <= max_listed && outline->finite_count == samples.size();
    for (Finding& finding : review_anchors(*outline)) {
      review.findings.push_back(std::move(finding));
    }
  }
  // What a shell may be told is no longer a question of characters.
  bool is_shell = kind_of_program(command.name) == ProgramKind::shell;
  for (Finding& finding : probe_pattern(*pattern, samples, program_name(command.name))) {
    if (is_shell && finding.code != "anything") continue;
    review.findings.push_back(std::move(finding));
  }
  if (samples.empty() && outline) {
    review.findings.push_back({"empty", "no argument line was found that it admits; it may admit nothing", ""});
  }
  if (!review.lists_all) {
    // The longest shows the optional parts, the shortest what is left without them.
    std::ranges::sort(samples, [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
    if (samples.size() > 3) samples = {samples.front(), samples[samples.size() / 2], samples.back()};
  }
  review.examples = std::move(samples);
}

}  // namespace

CommandReview review_command(const AllowedCommand& command, std::span<const AllowedCommand> earlier,
                             std::string_view search_path) {
  CommandReview review;
  review.executable = find_program(command.name, search_path);
  review_place(command, earlier, review);
  review_pattern(command, review);
  review_kind(command, review);
  review_program(command, review);
  review_surroundings(command, review);
  review.admits = describe(command, review);
  return review;
}

}  // namespace hive::config
