#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/http/message.h"
#include "net/http/tls_context.h"

namespace hive::net::http {

/// Lets the sessions of a server context ask for a client certificate and accept none but one for client authentication
/// that the authorities of this PEM file have signed; the system's own authorities do not count. Who shows none is
/// served too; who shows a bad one is not. Switches session resumption off, so that every connection proves possession
/// of the key and is checked against the authorities of the day. Errors name the file.
Result<void> ask_for_client_certificate(SSL_CTX* context, const std::string& authorities_path);

/// What the peer of an established session has shown; null if nothing, or nothing that was verified.
std::shared_ptr<const ClientCertificate> read_client_certificate(const SSL* session);

/// Why the handshake failed, where the client's certificate was the reason; otherwise empty.
std::string client_certificate_problem(const SSL* session);

}  // namespace hive::net::http
