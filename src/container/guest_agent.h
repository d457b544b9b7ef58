#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "container/create.h"

namespace hive::container {

/// Puts a myrmex-agent into a container's template: the program with the libraries that the template lacks, its unit,
/// and a configuration in the template's /etc, which a guest cannot change for longer than until its next start. The
/// key is made and enrolled now, by `myrmex bootstrap`, and lies in the agent's state folder, so that it outlives
/// every start.
Result<void> install_agent(const HiveAgent& agent, const Record& record, const std::string& template_root,
                           const Layout& layout);

/// The folder of an agent's key, state/myrmex-agent. An earlier container of the agent may have filled `state` with
/// links as it liked: everything here is by descriptor.
class KeyFolder {
 public:
  /// Makes it where it is not there. One that holds a key already is refused (already_exists).
  static Result<KeyFolder> open(const Record& record, const Layout& layout);

  /// A file of the agent's user, 0600.
  [[nodiscard]] Result<void> add(const std::string& name, std::string_view content) const;

 private:
  KeyFolder(uid_t uid, std::string path) : uid_(uid), path_(std::move(path)) {}

  uid_t uid_;
  std::string path_;
  UniqueFd folder_;
};

/// Puts a forwarder of the journal into a container's template. Its position lies in the agent's state folder.
Result<void> install_forwarder(const Forwarding& forwarding, const Record& record, const std::string& template_root);

/// The configuration that `myrmex bootstrap` made, with the key's place as the guest sees it and the allowlist of
/// `profile` (JSON text of an array, or empty).
Result<std::string> guest_agent_config(const std::string& made, const std::string& key_inside,
                                       const std::string& profile);

}  // namespace hive::container
