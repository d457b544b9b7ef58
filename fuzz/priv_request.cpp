// What the root helper takes for a request has one meaning, and names in it are what the rules say.
#include "fuzz_target.h"
#include "priv/bind_rules.h"
#include "priv/names.h"
#include "priv/request.h"
#include "priv/settings.h"

using namespace hive;
using namespace hive::priv;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view line = fuzz::as_text(data, size);
  auto parsed = parse_request(line);
  if (!parsed) {
    CHECK(parsed.error().code == Code::bad_request || parsed.error().code == Code::unknown_op);
    CHECK(parsed.error().message.find_first_of("\n\x1b") == std::string::npos);
    return 0;
  }
  CHECK(line.size() <= max_request_bytes);
  CHECK(parsed->operation != nullptr);
  std::string_view container = container_of(parsed->request);
  CHECK(container.find('\0') == std::string_view::npos);
  if (check_agent_container(container)) {
    CHECK(container.size() <= 11 && container.find_first_of("/.%@\n") == std::string_view::npos);
  }
  auto* flags = std::get_if<WriteFlagsRequest>(&parsed->request);
  if (flags == nullptr) return 0;
  CHECK(flags->binds.size() <= max_binds);
  static const Layout layout;
  static const Settings settings = Settings::defaults(layout);
  if (check_binds(flags->binds, "iris", settings, layout)) {
    for (const Bind& bind : flags->binds) {
      for (std::string_view path : {std::string_view(bind.host_path), std::string_view(bind.container_path)}) {
        CHECK(path.starts_with('/') && path.find("/../") == std::string_view::npos);
        CHECK(path.find_first_of(" \t\n\"'\\:*?[]$`") == std::string_view::npos);
      }
      CHECK(bind.host_path.starts_with("/var/lib/hyperhive/"));
    }
  }
  if (flags->isolation && check_isolation(flags->isolation, settings)) CHECK(flags->isolation->bridge == "hive0");
  return 0;
}
