#include "priv/operations.h"

#include <cerrno>

#include <fcntl.h>

#include "base/strings.h"
#include "priv/beneath.h"
#include "priv/container_conf.h"
#include "priv/inventory.h"
#include "priv/machine_id.h"
#include "priv/names.h"
#include "priv/salvage.h"
#include "priv/switch.h"
#include "protocol/json_object.h"

namespace hive::priv {

namespace {

constexpr std::uint64_t protocol_version = 1;
constexpr size_t shown_bytes = 64;

std::string kept_trees(const std::vector<KeptTree>& trees) {
  std::string array = "[";
  for (const KeptTree& tree : trees) {
    if (array.size() > 1) array += ',';
    array += json::ObjectText()
                 .text("name", tree.name)
                 .text("path", tree.path)
                 .number("bytes", tree.bytes)
                 .number("entries", tree.entries)
                 .boolean("counted_all", tree.counted_all)
                 .take();
  }
  return array + ']';
}

Outcome<ConfFile> existing_conf(const Site& site, const std::string& container) {
  auto conf = read_container_conf(site.conf.get(), site.layout, container);
  if (conf) return *std::move(conf);
  if (conf.error().code == ErrorCode::not_found) {
    return refuse(Code::no_such_container, "there is no container {}", container);
  }
  return std::unexpected(Refusal(conf.error()));
}

std::string disk_of(const Site& site, int folder) {
  auto disk = site.host.disk_space(folder);
  if (!disk) return "null";
  return json::ObjectText()
      .number("total_bytes", disk->total_bytes)
      .number("available_bytes", disk->available_bytes)
      .take();
}

// "missing", "skeleton" or "content", or "unsafe" where something stands in the way that the next start will refuse.
Result<std::string> describe_root(const Site& site, const std::string& container) {
  UniqueFd root = open_beneath(site.roots.get(), container.c_str(), O_RDONLY | O_DIRECTORY);
  if (!root && errno == ENOENT) return "missing";
  if (!root) return "unsafe";
  return TRY(has_content(root.get())) ? "content" : "skeleton";
}

Outcome<Done> ping() {
  return Done{.result = json::ObjectText().text("version", HIVE_VERSION).number("protocol", protocol_version).take(),
              .numbers = {}};
}

Outcome<Done> perform_one(const Site&, const PingRequest&) {
  return ping();
}

Outcome<Done> perform_one(const Site& site, const WriteFlagsRequest& request) {
  return write_nspawn_flags(site, request);
}

Outcome<Done> perform_one(const Site& site, const StatusRequest& request) {
  const std::string& container = request.container;
  ConfFile conf = TRY(existing_conf(site, container));
  auto old_roots = TRY(list_old_roots(site, container));
  std::uint64_t old_bytes = 0;
  bool counted_all = true;
  for (const KeptTree& tree : old_roots) {
    old_bytes += tree.bytes;
    counted_all = counted_all && tree.counted_all;
  }
  json::ObjectText result;
  result.text("container", container)
      .text("agent", agent_of(container))
      .text("state", TRY(site.host.units.active_state(container)))
      .boolean("ephemeral", conf.is_ephemeral())
      .text("root", TRY(describe_root(site, container)))
      .boolean("switch_unfinished", TRY(load_record(site, container)).has_value())
      .raw("old_roots", json::ObjectText()
                            .number("count", old_roots.size())
                            .number("bytes", old_bytes)
                            .boolean("counted_all", counted_all)
                            .take())
      .raw("disk", disk_of(site, site.roots.get()));
  if (auto address = conf.value("LOCAL_ADDRESS")) result.text("address", *address);
  return Done{.result = result.take(), .numbers = {}};
}

// How systemd ended the job; anything but "done" is a refusal.
Outcome<Done> job_done(const std::string& container, std::string_view verb, const std::string& job) {
  if (job == "done") return Done{.result = json::ObjectText().text("job", job).take(), .numbers = {}};
  return refuse(Code::io_error, "{} was not {}: systemd says {}; see journalctl -u container@{} on the host", container,
                verb, quote(std::string_view(job).substr(0, shown_bytes)), container);
}

Outcome<Done> perform_one(const Site& site, const StartRequest& request) {
  TRY(existing_conf(site, request.container));
  return job_done(request.container, "started", TRY(site.host.units.start(request.container)));
}

Outcome<Done> perform_one(const Site& site, const StopRequest& request) {
  TRY(existing_conf(site, request.container));
  return job_done(request.container, "stopped", TRY(site.host.units.stop(request.container)));
}

Outcome<Done> perform_one(const Site& site, const ListSalvagesRequest& request) {
  TRY(existing_conf(site, request.container));
  return Done{.result = json::ObjectText()
                            .raw("salvages", kept_trees(TRY(list_salvages(site, request.container))))
                            .raw("old_roots", kept_trees(TRY(list_old_roots(site, request.container))))
                            .take(),
              .numbers = {}};
}

Outcome<Done> perform_one(const Site& site, const JanitorRequest& request) {
  auto leftovers = TRY(find_leftovers(site, request.remove));
  std::string array = "[";
  std::string problems;
  std::uint64_t removed = 0;
  for (const Leftover& leftover : leftovers) {
    if (array.size() > 1) array += ',';
    array += json::ObjectText()
                 .text("kind", leftover.kind)
                 .text("container", leftover.container)
                 .text("path", leftover.path)
                 .boolean("removed", leftover.removed)
                 .take();
    if (leftover.removed) ++removed;
    if (!leftover.problem.empty()) problems += fmt::format("{}: {}; ", leftover.path, leftover.problem);
  }
  Done done{.result = json::ObjectText().raw("leftovers", array + ']').take(),
            .numbers = {{"leftovers", std::to_string(leftovers.size())}, {"removed", std::to_string(removed)}}};
  if (!problems.empty()) done.numbers.emplace_back("problems", problems);
  return done;
}

// The "op" of a line that was refused, for the journal; "-" if there is none that can be read.
std::string op_in(std::string_view line) {
  auto members = json::parse_object(line, {.max_bytes = max_request_bytes, .max_depth = max_request_depth});
  auto raw = members ? json::find(*members, "op") : std::nullopt;
  auto op = raw ? json::decode_string(*raw) : std::nullopt;
  return op ? op->substr(0, shown_bytes) : "-";
}

}  // namespace

Outcome<Done> perform(const Layout& layout, const Settings& settings, Host& host, const Request& request) {
  // Answers also where the folders are not in order.
  if (std::holds_alternative<PingRequest>(request)) return ping();
  if (std::string_view container = container_of(request); !std::holds_alternative<JanitorRequest>(request)) {
    if (auto name = check_agent_container(container); !name) {
      return refuse(Code::bad_request, "{}", name.error().message);
    }
  }
  Site site = TRY(Site::open(layout, settings, host));
  return std::visit([&](const auto& one) { return perform_one(site, one); }, request);
}

std::string Desk::answer(std::string_view line, const PeerIds& peer) {
  SteadyTime begun = host_.clock.steady_now();
  JournalEntry entry{.peer = peer, .op = {}, .container = {}, .result = "ok", .message = {}, .numbers = {}};
  auto handled = [&]() -> Outcome<Done> {
    auto parsed = TRY(parse_request(line));
    entry.op = parsed.operation->name;
    entry.container = container_of(parsed.request).substr(0, shown_bytes);
    if (parsed.operation->needs(parsed.request) == Permission::root && peer.uid != 0) {
      return refuse(Code::denied, "{} of this form is for root", entry.op);
    }
    return perform(layout_, settings_, host_, parsed.request);
  }();
  if (entry.op.empty()) entry.op = op_in(line);
  std::string text;
  if (handled) {
    entry.numbers = std::move(handled->numbers);
    text = ok_answer(handled->result);
  } else {
    const Refusal& refusal = handled.error();
    entry.result = to_string(refusal.code);
    entry.message = refusal.detail.empty() ? refusal.message : fmt::format("{}: {}", refusal.message, refusal.detail);
    text = refusal_answer(refusal);
  }
  entry.duration = std::chrono::duration_cast<std::chrono::microseconds>(host_.clock.steady_now() - begun);
  journal_.write(entry);
  return text;
}

std::string Desk::refuse_unread(const Refusal& refusal, const PeerIds& peer) {
  JournalEntry entry{
      .peer = peer,
      .op = "-",
      .container = {},
      .result = std::string(to_string(refusal.code)),
      .message = refusal.detail.empty() ? refusal.message : fmt::format("{}: {}", refusal.message, refusal.detail),
      .numbers = {}};
  journal_.write(entry);
  return refusal_answer(refusal);
}

std::string ok_answer(std::string_view result) {
  return json::ObjectText().boolean("ok", true).raw("result", result).take();
}

std::string refusal_answer(const Refusal& refusal) {
  return json::ObjectText()
      .boolean("ok", false)
      .raw("error", json::ObjectText().text("code", to_string(refusal.code)).text("message", refusal.message).take())
      .take();
}

}  // namespace hive::priv
