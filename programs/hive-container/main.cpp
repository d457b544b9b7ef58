#include <csignal>
#include <string>
#include <vector>

#include <unistd.h>

#include "container/app.h"

int main(int argc, char** argv) {
  // A reader that goes away (`hive-container list | head`) is a failed write, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  hive::cli::Output output(STDOUT_FILENO, STDERR_FILENO);
  return hive::container::run(std::vector<std::string>(argv + 1, argv + argc), hive::container::Layout{}, output);
}
