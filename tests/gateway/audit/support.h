#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "crypto/scratch_folder.h"
#include "gateway/audit/log.h"

namespace hive::audit {

inline constexpr std::string_view test_origin = "hive.test/audit";

inline Record record(std::string action, std::string call_id = {}) {
  Record made;
  made.kind = RecordKind::event;
  made.action = std::move(action);
  made.call_id = std::move(call_id);
  made.principal = "ann";
  return made;
}

inline Record intent(std::string call_id) {
  Record made = record("tool_call", std::move(call_id));
  made.kind = RecordKind::intent;
  return made;
}

inline Record outcome(std::string call_id, protocol::Outcome how) {
  Record made = record("tool_call", std::move(call_id));
  made.kind = RecordKind::outcome;
  made.outcome = how;
  return made;
}

/// Appends and waits until the entry is on disk.
inline Result<std::uint64_t> append_and_wait(Log& log, Record made) {
  std::promise<Result<std::uint64_t>> done;
  auto queued =
      log.append(std::move(made), [&done](Result<std::uint64_t> result) { done.set_value(std::move(result)); });
  if (!queued) return std::unexpected(queued.error());
  return done.get_future().get();
}

/// A folder with a key and a log in it.
class LogTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Log>> open() { return Log::open(options_, key_); }

  std::unique_ptr<Log> open_good() {
    auto log = open();
    if (!log) ADD_FAILURE() << log.error().message;
    return log ? std::move(*log) : nullptr;
  }

  /// A closed log with `batches` batches of one entry each.
  void write_batches(int batches) {
    auto log = open_good();
    ASSERT_TRUE(log);
    for (int i = 0; i < batches; ++i)
      ASSERT_TRUE(append_and_wait(*log, record("step", std::to_string(i))));
  }

  [[nodiscard]] std::string content() const { return test::content_of(options_.path); }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> result;
    std::string text = content();
    for (std::string_view line : split(text, '\n'))
      if (!line.empty()) result.emplace_back(line);
    return result;
  }
  void replace_content(std::string_view text) const { folder_.write("audit.log", text); }

  test::ScratchFolder folder_;
  crypto::PrivateKey key_ = crypto::PrivateKey::generate("host").value();
  LogOptions options_ = {.path = folder_.path("audit.log"), .origin = std::string(test_origin)};
};

}  // namespace hive::audit
