// From a launcher's variables to a group: where to meet, and with which secret.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/knobs.hpp"
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

Result<std::unique_ptr<Bootstrap>> join_by_descriptor(const EnvironmentJoin& join, int fd) {
  auto id = group_id_from_descriptor(fd);
  if (!id.is_ok()) return id.status().with_context("TUTTI_GROUP_FD");
  return join_group_with(*id, join.launch.rank, join.launch.size, join.deadline, join.options);
}

Result<std::unique_ptr<Bootstrap>> join_across_hosts(const EnvironmentJoin& join) {
  TUTTI_ASSIGN(const auto secret, given_secret(join.knobs));
  if (!secret) {
    return Status(StatusCode::kPermission,
                  "ranks on several hosts need a secret in common, so that no stranger joins: set "
                  "TUTTI_SECRET_FILE to a file of mode 600 that is the same on every host (openssl "
                  "rand -hex 32 > file), or TUTTI_SECRET");
  }
  std::string address = join.knobs.text("TUTTI_ROOT");
  if (address.empty()) {
    const auto master = join.environment.text("MASTER_ADDR");
    if (!master) {
      return Status(StatusCode::kInvalidArgument,
                    "ranks on several hosts need a place to meet: set TUTTI_ROOT=host:port, an "
                    "address of rank 0's host");
    }
    TUTTI_ASSIGN(const auto port, join.environment.number("MASTER_PORT", 0));
    const bool v6 = master->find(':') != std::string_view::npos;
    address = fmt::format("{}{}{}:{}", v6 ? "[" : "", *master, v6 ? "]" : "",
                          own_port(join.launch.job, port.value_or(0)));
  }
  auto id = group_id_from(false, address, *secret);
  if (!id.is_ok()) return id.status().with_context("TUTTI_ROOT");
  return join_group_with(*id, join.launch.rank, join.launch.size, join.deadline, join.options);
}

Result<std::unique_ptr<Bootstrap>> join_as_first(const EnvironmentJoin& join, JobDirectory& job,
                                                 const std::optional<Digest>& secret) {
  TUTTI_ASSIGN(const GroupId published, job.publish(join.launch.size));
  TUTTI_ASSIGN(const GroupId id, with_secret(published, secret));
  auto group = join_group_with(id, 0, join.launch.size, join.deadline, join.options);
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
    auto group = join_group_with(id, join.launch.rank, join.launch.size, join.deadline, options);
    if (group.status().code() == StatusCode::kUnavailable) {  // an earlier group's id
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    if (!group.is_ok()) job.withdraw(*published);
    return group;
  }
  return Status(StatusCode::kTimeout,
                fmt::format("rank {} waited for rank 0 to write {}/id, in vain: all ranks must be "
                            "started, on one host, by one user, with the same TUTTI_RUNTIME_DIR",
                            join.launch.rank, job.path()));
}

Result<std::unique_ptr<Bootstrap>> join_on_one_host(EnvironmentJoin join) {
  TUTTI_ASSIGN(const auto secret, given_secret(join.knobs));
  if (join.options.runtime_directory.empty()) {
    TUTTI_ASSIGN(join.options.runtime_directory,
                 runtime_directory(join.knobs.text("TUTTI_RUNTIME_DIR")));
  }
  const std::string name = fmt::format("{} {} {} {}", join.options.sockets->user_id(),
                                       join.launch.launcher, join.launch.job, join.launch.size);
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
