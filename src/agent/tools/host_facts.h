#pragma once

#include <string>
#include <string_view>
#include <vector>

/// What the host says about itself in files, without starting a program.
namespace hive::agent {

/// PRETTY_NAME of os-release, else the first line of /etc/issue, else "Linux". `root` is for tests.
std::string os_version(const std::string& root = "");

/// Ports of TCP sockets in state LISTEN, IPv4 and IPv6, each once, in the order of the kernel's tables.
std::vector<std::string> listening_ports(const std::string& proc = "/proc");

/// Ports in one table of the kernel, see proc(5), /proc/net/tcp.
std::vector<std::string> listening_ports_in(std::string_view table);

/// Names of running processes, each once, at most a thousand: what there is to tell on a host without systemd.
std::vector<std::string> process_names(const std::string& proc = "/proc");

/// Names of the units in what `systemctl list-units --no-legend` prints.
std::vector<std::string> service_names(std::string_view listing);

}  // namespace hive::agent
