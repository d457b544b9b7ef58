#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace hive::net::http {

struct CertificateFiles {
  std::string certificate_path;
  std::string key_path;
};

/// Makes a self-signed certificate in `folder` (ECDSA P-256, 824 days) and keeps it: the files there are used again
/// while they belong together, are valid for another 30 days, and name exactly what is wanted; otherwise both are made
/// anew. It names localhost, 127.0.0.1, ::1, the machine's host name and `names` (DNS names or addresses). Clients
/// trust it by the certificate file itself (curl --cacert). The key's mode is 0600. Errors name the file or the name.
Result<CertificateFiles> ensure_self_signed_certificate(const std::string& folder, std::span<const std::string> names,
                                                        const Clock& clock = system_clock());

/// The DNS names and addresses in a certificate's subjectAltName, in their order.
Result<std::vector<std::string>> certificate_names(const std::string& certificate_path);

}  // namespace hive::net::http
