#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "container/app.h"
#include "container/create.h"
#include "container/layout.h"

/// The commands of hive-container. Each prints its result or why it failed, and returns how the program ends.
namespace hive::container {

struct Session {
  const Layout& layout;
  cli::Output& output;
  cli::OutputOptions format;

  /// Prints "hive-container: MESSAGE" and returns the code that fits the error.
  ExitCode fail_with(const Error& error) const;
};

struct RunOptions {
  std::string name;
  std::string user;  ///< empty: root
  std::vector<std::string> command;
};

struct LogOptions {
  std::string name;
  std::string unit;  ///< of the guest; empty: everything
  unsigned lines = 50;
  bool follow = false;
  bool host = false;  ///< what the host says about the container's unit: refused starts
};

struct DestroyOptions {
  std::string name;
  bool yes = false;
};

ExitCode run_create(Session& session, const CreateOptions& options, bool start);
ExitCode run_start(Session& session, const std::vector<std::string>& names);
ExitCode run_stop(Session& session, const std::vector<std::string>& names);
ExitCode run_restart(Session& session, const std::vector<std::string>& names);
ExitCode run_status(Session& session, const std::string& name);
ExitCode run_list(Session& session);
ExitCode run_command(Session& session, const RunOptions& options);
ExitCode run_logs(Session& session, const LogOptions& options);
ExitCode run_destroy(Session& session, const DestroyOptions& options);
ExitCode run_salvages(Session& session, const std::string& name);

}  // namespace hive::container
