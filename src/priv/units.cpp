#include "priv/units.h"

#include <cerrno>
#include <cstdlib>
#include <optional>

#include <systemd/sd-bus.h>

#include "base/clock.h"

namespace hive::priv {

namespace {

constexpr const char* service = "org.freedesktop.systemd1";
constexpr const char* manager_path = "/org/freedesktop/systemd1";
constexpr const char* manager = "org.freedesktop.systemd1.Manager";

struct CloseBus {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
};
struct DropMessage {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
struct DropSlot {
  void operator()(sd_bus_slot* slot) const { sd_bus_slot_unref(slot); }
};
struct FreeText {
  void operator()(char* text) const { std::free(text); }
};
using Bus = std::unique_ptr<sd_bus, CloseBus>;
using Message = std::unique_ptr<sd_bus_message, DropMessage>;

// An sd_bus_error that frees what it holds.
class BusError {
 public:
  BusError() = default;
  BusError(const BusError&) = delete;
  BusError& operator=(const BusError&) = delete;
  ~BusError() { sd_bus_error_free(&error_); }
  sd_bus_error* get() { return &error_; }
  [[nodiscard]] Error as_error(int negative_errno, std::string_view what) const {
    if (error_.message != nullptr) return {ErrorCode::io, fmt::format("{}: {}", what, error_.message)};
    return {ErrorCode::io, system_error(-negative_errno, what).message};
  }

 private:
  sd_bus_error error_{};
};

std::string unit_name(std::string_view container) {
  return fmt::format("container@{}.service", container);
}

Result<Bus> open_bus() {
  sd_bus* raw = nullptr;
  int status = sd_bus_open_system(&raw);
  if (status < 0) return fail(ErrorCode::io, "{}", system_error(-status, "connect to the system bus").message);
  return Bus(raw);
}

// The end of one job, as JobRemoved tells it.
struct JobEnd {
  std::string job;
  std::optional<std::string> result;
};

int on_job_removed(sd_bus_message* message, void* data, sd_bus_error*) {
  auto* end = static_cast<JobEnd*>(data);
  std::uint32_t id = 0;
  const char* job = nullptr;
  const char* unit = nullptr;
  const char* result = nullptr;
  if (sd_bus_message_read(message, "uoss", &id, &job, &unit, &result) >= 0 && end->job == job) end->result = result;
  return 0;
}

class SystemdUnits final : public Units {
 public:
  explicit SystemdUnits(std::chrono::seconds job_limit) : job_limit_(job_limit) {}

  Result<std::string> active_state(std::string_view container) override {
    Bus bus = TRY(open_bus());
    std::string name = unit_name(container);
    BusError error;
    sd_bus_message* raw = nullptr;
    // LoadUnit, and not GetUnit, which fails for units that are not in memory because nothing wants them now.
    int status =
        sd_bus_call_method(bus.get(), service, manager_path, manager, "LoadUnit", error.get(), &raw, "s", name.c_str());
    if (status < 0) return std::unexpected(error.as_error(status, "load " + name));
    Message reply(raw);
    const char* path = nullptr;
    status = sd_bus_message_read(reply.get(), "o", &path);
    if (status < 0) return std::unexpected(error.as_error(status, "load " + name));
    char* state = nullptr;
    status = sd_bus_get_property_string(bus.get(), service, path, "org.freedesktop.systemd1.Unit", "ActiveState",
                                        error.get(), &state);
    if (status < 0) return std::unexpected(error.as_error(status, "ask for the state of " + name));
    std::unique_ptr<char, FreeText> owned(state);
    return std::string(state);
  }

  Result<std::string> start(std::string_view container) override { return run_job("StartUnit", container); }
  Result<std::string> stop(std::string_view container) override { return run_job("StopUnit", container); }

 private:
  Result<std::string> run_job(const char* method, std::string_view container) {
    Bus bus = TRY(open_bus());
    std::string name = unit_name(container);
    std::string what = fmt::format("{} {}", method, name);
    BusError error;
    // Without a subscription the manager sends no signals.
    int status =
        sd_bus_call_method(bus.get(), service, manager_path, manager, "Subscribe", error.get(), nullptr, nullptr);
    if (status < 0) return std::unexpected(error.as_error(status, what));
    JobEnd end;
    sd_bus_slot* raw_slot = nullptr;
    status =
        sd_bus_match_signal(bus.get(), &raw_slot, service, manager_path, manager, "JobRemoved", on_job_removed, &end);
    if (status < 0) return std::unexpected(error.as_error(status, what));
    std::unique_ptr<sd_bus_slot, DropSlot> slot(raw_slot);
    sd_bus_message* raw = nullptr;
    status = sd_bus_call_method(bus.get(), service, manager_path, manager, method, error.get(), &raw, "ss",
                                name.c_str(), "replace");
    if (status < 0) return std::unexpected(error.as_error(status, what));
    Message reply(raw);
    const char* job = nullptr;
    status = sd_bus_message_read(reply.get(), "o", &job);
    if (status < 0) return std::unexpected(error.as_error(status, what));
    end.job = job;
    return wait_for(bus.get(), end, what);
  }

  // Signals that came before the reply are still queued, so a job that ended at once isn't missed.
  Result<std::string> wait_for(sd_bus* bus, JobEnd& end, const std::string& what) const {
    SteadyTime deadline = system_clock().steady_now() + job_limit_;
    while (!end.result) {
      int status = sd_bus_process(bus, nullptr);
      if (status < 0) return std::unexpected(BusError().as_error(status, what));
      if (status > 0) continue;
      auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - system_clock().steady_now());
      if (left.count() <= 0) {
        return fail(ErrorCode::timed_out, "{}: not done after {} s; systemd goes on with it", what, job_limit_.count());
      }
      status = sd_bus_wait(bus, static_cast<std::uint64_t>(left.count()));
      if (status < 0 && status != -EINTR) return std::unexpected(BusError().as_error(status, what));
    }
    return *end.result;
  }

  std::chrono::seconds job_limit_;
};

class NoUnits final : public Units {
 public:
  Result<std::string> active_state(std::string_view) override { return "inactive"; }
  Result<std::string> start(std::string_view container) override { return unavailable(container); }
  Result<std::string> stop(std::string_view container) override { return unavailable(container); }

 private:
  static Result<std::string> unavailable(std::string_view container) {
    return fail(ErrorCode::io, "{} belongs to no running host", unit_name(container));
  }
};

}  // namespace

std::unique_ptr<Units> no_units() {
  return std::make_unique<NoUnits>();
}

std::unique_ptr<Units> systemd_units(std::chrono::seconds job_limit) {
  return std::make_unique<SystemdUnits>(job_limit);
}

bool is_running(std::string_view active_state) {
  return active_state != "inactive" && active_state != "failed";
}

}  // namespace hive::priv
