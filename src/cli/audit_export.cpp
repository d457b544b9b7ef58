#include "cli/audit_export.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "cli/audit_files.h"
#include "cli/exit_code.h"
#include "gateway/audit/chain.h"
#include "gateway/audit/line_reader.h"
#include "gateway/audit/log_source.h"

namespace hive::cli {

namespace {

// Standard output, or a file that appears under its name only when it is complete.
class ExportTarget {
 public:
  static Result<ExportTarget> open(const std::string& path) {
    ExportTarget target;
    target.path_ = path;
    if (path.empty()) return target;
    target.temporary_ = path + ".XXXXXX";
    int fd = ::mkostemp(target.temporary_.data(), O_CLOEXEC);
    if (fd < 0) return std::unexpected(system_error(errno, path));
    target.file_.reset(::fdopen(fd, "w"));
    if (!target.file_) {
      ::close(fd);
      return std::unexpected(system_error(errno, path));
    }
    return target;
  }

  ExportTarget(ExportTarget&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), file_(std::move(other.file_)) {}
  ExportTarget& operator=(ExportTarget&&) = delete;
  ~ExportTarget() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  void write(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stream()); }

  Result<void> finish() {
    if (std::fflush(stream()) != 0 || std::ferror(stream()) != 0) {
      return std::unexpected(system_error(errno, path_.empty() ? "standard output" : path_));
    }
    if (path_.empty()) return {};
    if (::fsync(::fileno(file_.get())) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return std::unexpected(system_error(errno, path_));
    }
    temporary_.clear();
    return {};
  }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  ExportTarget() = default;
  [[nodiscard]] std::FILE* stream() const { return file_ ? file_.get() : stdout; }

  std::string path_;
  std::string temporary_;
  std::unique_ptr<std::FILE, Closer> file_;
};

// Turns entry lines into the wanted format.
class Exporter {
 public:
  Exporter(ExportTarget& target, bool csv) : target_(target), csv_(csv) {}

  void begin() {
    if (!csv_) return target_.write("[");
    std::string header;
    for (size_t i = 0; i < audit::field_count; ++i) {
      if (i > 0) header += ',';
      header += audit::to_string(static_cast<audit::Field>(i));
    }
    target_.write(header + "\r\n");
  }

  Result<void> add(std::string_view line) {
    ++count_;
    if (!csv_) {
      target_.write(count_ == 1 ? "\n" : ",\n");
      target_.write(line);
      return {};
    }
    audit::EntryView entry = TRY(audit::EntryView::parse(line));
    std::string row;
    for (size_t i = 0; i < audit::field_count; ++i) {
      if (i > 0) row += ',';
      row += csv_cell(entry.text(static_cast<audit::Field>(i)));
    }
    target_.write(row + "\r\n");
    return {};
  }

  void end() {
    if (!csv_) target_.write(count_ == 0 ? "]\n" : "\n]\n");
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  ExportTarget& target_;
  bool csv_;
  std::uint64_t count_ = 0;
};

Result<std::uint64_t> export_log(const AuditExportOptions& options, ExportTarget& target) {
  std::optional<crypto::PublicKey> key;
  if (!options.host_key.empty()) key = TRY(read_host_key(options.host_key));
  audit::LogSource source = TRY(audit::LogSource::open(options.log));
  audit::LineReader reader(source.fd.get(), options.log);
  audit::Chain chain;
  Exporter exporter(target, options.csv);
  exporter.begin();
  // Entries wait for the checkpoint that covers them: what is not signed yet is no record yet.
  std::vector<std::string> waiting;
  std::uint64_t line_number = 0;
  while (auto line = TRY(reader.next())) {
    ++line_number;
    auto kind = TRY_CONTEXT(fmt::format("{}: line {}", options.log, line_number), chain.add(*line));
    if (kind == audit::Chain::Line::entry) {
      waiting.emplace_back(*line);
      continue;
    }
    for (const std::string& entry : waiting)
      TRY(exporter.add(entry));
    waiting.clear();
    if (reader.offset() >= source.size) break;
  }
  if (!chain.last_checkpoint()) {
    return fail(ErrorCode::corrupt, "{} has no checkpoint: nothing in it is signed", options.log);
  }
  if (key) TRY_CONTEXT(options.log, audit::verify_checkpoint(*chain.last_checkpoint(), *key));
  if (!waiting.empty()) {
    print_error(fmt::format("{}: {} entries at the end, which no checkpoint covers yet, are left out", options.log,
                            waiting.size()));
  }
  exporter.end();
  return exporter.count();
}

}  // namespace

std::string csv_cell(std::string_view text) {
  std::string cell;
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) cell = "'";
  cell += text;
  if (cell.find_first_of(",\"\r\n") == std::string::npos && cell != "'") return cell;
  std::string quoted = "\"";
  for (char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted += '"';
}

int run_audit_export(const AuditExportOptions& options) {
  auto target = ExportTarget::open(options.out);
  if (!target) return report_error(target.error());
  auto exported = export_log(options, *target);
  if (!exported) return report_error(exported.error());
  if (auto finished = target->finish(); !finished) return report_error(finished.error());
  if (!options.out.empty()) {
    std::fputs(fmt::format("{} entries written to {}\n", *exported, escape_for_terminal(options.out)).c_str(), stderr);
  }
  return static_cast<int>(ExitCode::success);
}

}  // namespace hive::cli
