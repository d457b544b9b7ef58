#include "priv/request.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/strings.h"
#include "protocol/json.h"

namespace hive::priv {

namespace {

constexpr json::Limits limits{.max_bytes = max_request_bytes, .max_depth = max_request_depth, .max_values = 1000};
constexpr size_t shown_bytes = 64;

// The members of one object, each of which must be taken by name before done() is asked.
class Members {
 public:
  Members(std::string_view where, std::vector<json::Member> members) : where_(where), members_(std::move(members)) {}

  static Outcome<Members> read(std::string_view where, std::string_view raw) {
    auto members = json::parse_object(raw, limits);
    if (!members) return refuse(Code::bad_request, "{}", members.error().message);
    return Members(where, *std::move(members));
  }

  std::optional<std::string_view> take(std::string_view key) {
    for (const json::Member& member : members_) {
      if (member.key == key) {
        taken_.push_back(key);
        return member.value;
      }
    }
    return std::nullopt;
  }

  Outcome<std::string> text(std::string_view key) {
    auto raw = take(key);
    if (!raw) return refuse(Code::bad_request, "{}{} is missing", where_, key);
    auto text = json::decode_string(*raw);
    if (!text) return refuse(Code::bad_request, "{}{} must be a string", where_, key);
    if (text->find('\0') != std::string::npos) {
      return refuse(Code::bad_request, "{}{} holds a NUL character", where_, key);
    }
    return *std::move(text);
  }

  // False where it is missing.
  Outcome<bool> flag(std::string_view key) {
    auto raw = take(key);
    if (!raw) return false;
    auto value = json::decode_boolean(*raw);
    if (!value) return refuse(Code::bad_request, "{}{} must be true or false", where_, key);
    return *value;
  }

  Outcome<void> done() const {
    for (const json::Member& member : members_) {
      if (std::ranges::find(taken_, std::string_view(member.key)) == taken_.end()) {
        return refuse(Code::bad_request, "unknown key {}{}", where_,
                      quote(std::string_view(member.key).substr(0, shown_bytes)));
      }
    }
    return {};
  }

 private:
  std::string where_;
  std::vector<json::Member> members_;
  std::vector<std::string_view> taken_;
};

Outcome<std::vector<Bind>> parse_binds(std::optional<std::string_view> raw) {
  if (!raw) return refuse(Code::bad_request, "binds is missing");
  if (!json::is_array(*raw)) return refuse(Code::bad_request, "binds must be an array");
  auto elements = json::parse_array(*raw, limits);
  if (!elements) return refuse(Code::bad_request, "{}", elements.error().message);
  if (elements->size() > max_binds) return refuse(Code::bad_request, "binds holds more than {} entries", max_binds);
  std::vector<Bind> binds;
  for (std::string_view element : *elements) {
    std::string where = fmt::format("binds[{}].", binds.size());
    if (!json::is_object(element)) return refuse(Code::bad_request, "binds[{}] must be an object", binds.size());
    Members members = TRY(Members::read(where, element));
    Bind bind{.host_path = TRY(members.text("host_path")),
              .container_path = TRY(members.text("container_path")),
              .read_only = TRY(members.flag("read_only"))};
    TRY(members.done());
    binds.push_back(std::move(bind));
  }
  return binds;
}

Outcome<std::optional<Isolation>> parse_isolation(std::optional<std::string_view> raw) {
  if (!raw || json::is_null(*raw)) return std::nullopt;
  if (!json::is_object(*raw)) return refuse(Code::bad_request, "isolation must be an object");
  Members members = TRY(Members::read("isolation.", *raw));
  Isolation isolation{.bridge = TRY(members.text("bridge")), .gateway_ip = TRY(members.text("gateway_ip"))};
  TRY(members.done());
  return isolation;
}

Outcome<Members> request_members(std::string_view line) {
  Members members = TRY(Members::read("", line));
  members.take("op");
  return members;
}

Outcome<Request> parse_ping(std::string_view line) {
  Members members = TRY(request_members(line));
  TRY(members.done());
  return PingRequest{};
}

Outcome<Request> parse_write_flags(std::string_view line) {
  Members members = TRY(request_members(line));
  WriteFlagsRequest request{.container = TRY(members.text("container")),
                            .binds = TRY(parse_binds(members.take("binds"))),
                            .isolation = TRY(parse_isolation(members.take("isolation")))};
  TRY(members.done());
  return request;
}

template <class R>
Outcome<Request> parse_named(std::string_view line) {
  Members members = TRY(request_members(line));
  R request{.container = TRY(members.text("container"))};
  TRY(members.done());
  return request;
}

Outcome<Request> parse_janitor(std::string_view line) {
  Members members = TRY(request_members(line));
  JanitorRequest request{.remove = TRY(members.flag("remove"))};
  TRY(members.done());
  return request;
}

Permission every_peer(const Request&) {
  return Permission::peer;
}

// Everybody may look; what removes something is for root.
Permission janitor_permission(const Request& request) {
  return std::get<JanitorRequest>(request).remove ? Permission::root : Permission::peer;
}

constexpr std::array operations = {
    Operation{"ping", parse_ping, every_peer},
    Operation{"write_nspawn_flags", parse_write_flags, every_peer},
    Operation{"container_status", parse_named<StatusRequest>, every_peer},
    Operation{"start", parse_named<StartRequest>, every_peer},
    Operation{"stop", parse_named<StopRequest>, every_peer},
    Operation{"list_salvages", parse_named<ListSalvagesRequest>, every_peer},
    Operation{"janitor", parse_janitor, janitor_permission},
};

}  // namespace

Outcome<ParsedRequest> parse_request(std::string_view line) {
  Members members = TRY(Members::read("", line));
  std::string op = TRY(members.text("op"));
  auto operation = std::ranges::find(operations, std::string_view(op), &Operation::name);
  if (operation == operations.end()) {
    return refuse(Code::unknown_op, "unknown op {}", quote(std::string_view(op).substr(0, shown_bytes)));
  }
  return ParsedRequest{.operation = operation, .request = TRY(operation->parse(line))};
}

std::string_view container_of(const Request& request) {
  return std::visit(
      [](const auto& one) -> std::string_view {
        if constexpr (requires { one.container; }) {
          return one.container;
        } else {
          return {};
        }
      },
      request);
}

}  // namespace hive::priv
