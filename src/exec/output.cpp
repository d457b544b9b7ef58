#include "exec/output.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/utf8.h"

namespace hive::exec {

namespace {

// How many bytes of the text are not part of valid UTF-8.
size_t count_invalid(std::string_view text) {
  size_t count = 0;
  while (!text.empty()) {
    utf8::Decoded decoded = utf8::decode_first(text);
    if (!decoded.valid) count += decoded.size_bytes;
    text.remove_prefix(decoded.size_bytes);
  }
  return count;
}

bool looks_binary(std::string_view bytes) {
  if (bytes.find('\0') != std::string_view::npos) return true;
  if (utf8::is_valid(bytes)) return false;
  // A few odd bytes are text in another encoding; a third of them is no text.
  size_t invalid = count_invalid(bytes);
  return invalid >= 8 && invalid * 3 > bytes.size();
}

std::string_view without_leading_continuation(std::string_view text) {
  for (int i = 0; i < 3 && !text.empty() && (static_cast<unsigned char>(text[0]) & 0xc0) == 0x80; ++i)
    text.remove_prefix(1);
  return text;
}

}  // namespace

OutputCapture::OutputCapture(size_t max_bytes) : head_limit_(max_bytes - max_bytes / 4), tail_limit_(max_bytes / 4) {}

void OutputCapture::append(std::string_view bytes) {
  total_ += bytes.size();
  if (head_.size() < head_limit_) {
    std::string_view part = bytes.substr(0, head_limit_ - head_.size());
    head_ += part;
    bytes.remove_prefix(part.size());
  }
  if (bytes.empty() || tail_limit_ == 0) return;
  if (bytes.size() >= tail_limit_) {
    tail_.assign(bytes.substr(bytes.size() - tail_limit_));
    tail_start_ = 0;
    return;
  }
  if (tail_.size() < tail_limit_) {
    std::string_view part = bytes.substr(0, tail_limit_ - tail_.size());
    tail_ += part;
    bytes.remove_prefix(part.size());
  }
  while (!bytes.empty()) {
    size_t count = std::min(bytes.size(), tail_limit_ - tail_start_);
    tail_.replace(tail_start_, count, bytes.substr(0, count));
    tail_start_ = (tail_start_ + count) % tail_limit_;
    bytes.remove_prefix(count);
  }
}

CapturedOutput OutputCapture::take() {
  std::rotate(tail_.begin(), tail_.begin() + static_cast<std::ptrdiff_t>(tail_start_), tail_.end());
  tail_start_ = 0;
  CapturedOutput output{.head = std::move(head_), .tail = std::move(tail_), .total_bytes = total_, .omitted_bytes = 0};
  output.omitted_bytes = total_ - output.head.size() - output.tail.size();
  if (output.omitted_bytes == 0) {
    output.head += output.tail;
    output.tail.clear();
  }
  head_.clear();
  tail_.clear();
  total_ = 0;
  return output;
}

RenderedOutput render(const CapturedOutput& output, size_t max_bytes) {
  RenderedOutput rendered;
  rendered.total_bytes = output.total_bytes;
  std::string_view head = output.head;
  std::string_view tail = output.tail;
  if (looks_binary(head) || looks_binary(tail)) {
    rendered.is_binary = true;
    head = head.substr(0, max_bytes / 4 * 3);
    rendered.base64 = to_base64(as_bytes(head));
    rendered.omitted_bytes = output.total_bytes - head.size();
    rendered.text = fmt::format("[binary output, {} bytes]", output.total_bytes);
    return rendered;
  }
  if (head.size() + tail.size() > max_bytes) {
    size_t tail_share = max_bytes / 4;
    if (tail.empty()) {
      tail = head.substr(head.size() - tail_share);
    } else if (tail.size() > tail_share) {
      tail = tail.substr(tail.size() - tail_share);
    }
    head = head.substr(0, max_bytes - tail_share);
  }
  if (head.size() + tail.size() < output.total_bytes) {
    head.remove_suffix(utf8::incomplete_suffix(head));
    tail = without_leading_continuation(tail);
  }
  rendered.omitted_bytes = output.total_bytes - head.size() - tail.size();
  rendered.was_replaced = !utf8::is_valid(head) || !utf8::is_valid(tail);
  rendered.text = utf8::replace_invalid(head);
  if (rendered.omitted_bytes > 0) {
    rendered.text += fmt::format("\n[{} bytes omitted]\n", rendered.omitted_bytes);
    rendered.text += utf8::replace_invalid(tail);
  }
  return rendered;
}

void OutputStream::append(std::string_view bytes) {
  size_t room = max_pending_ - std::min(max_pending_, pending_.size());
  if (bytes.size() > room) {
    skipped_ += bytes.size() - room;
    bytes = bytes.substr(0, room);
  }
  pending_ += bytes;
}

bool OutputStream::has_text() const {
  return skipped_ > 0 || pending_.size() > utf8::incomplete_suffix(pending_);
}

std::string OutputStream::take() {
  // After a gap the rest of a cut code point never comes.
  size_t held = skipped_ > 0 ? 0 : utf8::incomplete_suffix(pending_);
  std::string text = utf8::replace_invalid(std::string_view(pending_).substr(0, pending_.size() - held));
  if (skipped_ > 0) text += fmt::format("\n[{} bytes skipped]\n", skipped_);
  pending_.erase(0, pending_.size() - held);
  skipped_ = 0;
  return text;
}

}  // namespace hive::exec
