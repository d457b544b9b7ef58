#pragma once

#include <string>
#include <string_view>

#include "gateway/calls/fan_out.h"

namespace hive::rest {

/// {"agent":...,"outcome":...,"reason":...,"duration_us":...,"result":{...}} with "error" in the place of "result"
/// where the call has one; "approval_required" stands for an outcome where the call waits for people. Without
/// `with_body`, "left_out_bytes" says how long it would be.
std::string fan_out_result_json(const calls::FanOutResult& result, bool with_body = true);

/// {"fan_out":ID,"agents":N,"left_out":N}
std::string fan_out_start_json(std::string_view id, const calls::RunningFanOut& running);

/// {"success":N,...}: every outcome there is, and approval_required.
std::string fan_out_counts_json(const calls::FanOutCounts& counts);

/// {"fan_out":ID,"agents":N,"left_out":N,"counts":{...},"not_started":N,"stopped_by":...,"duration_us":N}
std::string fan_out_end_json(std::string_view id, const calls::RunningFanOut& running, const calls::FanOutEnd& end);

/// {"dry_run":true,"tier":...,"left_out":N,"agents":[{"agent":...,"online":...,"verdict":...,"reason":...,"message":...}]}
std::string fan_out_preview_json(const calls::FanOutPreview& preview);

}  // namespace hive::rest
