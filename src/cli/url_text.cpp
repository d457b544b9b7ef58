#include "cli/url_text.h"

#include "base/result.h"

namespace hive::cli {

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (char c : text) {
    bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                    c == '_' || c == '.' || c == '~';
    encoded += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace hive::cli
