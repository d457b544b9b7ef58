#pragma once

namespace hive::agent {

/// Lets go of the program and library code that only the start needed: dynamic linking, the configuration, the first
/// handshake. Only pages that are the same in their file are dropped; they come back, one fault each, when they are
/// used again. An agent spends its life waiting, often on a small machine, and more than half of what it holds after
/// the start is such code.
void release_start_code();

}  // namespace hive::agent
