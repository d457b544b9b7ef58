#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "container/layout.h"

namespace hive::container {

/// What hive-container keeps of a container that it has made. The container's agent has the container's name without
/// "h-".
struct Record {
  std::string name;
  uid_t uid = 0;  ///< of the agent's user, the same inside and on the host's folders, for the container's whole life
  std::string bridge;
  std::string gateway_ip;
  std::string hive_agent;  ///< id of the myrmex-agent inside; empty: there is none

  bool operator==(const Record&) const = default;
};

/// The agent's folders on the host, and where its container sees them.
struct AgentFolder {
  std::string_view name;
  std::string inside;
};
std::vector<AgentFolder> agent_folders(std::string_view agent);

Result<Record> load_record(std::string_view name, const Layout& layout);
Result<void> save_record(const Record& record, const Layout& layout);

/// The containers of this host: every NAME.conf, in order; records need not exist.
Result<std::vector<std::string>> list_containers(const Layout& layout);

/// Every record, for choosing a uid. A file that cannot be read is a failure: its uid would be given away twice.
Result<std::vector<Record>> load_records(const Layout& layout);

}  // namespace hive::container
