#include "gateway/surfaces/rest/fan_out_json.h"

#include "gateway/surfaces/rest/call_answer.h"
#include "gateway/surfaces/rest/object_writer.h"

namespace hive::rest {

namespace {

void append_summary(ObjectWriter& object, std::string_view id, const calls::RunningFanOut& running) {
  object.text("fan_out", id).number("agents", running.agents().size()).number("left_out", running.left_out());
}

}  // namespace

std::string fan_out_result_json(const calls::FanOutResult& result, bool with_body) {
  const calls::CallResult& call = result.call;
  std::string out = "{";
  if (with_body) out.reserve(call.body.size() + 256);
  ObjectWriter object(out);
  object.text("agent", result.agent);
  if (!call.approval_id.empty()) {
    object.text("outcome", "approval_required")
        .text("reason", call.reason)
        .text("approval_id", call.approval_id)
        .text("expires_at", format_rfc3339(call.approval_expires_at))
        .number("required", call.approvals_needed);
    return out + "}";
  }
  object.text("outcome", protocol::to_string(call.outcome));
  if (!call.reason.empty()) object.text("reason", call.reason);
  if (call.is_error) object.text("message", error_message(call));
  object.number("duration_us", call.duration_us);
  if (call.retry_after.count() > 0) {
    object.number("retry_after_ms", static_cast<std::uint64_t>(call.retry_after.count()));
  }
  if (with_body) {
    object.raw(call.is_error ? "error" : "result", call.body);
  } else {
    object.number("left_out_bytes", call.body.size());
  }
  return out + "}";
}

std::string fan_out_start_json(std::string_view id, const calls::RunningFanOut& running) {
  std::string out = "{";
  ObjectWriter object(out);
  append_summary(object, id, running);
  return out + "}";
}

std::string fan_out_counts_json(const calls::FanOutCounts& counts) {
  std::string out = "{";
  ObjectWriter object(out);
  for (std::size_t i = 0; i < calls::FanOutCounts::outcomes; ++i)
    object.number(protocol::to_string(static_cast<protocol::Outcome>(i)), counts.by_outcome[i]);
  object.number("approval_required", counts.approval_required);
  return out + "}";
}

std::string fan_out_end_json(std::string_view id, const calls::RunningFanOut& running, const calls::FanOutEnd& end) {
  std::string out = "{";
  ObjectWriter object(out);
  append_summary(object, id, running);
  object.raw("counts", fan_out_counts_json(end.counts)).number("not_started", end.not_started);
  if (!end.stopped_by.empty()) object.text("stopped_by", end.stopped_by);
  object.number("duration_us", end.duration_us);
  return out + "}";
}

std::string fan_out_preview_json(const calls::FanOutPreview& preview) {
  std::string out = "{";
  ObjectWriter object(out);
  object.boolean("dry_run", true)
      .text("tier", protocol::to_string(preview.tier))
      .number("left_out", preview.left_out)
      .raw("agents", "[");
  for (const calls::FanOutForecast& forecast : preview.agents) {
    if (!out.ends_with('[')) out += ',';
    out += '{';
    ObjectWriter entry(out);
    entry.text("agent", forecast.agent).text("verdict", policy::to_string(forecast.verdict));
    if (forecast.online) entry.boolean("online", *forecast.online);
    if (!forecast.reason.empty()) entry.text("reason", forecast.reason).text("message", forecast.message);
    out += '}';
  }
  return out + "]}";
}

}  // namespace hive::rest
