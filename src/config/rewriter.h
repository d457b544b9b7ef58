#pragma once

#include <string>
#include <string_view>

#include "config/key_tree.h"

namespace hive::config {

/// Writes a configuration anew, indented, with its members in their order, and asks about every value what to write for
/// it. Which values are secrets, the tree of keys says; what it does not know counts as one.
class Rewriter {
 public:
  explicit Rewriter(const KeyTree& keys) : keys_(keys) {}
  virtual ~Rewriter() = default;

  /// `document` is a JSON object that find_document() accepted.
  std::string rewrite(std::string_view document);

 protected:
  /// A text, number, truth value or null in a secret's place. `kind` is the place of the key, the same for all elements
  /// of a list. Returns JSON.
  virtual std::string secret_value(std::string_view raw, std::string_view kind, const std::string& field) = 0;
  /// The name of a member, where names are secrets.
  virtual std::string secret_name(const std::string& name, std::string_view kind, const std::string& field) = 0;
  /// The same as secret_value for what everybody may see.
  virtual std::string open_value(std::string_view raw, const std::string& field) = 0;

 private:
  /// What is known of a value by its place.
  struct Context {
    std::string field;
    std::string_view kind;
    bool is_secret = false;
    const KeyTree* keys = nullptr;  ///< of the objects in it; null: names are free
    KeyTree::Shape shape = KeyTree::Shape::value;
  };

  void write_value(std::string_view raw, const Context& context, std::size_t depth);
  void write_object(std::string_view raw, const Context& context, std::size_t depth);
  void write_list(std::string_view raw, const Context& context, std::size_t depth);
  void write_scalar(std::string_view raw, const Context& context);
  [[nodiscard]] static Context member_context(const Context& object, const std::string& name, std::string_view raw,
                                              std::size_t number);
  void break_line(std::size_t depth);

  const KeyTree& keys_;
  std::string out_;
};

}  // namespace hive::config
