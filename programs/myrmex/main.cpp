#include <csignal>
#include <string>
#include <vector>

#include <unistd.h>

#include "cli/app.h"

int main(int argc, char** argv) {
  // A reader that goes away (`myrmex tools | head`) is a failed write, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  hive::cli::Output output(STDOUT_FILENO, STDERR_FILENO);
  return hive::cli::run(std::vector<std::string>(argv + 1, argv + argc), hive::cli::process_environment(), output);
}
