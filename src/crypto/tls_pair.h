#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace hive::crypto {

/// Whether a TLS server can start with these PEM files: both can be read, the first certificate of the chain parses,
/// the key parses without a passphrase, is readable by its owner alone, and belongs to that certificate. The error
/// names the file. Blocks on the file system.
Result<void> check_certificate_and_key(const std::string& cert_path, const std::string& key_path);

/// How many certificates in PEM the file holds. Failure names the file, also when it holds none, or one that cannot be
/// read. Blocks on the file system.
Result<std::size_t> count_certificates(const std::string& path);

}  // namespace hive::crypto
