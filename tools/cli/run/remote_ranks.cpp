#include "run/remote_ranks.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/try.hpp"
#include "bench/interrupts.hpp"
#include "bootstrap/environment.hpp"
#include "bootstrap/identity.hpp"
#include "run/job.hpp"

namespace tutti::cli {
namespace {

Result<std::string> random_secret() {
  TUTTI_ASSIGN(const Digest digest, random_digest());
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

}  // namespace

RemoteRanks::RemoteRanks(const RunOptions& options, std::string secret)
    : options_(&options),
      secret_(std::move(secret)),
      input_(::isatty(STDIN_FILENO) != 1) {}  // as without hosts

Result<RemoteRanks> RemoteRanks::start(const RunOptions& options) {
  TUTTI_ASSIGN(std::string secret, random_secret());
  RemoteRanks ranks(options, std::move(secret));
  const HostsOptions& hosts = *options.hosts;
  int first_rank = 0;
  for (const HostRanks& host : hosts.hosts) {
    TUTTI_ASSIGN(RemoteHost started, RemoteHost::start({.host = host,
                                                        .first_rank = first_rank,
                                                        .ssh = hosts.ssh,
                                                        .tutti = hosts.remote_tutti}));
    ranks.hosts_.push_back(std::move(started));
    first_rank += host.ranks;
  }
  return ranks;
}

std::vector<int> RemoteRanks::running() const {
  std::vector<int> numbers;
  for (const RemoteHost& host : hosts_) {
    numbers.insert(numbers.end(), host.running().begin(), host.running().end());
  }
  return numbers;
}

void RemoteRanks::add_descriptors(std::vector<pollfd>& descriptors) const {
  for (const RemoteHost& host : hosts_) host.add_descriptors(descriptors);
  const int input = input_ && hosts_.front().wants_input() ? STDIN_FILENO : -1;
  descriptors.push_back({.fd = input, .events = POLLIN, .revents = 0});
}

Status RemoteRanks::look(RankEvents& events) {
  for (RemoteHost& host : hosts_) TUTTI_TRY(host.look(events));
  start_ranks();
  pass_input();
  return Status::ok();
}

void RemoteRanks::signal(int number) {
  for (RemoteHost& host : hosts_) {
    if (!host.running().empty()) host.signal(number);
  }
}

std::string RemoteRanks::place_of(int rank) const {
  for (const RemoteHost& host : hosts_) {
    if (rank < host.first_rank() + host.host().ranks) return " on " + host.host().login;
  }
  return {};
}

void RemoteRanks::start_ranks() {
  if (!hosts_.front().ready()) return;
  for (RemoteHost& host : hosts_) {
    if (!host.was_told() && host.ready() && !host.running().empty()) {
      host.start_ranks(order_for(host));
    }
  }
}

StartRanks RemoteRanks::order_for(const RemoteHost& host) const {
  const HostsOptions& hosts = *options_->hosts;
  const AgentReady& free = *hosts_.front().ready();
  RootAddress root = hosts.root;
  if (root.port == 0) root.port = free.root_port;
  StartRanks order{.first = {.rank = host.first_rank(),
                             .ranks = options_->ranks,
                             .local_ranks = host.host().ranks,
                             .master = root.address,
                             .port = free.port},
                   .settings = hosts.settings,
                   .folder = hosts.folder,
                   .program = options_->program,
                   .arguments = options_->arguments,
                   .grace_seconds = static_cast<int>(options_->grace.count()),
                   .bind = options_->bind,
                   .input = input_};
  order.settings.push_back("TUTTI_ROOT=" + to_text(root));
  order.settings.push_back("TUTTI_SECRET=" + secret_);
  order.settings.emplace_back("TUTTI_SECRET_FILE=");  // of the host's own, it would be read instead
  return order;
}

void RemoteRanks::pass_input() {
  if (!input_ || !hosts_.front().wants_input()) return;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&input, 1, 0) <= 0) return;
  std::array<char, 65536> bytes;
  const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (count <= 0) input_ = false;  // and the agent is told its end
  hosts_.front().give_input({bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
}

Result<int> run_on_hosts(const RunOptions& options) {
  outlive(SIGPIPE);
  const Interrupts interrupts;
  TUTTI_ASSIGN(RemoteRanks ranks, RemoteRanks::start(options));
  return run_job(ranks, {.ranks = options.ranks, .prefix = options.prefix, .grace = options.grace},
                 interrupts);
}

}  // namespace tutti::cli
