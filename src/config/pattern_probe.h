#pragma once

#include <string_view>
#include <vector>

#include "config/finding.h"
#include "config/pattern.h"
#include "config/pattern_samples.h"

namespace hive::config {

/// Tries argument lines that nobody should be able to send against a pattern: options in the place of operands, paths
/// with "..", other hosts, ports that do not exist. What is admitted is a finding, with the line as its proof.
/// `samples` are lines that the pattern admits; `program` is the command's name without folders.
std::vector<Finding> probe_pattern(const Pattern& pattern, const std::vector<std::string>& samples,
                                   std::string_view program);

/// Explains anchors that stand in some alternatives only ("^a|b$"): what the author may expect differs from what holds.
std::vector<Finding> review_anchors(const PatternOutline& outline);

}  // namespace hive::config
