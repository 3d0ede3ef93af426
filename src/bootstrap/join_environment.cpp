// From a launcher's variables to a group: where to meet, and with which secret.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/knobs.hpp"
#include "base/process_environment.hpp"
#include "base/try.hpp"
#include "bootstrap/environment.hpp"
#include "bootstrap/job_directory.hpp"
#include "bootstrap/private_directory.hpp"
#include "bootstrap/sha256.hpp"

namespace tutti {
namespace {

constexpr std::size_t kMinSecretBytes = 16, kMaxSecretBytes = 4096;

struct EnvironmentJoin {
  const LaunchEnvironment& launch;
  const EnvironmentView& environment;
  const Knobs& knobs;
  Deadline deadline;
  JoinOptions options;
};

std::string advice_for(const LaunchEnvironment& launch) {
  const std::string job = launch.job_variables.empty() ? "" : " and " + launch.job_variables;
  const char* const host =
      launch.single_host() ? ", on one host, by one user, with one TUTTI_RUNTIME_DIR" : "";
  return fmt::format("start all {} ranks, each with its own {}, and with the same {} ({}){}{}",
                     launch.size, launch.rank_variable, launch.size_variable, launch.size, job,
                     host);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// The secret the user gave, if any.
Result<std::optional<Digest>> given_secret(const Knobs& knobs) {
  std::string source = "TUTTI_SECRET", secret = knobs.text("TUTTI_SECRET");
  if (const std::string path = knobs.text("TUTTI_SECRET_FILE"); !path.empty()) {
    source = "TUTTI_SECRET_FILE";
    TUTTI_ASSIGN(const auto content, read_private_file(path, kMaxSecretBytes));
    if (!content) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("TUTTI_SECRET_FILE names {}, which is not there", path));
    }
    secret = trimmed(*content);
  } else if (secret.empty()) {
    return std::optional<Digest>();
  }
  if (secret.size() < kMinSecretBytes) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} holds {} characters, which can be guessed; at least {} are "
                              "needed (openssl rand -hex 32)",
                              source, secret.size(), kMinSecretBytes));
  }
  return std::optional(hmac_sha256(view_of("tutti group secret"), view_of(secret)));
}

// Both the one who knows the user's secret and the one who can read the directory.
Result<GroupId> with_secret(const GroupId& id, const std::optional<Digest>& secret) {
  if (!secret) return id;
  return group_id_from(id.is_local(), id.address(), hmac_sha256(*secret, id.secret()));
}

// A port of this job's own: neither privileged, nor one the system gives out, nor the store's.
std::uint16_t own_port(const std::string& job, int masters_port) {
  constexpr std::uint64_t kFirst = 16384, kCount = 16000;
  const std::uint64_t hash = first_word(sha256(view_of(job)));
  auto port = static_cast<std::uint16_t>(kFirst + hash % kCount);
  return port == masters_port ? static_cast<std::uint16_t>(port + 1) : port;
}

// Joins; where ranks do not meet, says what they need to have in common.
Result<std::unique_ptr<Bootstrap>> join_with(const EnvironmentJoin& join, const GroupId& id,
                                             const JoinOptions& options) {
  const LaunchEnvironment& launch = join.launch;
  auto group = join_group_with(id, launch.rank, launch.size, join.deadline, options);
  const StatusCode code = group.status().code();
  if (code != StatusCode::kTimeout && code != StatusCode::kMismatch) return group;
  return Status(code, fmt::format("{}; {}", group.status().message(), advice_for(launch)));
}

Result<std::unique_ptr<Bootstrap>> join_by_descriptor(const EnvironmentJoin& join, int fd) {
  auto id = group_id_from_descriptor(fd);
  if (!id.is_ok()) return id.status().with_context("TUTTI_GROUP_FD");
  return join_with(join, *id, join.options);
}

Result<std::unique_ptr<Bootstrap>> join_across_hosts(const EnvironmentJoin& join) {
  const LaunchEnvironment& launch = join.launch;
  TUTTI_ASSIGN(const auto secret, given_secret(join.knobs));
  if (!secret) {
    return Status(
        StatusCode::kPermission,
        fmt::format("{} of {} ranks are on this host, by what {} and MASTER_ADDR say. Ranks "
                    "on several hosts need a common secret, which keeps other processes "
                    "out: set TUTTI_SECRET_FILE to a file of mode 600 with the same "
                    "content on every host (openssl rand -hex 32 > file), or "
                    "TUTTI_SECRET. If all ranks are on this host, set {}={}",
                    launch.local_size, launch.size, launch.local_size_variable,
                    launch.local_size_variable, launch.size));
  }
  std::string address = join.knobs.text("TUTTI_ROOT");
  if (address.empty()) {
    const auto master = join.environment.text("MASTER_ADDR");
    if (!master) {
      return Status(StatusCode::kInvalidArgument,
                    "ranks on several hosts need an address to meet at: set TUTTI_ROOT=host:port, "
                    "an address of rank 0's host");
    }
    TUTTI_ASSIGN(const auto port, join.environment.number("MASTER_PORT", 0));
    const bool v6 = master->find(':') != std::string_view::npos;
    address = fmt::format("{}{}{}:{}", v6 ? "[" : "", *master, v6 ? "]" : "",
                          own_port(join.launch.job, port.value_or(0)));
  }
  auto id = group_id_from(false, address, *secret);
  if (!id.is_ok()) return id.status().with_context("TUTTI_ROOT");
  return join_with(join, *id, join.options);
}

Result<std::unique_ptr<Bootstrap>> join_as_first(const EnvironmentJoin& join, JobDirectory& job,
                                                 const std::optional<Digest>& secret) {
  const auto made = job.publish(join.launch.size);
  if (made.status().code() == StatusCode::kMismatch) {
    const std::string& shared = join.launch.job_variables;
    return Status(
        StatusCode::kMismatch,
        fmt::format("rank 0 joined twice, or two jobs share {}: {}",
                    shared.empty() ? "a TUTTI_RUNTIME_DIR" : shared, made.status().message()));
  }
  TUTTI_ASSIGN(const GroupId published, made);
  TUTTI_ASSIGN(const GroupId id, with_secret(published, secret));
  auto group = join_with(join, id, join.options);
  job.withdraw(published);
  return group;
}

Result<std::unique_ptr<Bootstrap>> join_as_other(const EnvironmentJoin& join, JobDirectory& job,
                                                 const std::optional<Digest>& secret) {
  JoinOptions options = join.options;
  options.create_directory = false;
  while (!join.deadline.passed()) {
    TUTTI_ASSIGN(const auto published, job.look());
    if (!published) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    TUTTI_ASSIGN(const GroupId id, with_secret(*published, secret));
    options.called_off = [&] { return !job.still_published(*published); };
    auto group = join_with(join, id, options);
    if (group.status().code() == StatusCode::kUnavailable) {  // an earlier group's id
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    if (!group.is_ok()) job.withdraw(*published);
    return group;
  }
  return Status(StatusCode::kTimeout,
                fmt::format("rank {} did not meet rank 0, which writes {}/id when it joins; {}",
                            join.launch.rank, job.path(), advice_for(join.launch)));
}

Result<std::unique_ptr<Bootstrap>> join_on_one_host(EnvironmentJoin join) {
  TUTTI_ASSIGN(const auto secret, given_secret(join.knobs));
  if (join.options.runtime_directory.empty()) {
    TUTTI_ASSIGN(join.options.runtime_directory,
                 runtime_directory(join.knobs.text("TUTTI_RUNTIME_DIR")));
  }
  // Where nothing else tells jobs apart, their sizes do.
  const std::string job_name =
      join.launch.job.empty() ? fmt::format("{} ranks", join.launch.size) : join.launch.job;
  const std::string name =
      fmt::format("{} {} {}", join.options.sockets->user_id(), join.launch.launcher, job_name);
  JobDirectory job(*join.options.sockets, join.options.runtime_directory, name);
  return join.launch.rank == 0 ? join_as_first(join, job, secret)
                               : join_as_other(join, job, secret);
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_group_from(const LaunchEnvironment& launch,
                                                   const Surroundings& surroundings,
                                                   Deadline deadline, const JoinOptions& options) {
  const EnvironmentView view(surroundings.environment);
  const Knobs& knobs = surroundings.knobs;
  const EnvironmentJoin join{launch, view, knobs, deadline, options};
  if (launch.size == 1) return std::move(make_in_process_group(1).front());
  TUTTI_ASSIGN(const auto descriptor, view.number("TUTTI_GROUP_FD", -1));
  if (descriptor.value_or(-1) >= 0) return join_by_descriptor(join, *descriptor);
  return launch.single_host() ? join_on_one_host(join) : join_across_hosts(join);
}

Result<std::unique_ptr<Bootstrap>> join_group_from_environment(const LaunchEnvironment& launch,
                                                               Deadline deadline) {
  const auto environment = process_environment();
  return join_group_from(launch, {environment, Knobs::process()}, deadline, {});
}

}  // namespace tutti
