#include "gateway/audit/verifier.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "base/strings.h"
#include "gateway/audit/chain.h"
#include "gateway/audit/line_reader.h"
#include "gateway/audit/log_source.h"
#include "gateway/audit/log_statistics.h"

namespace hive::audit {

namespace {

constexpr auto patience_step = std::chrono::milliseconds(10);

// Seconds since 1970 of our own time stamps; 0 for any other text.
std::int64_t seconds_of(const std::string& time) {
  std::tm parts{};
  if (std::sscanf(time.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6) {
    return 0;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return ::timegm(&parts);
}

}  // namespace

struct Verifier::State {
  explicit State(VerifyOptions verify_options) : options(std::move(verify_options)), chain(options.origin) {
    std::ranges::sort(options.remembered, {}, &Checkpoint::size);
  }

  void fail_at(std::uint64_t line, std::string reason) {
    if (!report.failure) report.failure = VerifyFailure{line, std::move(reason)};
  }

  void add_line(std::string_view line);
  void add_checkpoint();
  void check_remembered();
  void judge_end(const std::string& path, bool unsealed);
  void fill_report();

  VerifyOptions options;
  Chain chain;
  LogStatistics statistics;
  VerifyReport report;
  std::uint64_t offset = 0;
  size_t next_remembered = 0;
  std::int64_t last_checkpoint_seconds = 0;
  dev_t device = 0;
  ino_t inode = 0;
};

void Verifier::State::add_line(std::string_view line) {
  ++report.lines;
  if (chain.entries() == 0) check_remembered();
  auto added = chain.add(line);
  if (!added) return fail_at(report.lines, std::move(added).error().message);
  if (*added == Chain::Line::checkpoint) return add_checkpoint();
  statistics.add(chain.entry());
  check_remembered();
}

void Verifier::State::add_checkpoint() {
  const SealedCheckpoint& sealed = *chain.last_checkpoint();
  if (options.every_signature) {
    auto verified = verify_checkpoint(sealed, options.key);
    if (!verified) return fail_at(report.lines, std::move(verified).error().message);
  }
  std::int64_t seconds = seconds_of(sealed.checkpoint.time);
  if (last_checkpoint_seconds != 0) {
    report.longest_silence_seconds = std::max(report.longest_silence_seconds, seconds - last_checkpoint_seconds);
  }
  last_checkpoint_seconds = seconds;
}

void Verifier::State::check_remembered() {
  for (; next_remembered < options.remembered.size(); ++next_remembered) {
    const Checkpoint& checkpoint = options.remembered[next_remembered];
    if (checkpoint.size != chain.entries()) return;
    if (chain.root() == checkpoint.root) continue;
    return fail_at(report.lines, fmt::format("the first {} entries are not those of the remembered checkpoint: history "
                                             "was rewritten",
                                             checkpoint.size));
  }
}

// What can only be said when the last line has been read.
void Verifier::State::judge_end(const std::string& path, bool unsealed) {
  const auto& last = chain.last_checkpoint();
  if (!last) return fail_at(0, fmt::format("{} has no checkpoint: nothing in it is signed", path));
  if (unsealed) {
    return fail_at(
        report.lines + 1,
        fmt::format("behind the last checkpoint ({} entries) stand lines that no checkpoint covers: the end of "
                    "the log was cut, or its gateway crashed and has not been started since",
                    last->checkpoint.size));
  }
  auto verified = verify_checkpoint(*last, options.key);
  if (!verified) return fail_at(report.lines, std::move(verified).error().message);
  for (const Checkpoint& checkpoint : options.remembered) {
    if (checkpoint.origin != last->checkpoint.origin) {
      return fail_at(0, fmt::format("the remembered checkpoint is of the log {}, this log is {}",
                                    quote(checkpoint.origin), quote(last->checkpoint.origin)));
    }
    if (chain.entries() >= checkpoint.size) continue;
    return fail_at(0,
                   fmt::format("the log has {} entries, but had {} at the remembered checkpoint: its end was removed",
                               chain.entries(), checkpoint.size));
  }
  if (chain.entries() < options.min_size) {
    return fail_at(0, fmt::format("the log has {} entries, fewer than the {} that are expected", chain.entries(),
                                  options.min_size));
  }
}

void Verifier::State::fill_report() {
  statistics.fill(report);
  report.entries = chain.entries();
  report.checkpoints = chain.checkpoints();
  report.bytes = offset;
  report.origin = chain.origin();
  report.last_checkpoint = chain.last_checkpoint();
  // A log that failed before its end still names a signer, and only the signature says whether that is true.
  report.last_signed = report.last_checkpoint && verify_checkpoint(*report.last_checkpoint, options.key).has_value();
}

Verifier::Verifier(VerifyOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Verifier::~Verifier() = default;
Verifier::Verifier(Verifier&&) noexcept = default;
Verifier& Verifier::operator=(Verifier&&) noexcept = default;

const VerifyReport& Verifier::report() const {
  return state_->report;
}

Result<void> Verifier::update(const std::string& path) {
  State& state = *state_;
  if (state.report.failure) return {};
  LogSource source = TRY(LogSource::open(path));
  bool first_look = state.report.lines == 0;
  bool same_file = first_look || (source.device == state.device && source.inode == state.inode);
  if (!same_file || source.size < state.offset) {
    state.fail_at(0, fmt::format("{} was {} since the last look", path, same_file ? "made shorter" : "replaced"));
    return {};
  }
  state.device = source.device;
  state.inode = source.inode;

  LineReader reader(source.fd.get(), path, state.offset);
  auto deadline = std::chrono::steady_clock::now() + state.options.patience;
  bool unsealed = false;
  bool sealed_here = state.chain.last_checkpoint().has_value();
  while (!state.report.failure) {
    auto next = reader.next();
    if (!next && next.error().code == ErrorCode::corrupt) {
      state.fail_at(state.report.lines + 1, next.error().message);
      break;
    }
    if (!next) return std::unexpected(std::move(next).error());
    if (*next) {
      state.add_line(**next);
      state.offset = reader.offset();
      sealed_here = is_checkpoint_line(**next);
      // Under load the end moves on all the time: the size at the start is what was asked about.
      if (sealed_here && state.offset >= source.size) break;
      continue;
    }
    unsealed = !sealed_here || !reader.unterminated().empty();
    if (!unsealed || std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(patience_step);
  }
  if (!state.report.failure) state.judge_end(path, unsealed);
  state.fill_report();
  return {};
}

Result<VerifyReport> verify_log(const std::string& path, VerifyOptions options) {
  Verifier verifier(std::move(options));
  TRY(verifier.update(path));
  return verifier.report();
}

}  // namespace hive::audit
