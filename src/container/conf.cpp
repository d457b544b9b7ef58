#include "container/conf.h"

#include <algorithm>

#include <sys/stat.h>

#include "base/file.h"
#include "base/strings.h"

namespace hive::container {

namespace {

constexpr size_t max_conf_bytes = size_t{256} << 10;
constexpr size_t max_keys = 256;

bool is_key_character(char c, bool first) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (!first && c >= '0' && c <= '9');
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/// One pass over the text; `line_` is where it stands.
class Reader {
 public:
  Reader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<std::map<std::string, std::string, std::less<>>> read() {
    std::map<std::string, std::string, std::less<>> values;
    while (skip_to_key()) {
      std::string key = TRY(read_key());
      std::string value = TRY(read_value());
      // systemd lets the last of several win; a file in which one key comes twice is a mistake or a trick.
      if (!values.emplace(key, std::move(value)).second) return broken("{} comes twice", key);
      if (values.size() > max_keys) return broken("more than {} keys", max_keys);
    }
    return values;
  }

 private:
  template <class... Args>
  std::unexpected<Error> broken(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::invalid_argument, "{}:{}: {}", path_, line_,
                fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }

  char take() {
    char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
  }

  bool skip_to_key() {
    while (!at_end()) {
      char c = text_[at_];
      if (c == '#' || c == ';') {
        while (!at_end() && text_[at_] != '\n')
          ++at_;
      } else if (is_blank(c) || c == '\n' || c == '\r') {
        take();
      } else {
        return true;
      }
    }
    return false;
  }

  Result<std::string> read_key() {
    std::string key;
    while (!at_end() && is_key_character(text_[at_], key.empty()))
      key += take();
    if (key.empty() || at_end() || text_[at_] != '=') return broken("no KEY=VALUE");
    take();
    return key;
  }

  Result<std::string> read_value() {
    while (!at_end() && is_blank(text_[at_]))
      take();
    std::string value;
    if (!at_end() && (text_[at_] == '"' || text_[at_] == '\'')) {
      TRY(read_quoted(take(), value));
      while (!at_end() && (is_blank(text_[at_]) || text_[at_] == '\r'))
        take();
      if (!at_end() && text_[at_] != '\n') return broken("something stands behind the closing quote");
    } else {
      while (!at_end() && text_[at_] != '\n') {
        char c = take();
        if (c == '\\' || c == '"' || c == '\'') return broken("quotes and backslashes need quotes around the value");
        value += c;
      }
      value = std::string(trim(value));
    }
    if (value.find('\0') != std::string::npos) return broken("a value holds a NUL");
    return value;
  }

  Result<void> read_quoted(char mark, std::string& value) {
    const size_t opened_at = line_;
    while (!at_end()) {
      char c = take();
      if (c == mark) return {};
      if (c == '\\' && mark == '"') {
        if (at_end()) break;
        c = take();
        if (c == '\n') continue;
        // Before any other character the backslash stays, as in a shell.
        if (std::string_view("\"\\`$").find(c) == std::string_view::npos) value += '\\';
      }
      value += c;
    }
    line_ = opened_at;
    return broken("the quote that opens here is not closed");
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  size_t line_ = 1;
};

}  // namespace

Result<Conf> Conf::parse(std::string_view text, const std::string& path) {
  if (text.size() > max_conf_bytes) {
    return fail(ErrorCode::resource_exhausted, "{}: larger than {} bytes", path, max_conf_bytes);
  }
  Conf conf;
  conf.path_ = path;
  conf.values_ = TRY(Reader(text, path).read());
  return conf;
}

Result<Conf> Conf::load(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::unexpected(system_error(errno, path));
  if (status.st_uid != 0 || (status.st_mode & 022) != 0) {
    return fail(ErrorCode::permission_denied,
                "{}: others than root can change it; run: chown root:root {} && chmod 644 {}", path, path, path);
  }
  return parse(TRY(read_file(path, max_conf_bytes)), path);
}

std::string_view Conf::get(std::string_view key) const {
  auto found = values_.find(key);
  return found == values_.end() ? std::string_view() : std::string_view(found->second);
}

Result<bool> Conf::flag(std::string_view key) const {
  std::string_view value = get(key);
  if (value == "1") return true;
  if (value.empty() || value == "0") return false;
  return fail(ErrorCode::invalid_argument, "{}: {}={}: only 1 or 0", path_, key, quote(value));
}

}  // namespace hive::container
