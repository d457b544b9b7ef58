#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hive::upstreams {

/// Whether a URI may have been made from a URI template (RFC 6570). Values are not checked against each other: it is
/// for the server to say whether it knows the resource. Takes time in proportion to the length of both.
class UriTemplate {
 public:
  /// Templates that are not well-formed, have more than 8 expressions or are longer than 1,024 bytes match nothing; nor
  /// do URIs of more than 2,048 bytes.
  explicit UriTemplate(std::string_view text);

  [[nodiscard]] bool matches(std::string_view uri) const;

 private:
  struct Part {
    enum class Kind {
      literal,
      segment,  ///< one or more characters that are not reserved
      any       ///< any characters, also none
    };
    Kind kind = Kind::literal;
    std::string text;  ///< of a literal
  };

  std::vector<Part> parts_;
};

}  // namespace hive::upstreams
