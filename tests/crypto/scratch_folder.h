#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace hive::test {

/// A folder of its own for one test, gone at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    // Memory first: hundreds of syncs on a busy disk would make a slow test.
    std::string name = "/dev/shm/hive-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      name = (std::filesystem::temp_directory_path() / "hive-test-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) std::abort();
    }
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string path(std::string_view name) const { return (path_ / name).string(); }

  std::string write(std::string_view name, std::string_view content, unsigned mode = 0600) const {
    std::string file = path(name);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
    std::filesystem::permissions(file, static_cast<std::filesystem::perms>(mode));
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct CommandResult {
  int status = -1;     ///< as system() reports it; 0 is success
  std::string output;  ///< standard output and standard error
};

/// Runs a shell command; for checking against the system's own tools.
inline CommandResult run_command(const std::string& command) {
  CommandResult result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  char piece[4096];
  while (size_t count = std::fread(piece, 1, sizeof piece, pipe))
    result.output.append(piece, count);
  result.status = ::pclose(pipe);
  return result;
}

}  // namespace hive::test
