#pragma once

#include "cli/call_plan.h"
#include "cli/context.h"
#include "cli/explanation.h"

namespace hive::cli {

struct ExplainOptions {
  CallWords call;
  AskedAs as;
};

/// `myrmex explain`: what every gate would say to a call, and the line of the configuration that decides. Nothing runs.
ExitCode run_explain(Context& context, const ExplainOptions& options);

}  // namespace hive::cli
