#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "container/layout.h"
#include "container/record.h"

namespace hive::container {

/// Where the files of a new container's system come from; exactly one of them, or debootstrap.
struct RootSource {
  std::string tree;                   ///< a folder
  std::string tarball;                ///< a file for tar
  std::string suite;                  ///< for debootstrap; empty: the host's release
  std::string mirror;                 ///< for debootstrap; empty: debootstrap's default
  std::vector<std::string> packages;  ///< for debootstrap, beyond what a container needs
};

struct Limits {
  std::string memory;  ///< MemoryMax= of systemd.resource-control(5); empty: as for all containers
  std::string cpu;     ///< CPUQuota=
};

/// A myrmex-agent inside.
struct HiveAgent {
  std::string id;  ///< empty: none
  std::string gateway;
  std::string url;
  std::string ca_certificate;
  std::string join_token_file;
  std::string profile;  ///< file with the value of allowed_commands; empty: nothing is allowed
};

/// A forwarder of the guest's journal.
struct Forwarding {
  std::string endpoint;  ///< of an OTLP/HTTP collector; empty: none
};

struct CreateOptions {
  std::string name;  ///< checked
  uid_t uid = 0;     ///< 0: the first free one
  std::string bridge = "hive0";
  std::string gateway_ip = "10.42.0.1";
  bool private_users = false;  ///< its users are others on the host than inside
  RootSource source;
  Limits limits;
  HiveAgent agent;
  Forwarding forwarding;
};

/// Makes a container: its template with the agent's user, its folders, its configuration. Nothing of it is left when a
/// step fails, except the agent's folders where they were there before. `say` gets a line for each step. Blocks, with
/// debootstrap for a minute.
Result<Record> create_container(const CreateOptions& options, const Layout& layout,
                                const std::function<void(const std::string&)>& say);

/// The first uid from 20000 on that neither a record nor a user of the host has.
Result<uid_t> free_uid(const Layout& layout);

}  // namespace hive::container
