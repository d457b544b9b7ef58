#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hive::cli {

/// Files that come into being together, or not at all, and never in the place of one that exists. Each is written
/// completely under another name first; publish() gives them their own names. What was not published is removed.
class NewFiles {
 public:
  NewFiles() = default;
  ~NewFiles();
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  /// Makes an empty file beside `path`, in good time: whether that works is known before anything else is done. Fails
  /// with already_exists when something stands at `path`.
  Result<void> reserve(const std::string& path, unsigned mode);
  /// Gives a reserved file its content and forces it to the disk.
  Result<void> write(const std::string& path, std::string_view content);
  /// Gives all of them their names; on failure those that had theirs already are removed again.
  Result<void> publish();

 private:
  struct File {
    std::string path;
    std::string temporary;
    bool published = false;
  };
  void remove_all();

  std::vector<File> files_;
};

/// Replaces a key file in one step, with the mode and owner of the old one, which stays beside it as PATH.old.
Result<void> replace_keeping_old(const std::string& path, std::string_view content);

}  // namespace hive::cli
