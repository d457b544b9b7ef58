#include "cli/output.h"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cwchar>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/utf8.h"

namespace hive::cli {

namespace {

/// The errno value of the failure, or 0.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

constexpr std::size_t column_gap = 3;
constexpr std::size_t narrowest_last_column = 12;

int code_point_width(char32_t code_point) {
  // wcwidth knows the wide and the combining characters, but only in a UTF-8 locale, whatever the user's is.
  static const locale_t utf8_locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (code_point < 0x80 || utf8_locale == nullptr) return 1;
  locale_t before = ::uselocale(utf8_locale);
  int width = ::wcwidth(static_cast<wchar_t>(code_point));
  ::uselocale(before);
  return width < 0 ? 1 : width;
}

}  // namespace

void Output::write(std::string_view text) {
  if (write_error_ == 0) write_error_ = write_all(out_fd_, text);
}

void Output::note(std::string_view line) {
  std::string text(line);
  text += '\n';
  // Nowhere is left to say that standard error is closed; the exit code still tells how the command ended.
  static_cast<void>(write_all(error_fd_, text));
}

void Output::status(std::string_view text) {
  static_cast<void>(write_all(error_fd_, "\r\x1b[K" + std::string(text)));
}

bool Output::error_is_terminal() const {
  return ::isatty(error_fd_) == 1;
}

bool Output::is_terminal() const {
  return ::isatty(out_fd_) == 1;
}

std::size_t Output::width() const {
  winsize size{};
  if (!is_terminal()) return 0;
  if (::ioctl(out_fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string styled(std::string_view text, Style style, bool color) {
  std::string_view code;
  switch (style) {
    case Style::plain:
      break;
    case Style::heading:
      code = "1";
      break;
    case Style::good:
      code = "32";
      break;
    case Style::warning:
      code = "33";
      break;
    case Style::bad:
      code = "31";
      break;
    case Style::faint:
      code = "2";
      break;
  }
  if (!color || code.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    utf8::Decoded decoded = utf8::decode_first(text);
    width += decoded.valid ? static_cast<std::size_t>(code_point_width(decoded.code_point)) : 1;
    text.remove_prefix(decoded.size_bytes);
  }
  return width;
}

std::string cut_to_width(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  std::size_t room = columns > 3 ? columns - 3 : 0;
  std::size_t used = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    utf8::Decoded decoded = utf8::decode_first(text.substr(end));
    std::size_t width = decoded.valid ? static_cast<std::size_t>(code_point_width(decoded.code_point)) : 1;
    if (used + width > room) break;
    used += width;
    end += decoded.size_bytes;
  }
  return std::string(text.substr(0, end)) + std::string(std::min<std::size_t>(columns, 3), '.');
}

std::string cut_list(const std::vector<std::string>& items, std::string_view separator, std::size_t columns) {
  std::string whole;
  std::string shown;  // the longest beginning that fits with the count of the rest behind it
  for (std::size_t k = 0; k < items.size(); ++k) {
    if (k > 0) whole += separator;
    whole += items[k];
    std::size_t rest = items.size() - k - 1;
    std::string cut = rest == 0 ? whole : fmt::format("{} +{} more", whole, rest);
    // What steers a terminal is shown as an escape, which is longer.
    if (display_width(escape_for_terminal(cut)) <= columns) shown = std::move(cut);
    if (display_width(whole) > columns) break;
  }
  return shown.empty() && !items.empty() ? fmt::format("{} items", items.size()) : shown;
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(headings_.size());
  for (std::string& cell : cells)
    cell = escape_for_terminal(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::render(std::size_t width, bool color) const {
  std::size_t columns = headings_.size();
  std::vector<std::size_t> widths(columns);
  for (std::size_t k = 0; k < columns; ++k) {
    widths[k] = display_width(headings_[k]);
    for (const std::vector<std::string>& row : rows_)
      widths[k] = std::max(widths[k], display_width(row[k]));
  }
  std::size_t last_width = 0;  // 0: as wide as it is
  if (width != 0) {
    std::size_t before = 0;
    for (std::size_t k = 0; k + 1 < columns; ++k)
      before += widths[k] + column_gap;
    last_width = std::max(width > before ? width - before : 0, narrowest_last_column);
  }
  auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t k = 0; k < columns; ++k) {
      bool last = k + 1 == columns;
      text += last && last_width != 0 ? cut_to_width(cells[k], last_width) : cells[k];
      if (!last) text.append(widths[k] - display_width(cells[k]) + column_gap, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string text = styled(line(headings_), Style::heading, color) + '\n';
  for (const std::vector<std::string>& row : rows_)
    text += line(row) + '\n';
  return text;
}

}  // namespace hive::cli
