#include "config/rewriter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "config/document.h"

namespace hive::config {

namespace {

constexpr std::size_t short_list_bytes = 80;
constexpr std::string_view note_prefix = "_comment";

// Members of maps such as `tokens` may be a role instead of an object. Anything else there may be a token that was
// written on the wrong side of the colon.
bool is_role(std::string_view raw) {
  return raw == R"("admin")" || raw == R"("operator")" || raw == R"("read-only")";
}

bool is_container(std::string_view raw) {
  return json::is_object(raw) || json::is_array(raw);
}

std::vector<json::Member> members_of(std::string_view raw) {
  return json::parse_object(raw, document_limits).value_or(std::vector<json::Member>());
}

std::vector<std::string_view> elements_of(std::string_view raw) {
  return json::parse_array(raw, document_limits).value_or(std::vector<std::string_view>());
}

}  // namespace

std::string Rewriter::rewrite(std::string_view document) {
  out_.clear();
  write_value(document, {.field = {}, .kind = {}, .is_secret = false, .keys = &keys_, .shape = KeyTree::Shape::record},
              0);
  out_ += '\n';
  return std::move(out_);
}

void Rewriter::write_value(std::string_view raw, const Context& context, std::size_t depth) {
  // A list where an object belongs, or the other way round, is nothing the tables can speak of.
  bool fits = true;
  switch (context.shape) {
    case KeyTree::Shape::value:
      break;
    case KeyTree::Shape::record:
      fits = json::is_object(raw);
      break;
    case KeyTree::Shape::records:
      fits = json::is_array(raw);
      break;
    case KeyTree::Shape::map:
      fits = json::is_object(raw);
      break;
  }
  if (!fits) {
    Context unknown{.field = context.field, .kind = context.kind, .is_secret = true};
    return write_value(raw, unknown, depth);
  }
  if (json::is_object(raw)) return write_object(raw, context, depth);
  if (json::is_array(raw)) return write_list(raw, context, depth);
  write_scalar(raw, context);
}

Rewriter::Context Rewriter::member_context(const Context& object, const std::string& name, std::string_view raw,
                                           std::size_t number) {
  bool names_are_secret =
      object.keys != nullptr && object.shape == KeyTree::Shape::map && object.keys->info.secret_names;
  std::string shown = escape_for_terminal(std::string_view(name).substr(0, 256));
  std::string field = names_are_secret       ? fmt::format("{}[{}]", object.field, number)
                      : object.field.empty() ? shown
                                             : object.field + "." + shown;
  // What is put away as a note was often something else before.
  if (name.starts_with(note_prefix)) return {.field = std::move(field), .kind = note_prefix, .is_secret = true};
  if (object.is_secret) return {.field = std::move(field), .kind = object.kind, .is_secret = true};
  if (object.shape == KeyTree::Shape::map) {
    Context member{.field = std::move(field), .kind = object.kind, .is_secret = false, .keys = object.keys};
    if (json::is_object(raw)) member.shape = KeyTree::Shape::record;
    member.is_secret = json::is_array(raw) || (names_are_secret && !json::is_object(raw) && !is_role(raw));
    return member;
  }
  if (object.shape == KeyTree::Shape::record) {
    auto key = object.keys->children.find(name);
    if (key == object.keys->children.end()) return {.field = std::move(field), .kind = "?", .is_secret = true};
    const KeyTree& node = key->second;
    return {.field = std::move(field),
            .kind = node.place,
            .is_secret = node.info.secret && !node.info.secret_names,
            .keys = node.children.empty() ? nullptr : &node,
            .shape = node.shape};
  }
  return {.field = std::move(field), .kind = object.kind};
}

void Rewriter::write_object(std::string_view raw, const Context& context, std::size_t depth) {
  bool names_are_secret =
      context.keys != nullptr && context.shape == KeyTree::Shape::map && context.keys->info.secret_names;
  std::vector<json::Member> members = members_of(raw);
  out_ += '{';
  std::size_t number = 0;  // counted as the reader counts, without notes and nulls
  bool is_first = true;
  for (const json::Member& member : members) {
    Context inner = member_context(context, member.key, member.value, number);
    if (!member.key.starts_with(note_prefix) && !json::is_null(member.value)) ++number;
    if (!is_first) out_ += ',';
    is_first = false;
    break_line(depth + 1);
    json::append_string(out_, names_are_secret ? secret_name(member.key, context.kind, inner.field) : member.key);
    out_ += ": ";
    write_value(member.value, inner, depth + 1);
  }
  if (!members.empty()) break_line(depth);
  out_ += '}';
}

void Rewriter::write_list(std::string_view raw, const Context& context, std::size_t depth) {
  std::vector<std::string_view> elements = elements_of(raw);
  // What is written decides about the layout, so that a text looks the same after it was redacted and restored.
  std::vector<std::string> texts;
  std::size_t bytes = 0;
  for (std::size_t index = 0; index < elements.size(); ++index) {
    Context inner = context;
    inner.field = fmt::format("{}[{}]", context.field, index);
    inner.shape = context.shape == KeyTree::Shape::records ? KeyTree::Shape::record : KeyTree::Shape::value;
    std::string before = std::exchange(out_, {});
    write_value(elements[index], inner, depth + 1);
    bytes += out_.size() + 2;
    texts.push_back(std::exchange(out_, std::move(before)));
  }
  bool on_one_line = bytes <= short_list_bytes && std::ranges::none_of(elements, is_container);
  out_ += '[';
  for (std::size_t index = 0; index < texts.size(); ++index) {
    if (index > 0) out_ += on_one_line ? ", " : ",";
    if (!on_one_line) break_line(depth + 1);
    out_ += texts[index];
  }
  if (!texts.empty() && !on_one_line) break_line(depth);
  out_ += ']';
}

void Rewriter::write_scalar(std::string_view raw, const Context& context) {
  out_ += context.is_secret ? secret_value(raw, context.kind, context.field) : open_value(raw, context.field);
}

void Rewriter::break_line(std::size_t depth) {
  out_ += '\n';
  out_.append(2 * depth, ' ');
}

}  // namespace hive::config
