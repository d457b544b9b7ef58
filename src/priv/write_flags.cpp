#include "priv/bind_rules.h"
#include "priv/container_address.h"
#include "priv/container_conf.h"
#include "priv/machine_id.h"
#include "priv/names.h"
#include "priv/operations.h"
#include "priv/switch.h"
#include "protocol/json_object.h"

namespace hive::priv {

namespace {

// A switch may take long; a second request for the same container waits about as long as its caller would.
constexpr std::chrono::seconds container_patience{100};

Outcome<ConfFile> read_conf(const Site& site, const std::string& container) {
  auto conf = read_container_conf(site.conf.get(), site.layout, container);
  if (conf) return *std::move(conf);
  if (conf.error().code == ErrorCode::not_found) {
    return refuse(Code::no_such_container, "there is no container {}", container);
  }
  return std::unexpected(Refusal(conf.error()));
}

Outcome<void> check_sources(const Site& site, const std::vector<Bind>& binds) {
  for (size_t i = 0; i < binds.size(); ++i) {
    if (auto good = check_bind_source(site.anchor.get(), binds[i].host_path); !good) {
      return std::unexpected(Refusal(Code::unsafe_path,
                                     fmt::format("binds[{}].host_path: not a folder whose way is root's alone", i),
                                     good.error().message));
    }
  }
  return {};
}

// Whether the container is stopped. Asked only where the answer matters: it costs a round trip over D-Bus.
Result<bool> is_stopped(const Site& site, const std::string& container) {
  return !is_running(TRY(site.host.units.active_state(container)));
}

Outcome<ContainerPlan> make_plan(const Site& site, const WriteFlagsRequest& request, const ConfFile& conf) {
  ContainerPlan plan{
      .binds = request.binds, .isolation = request.isolation, .machine_id = {}, .local_address = {}, .extra_flags = {}};
  plan.machine_id = TRY(machine_id_of(site, request.container));
  plan.extra_flags = TRY(read_extra_flags(site.conf.get(), site.layout, request.container));
  if (request.isolation) {
    plan.local_address =
        TRY(container_address(site, request.container, conf, site.settings.bridges.at(request.isolation->bridge),
                              *parse_ipv4(request.isolation->gateway_ip)));
  }
  return plan;
}

Done describe(const Site& site, const std::string& container, const std::optional<SwitchRecord>& record,
              bool conf_changed) {
  json::ObjectText result;
  result.boolean("switched", record.has_value());
  Done done;
  if (!record) {
    result.text("salvage", to_string(SalvageKind::none));
  } else {
    std::string salvage = record->kind == SalvageKind::done ? fmt::format("{}/{}/work/{}", site.layout.agents_dir,
                                                                          agent_of(container), record->salvage)
                                                            : std::string();
    result.text("salvage", to_string(record->kind));
    if (!salvage.empty()) result.text("salvage_path", salvage);
    result.text("old_root", fmt::format("{}/{}", site.layout.roots_dir, record->old_root))
        .number("bytes", record->bytes)
        .number("entries", record->entries)
        .number("skipped_special", record->skipped_special)
        .number("changed", record->changed)
        .boolean("cloned", record->cloned_files > 0)
        .number("nix_links", record->nix_links);
    done.numbers = {{"salvage", std::string(to_string(record->kind))},
                    {"salvage_path", salvage},
                    {"old_root", record->old_root},
                    {"bytes", std::to_string(record->bytes)},
                    {"entries", std::to_string(record->entries)},
                    {"skipped_special", std::to_string(record->skipped_special)},
                    {"changed", std::to_string(record->changed)},
                    {"cloned_files", std::to_string(record->cloned_files)},
                    {"nix_links", std::to_string(record->nix_links)}};
  }
  done.result = result.boolean("conf_changed", conf_changed).take();
  return done;
}

}  // namespace

Outcome<Done> write_nspawn_flags(const Site& site, const WriteFlagsRequest& request) {
  const std::string& container = request.container;
  TRY(check_binds(request.binds, agent_of(container), site.settings, site.layout));
  TRY(check_isolation(request.isolation, site.settings));
  TRY(read_conf(site, container));
  UniqueFd lock = TRY(site.lock(container, container_patience));
  ConfFile conf = TRY(read_conf(site, container));
  TRY(check_sources(site, request.binds));

  auto record = TRY(recover_switch(site, container));
  if (TRY(needs_switch(site, container, conf))) {
    if (!TRY(is_stopped(site, container))) return refuse(Code::busy, "{} runs; stop it first", container);
    // After a crash somebody has used the new root before the configuration was written: that is saved as well.
    if (record) TRY(finish_switch(site, container));
    record = TRY(switch_root(site, container, conf));
  }

  ContainerPlan plan = TRY(make_plan(site, request, conf));
  bool template_differs = TRY(template_id(site.roots.get(), container)) != plan.machine_id;
  // The root of a container that runs is its own, unless it is ephemeral, and then the next start comes here again.
  if (template_differs && TRY(is_stopped(site, container))) TRY(write_template_id(site, container, plan.machine_id));

  ConfFile planned = TRY(with_plan(conf, plan));
  bool changed = planned.text() != conf.text();
  if (changed) TRY(write_container_conf(site, container, planned));
  site.host.at_step(SwitchStep::conf_written);
  if (record) TRY(finish_switch(site, container));
  return describe(site, container, record, changed);
}

}  // namespace hive::priv
