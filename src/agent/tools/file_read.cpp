#include "agent/arguments.h"
#include "agent/tools/file_access.h"
#include "agent/tools/tools.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "exec/output.h"
#include "protocol/json.h"

namespace hive::agent {

namespace {

constexpr size_t max_content_bytes = size_t{64} << 10;

// Which rule of the configuration admits a path.
class ReadPolicy {
 public:
  explicit ReadPolicy(const ToolServices& services) : services_(services) {}

  [[nodiscard]] const std::string* root_of(std::string_view path) const {
    for (const std::string& root : services_.config.file_read_roots) {
      auto normal = normalise_path(root);
      if (normal && lies_under(path, *normal)) return &root;
    }
    return nullptr;
  }

  // Configurations of the reference name readable files in their entry for cat. Nothing runs for it here.
  [[nodiscard]] bool cat_admits(const std::string& path) const {
    return !services_.allowlist.refusal_of("cat", std::vector<std::string>{path});
  }

 private:
  const ToolServices& services_;
};

Result<UniqueFd> open_permitted(const ReadPolicy& policy, const std::string& path) {
  if (const std::string* root = policy.root_of(path)) {
    std::string normal_root = TRY(normalise_path(*root));
    return open_beneath(normal_root, path);
  }
  UniqueFd file = TRY(open_anywhere(path));
  // The name was admitted; where it leads must be as well.
  std::string real = TRY(real_path(file));
  if (real != path && !policy.cat_admits(real)) {
    return fail(ErrorCode::permission_denied, "{} leads to a file that is not in the approved allowlist", quote(path));
  }
  return file;
}

ToolReply reply_for(const Error& error) {
  switch (error.code) {
    case ErrorCode::permission_denied:
      return denied("path_not_allowed", "file_read is not in the approved allowlist for this file: " + error.message);
    case ErrorCode::not_found:
      return failed("not_found", "command failed: " + error.message);
    default:
      return failed("read_failed", "command failed: " + error.message);
  }
}

ToolReply read_permitted(const ReadPolicy& policy, const std::string& path) {
  auto file = open_permitted(policy, path);
  if (!file) return reply_for(file.error());
  auto content = read_start(*file, max_content_bytes);
  if (!content) return reply_for(with_context(std::move(content).error(), quote(path)));
  if (content->truncated) content->bytes.resize(content->bytes.size() - utf8::incomplete_suffix(content->bytes));
  exec::RenderedOutput rendered =
      exec::render({.head = content->bytes, .tail = {}, .total_bytes = content->bytes.size(), .omitted_bytes = 0},
                   2 * max_content_bytes);
  ToolReply reply;
  reply.structured =
      fmt::format(R"({{"path":{},"size_bytes":{},"truncated":{},"content":{})", json::encode_string(path),
                  content->size_bytes, content->truncated, json::encode_string(rendered.text));
  if (rendered.is_binary) reply.structured += fmt::format(R"(,"content_base64":"{}")", rendered.base64);
  reply.structured += '}';
  reply.text = std::move(rendered.text);
  if (content->truncated) reply.text += "\n[truncated at 64KB]";
  return reply;
}

}  // namespace

CancelHook file_read(ToolServices& services, ToolCall call) {
  Arguments arguments = HIVE_TRY_ARGUMENT(call, Arguments::parse(call.arguments, "file_read", false));
  std::string given = HIVE_TRY_ARGUMENT(call, arguments.required_string("path"));
  std::string path = HIVE_TRY_ARGUMENT(call, normalise_path(given));
  ReadPolicy policy(services);
  if (policy.root_of(path) == nullptr && !policy.cat_admits(path)) {
    call.reply(denied("path_not_allowed",
                      fmt::format("file_read of {} is not in the approved allowlist: it lies under no folder of "
                                  "file_read_roots",
                                  quote(path))));
    return {};
  }
  return run_in_pool(services, std::move(call), [policy, path] { return read_permitted(policy, path); });
}

}  // namespace hive::agent
