#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "crypto/ssh_key.h"
#include "gateway/audit/checkpoint.h"

namespace hive::cli {

/// The gateway's public key from an OpenSSH public or private key file. For a private key the ".pub" file beside it is
/// preferred, so that the secret need not be read.
Result<crypto::PublicKey> read_host_key(const std::string& path);

/// A signed checkpoint note from a file, verified.
Result<audit::Checkpoint> read_checkpoint_note(const std::string& path, const crypto::PublicKey& key,
                                               std::string_view origin);

/// Replaces a file that everybody may read, in one step. The error names `path` and never a temporary name beside it.
Result<void> write_named_file(const std::string& path, std::string_view content);

/// Checks numbers, framing and every Merkle root of a log up to its last checkpoint, and that checkpoint's signature if
/// `host_key` names a file. A log that fails is an error that begins with BAD and names log and line. Entries behind
/// the last checkpoint are told of on standard error.
Result<void> require_good_log(const std::string& log, const std::string& host_key);

/// Prints "myrmex: message" to standard error.
void print_error(std::string_view message);

/// Prints the error and returns the exit code for it.
int report_error(const Error& error);

}  // namespace hive::cli
