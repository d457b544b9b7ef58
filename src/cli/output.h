#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hive::cli {

/// How commands write their results.
struct OutputOptions {
  bool json = false;   ///< -o json
  bool color = false;  ///< standard output is a terminal and nobody said no
};

/// Where a command writes. Remote text must be made safe (escape_for_terminal, json_for_terminal) before it comes here.
/// A failed write is remembered, so that the program can end with an error; later writes are dropped.
class Output {
 public:
  Output(int out_fd, int error_fd) : out_fd_(out_fd), error_fd_(error_fd) {}

  /// To standard output, at once.
  void write(std::string_view text);
  /// A line to standard error; the newline is added.
  void note(std::string_view line);

  /// Puts a text in the place of the line that standard error's terminal is in, which stays open; "" leaves it empty.
  void status(std::string_view text);
  [[nodiscard]] bool error_is_terminal() const;

  /// Whether standard output is a terminal.
  [[nodiscard]] bool is_terminal() const;
  /// Columns of the terminal; 0 when standard output is none, so that nothing needs to be cut.
  [[nodiscard]] std::size_t width() const;
  /// The errno value of the first failed write to standard output, or 0.
  [[nodiscard]] int write_error() const { return write_error_; }

 private:
  int out_fd_;
  int error_fd_;
  int write_error_ = 0;
};

enum class Style { plain, heading, good, warning, bad, faint };

/// `text` in SGR codes when `color` is set, otherwise unchanged.
std::string styled(std::string_view text, Style style, bool color);

/// How many terminal columns a UTF-8 text takes.
std::size_t display_width(std::string_view text);

/// At most `columns` wide, cut between code points, "..." at the end if something was cut.
std::string cut_to_width(std::string_view text, std::size_t columns);

/// As many of the items as fit into `columns`, and "+12 more" for the rest; "13 items" where not even one
/// does.
std::string cut_list(const std::vector<std::string>& items, std::string_view separator, std::size_t columns);

/// Left-aligned columns, at least three spaces apart. Cells are escaped for the terminal here. When `width` is not 0,
/// the last column is cut so that a line fits.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}
  void add(std::vector<std::string> cells);
  [[nodiscard]] std::string render(std::size_t width, bool color) const;

 private:
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hive::cli
