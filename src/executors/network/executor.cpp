#include "executors/network/executor.hpp"

#include <algorithm>
#include <sched.h>
#include <utility>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/identity.hpp"
#include "drivers/network.hpp"
#include "executors/network/lowering.hpp"
#include "executors/network/wire_up.hpp"
#include "topology/topology.hpp"

namespace tutti {
namespace {

// So long a rank that leaves waits for a peer that does not say whether it has everything.
constexpr std::chrono::seconds kGoodbye{1};

// Whether each rank of this host may have a core of those that this process may use.
bool has_cores(Bootstrap& bootstrap) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return false;
  return ranks_of_host(bootstrap.identities(), bootstrap.rank()) <= CPU_COUNT(&usable);
}

}  // namespace

NetworkExecutor::NetworkExecutor(GroupServices& group, NetworkDriver* driver)
    : group_(group), driver_(driver) {}

NetworkExecutor::~NetworkExecutor() = default;

// Whether its algorithms are chosen is known to all ranks alike, so all come.
bool NetworkExecutor::may_exchange(const Call&) const {
  return group_.topology().network && progress_ == nullptr && why_none_.is_ok();
}

Result<Executor::Ready> NetworkExecutor::prepare(PlannedOperation&) {
  TUTTI_TRY(open());
  return Ready::kYes;
}

Status NetworkExecutor::prepare_all(unsigned needs) {
  return (needs & kNeedsNetwork) != 0 ? open() : Status::ok();
}

Status NetworkExecutor::open() {
  if (group_.has_failed()) return group_.failure();
  if (progress_ != nullptr) return Status::ok();
  TUTTI_TRY(why_none_);
  if (!group_.topology().network) {
    return {StatusCode::kUnavailable, "not every rank can send messages over the network: " +
                                          group_.topology().why_no_network};
  }
  Bootstrap& bootstrap = group_.bootstrap();
  const OpenWire open_wire = [this]() -> Result<std::unique_ptr<Wire>> {
    TUTTI_TRY(make_staging());
    return driver_->open(group_.topology().hosts == 1, wants_direct());
  };
  auto wired =
      wire_up(bootstrap, open_wire, group_.deadline(), [this] { return group_.has_failed(); });
  if (wired.status().code() == StatusCode::kUnavailable) return why_none_ = wired.status();
  if (!wired.is_ok()) return group_.fail(wired.status().with_context("wiring up the network"));
  log(LogLevel::kInfo, "network: {}", wired->wire->text());
  direct_ = wired->reaches_gpus;
  const RankNames names = bootstrap.names();
  NetworkProgress::Setup setup{
      .wire = std::move(wired->wire),
      .group = {.id = wired->id,
                .rank = bootstrap.rank(),
                .ranks = bootstrap.size(),
                .name = [names](int rank) { return names.of(rank); },
                .has_left = [this](int rank) { return group_.has_left(rank); }},
      .may_spin = has_cores(bootstrap),
      .staged = std::move(staging_),
      .direct = direct_,
      .failed = [this](const Status& cause, int missing) { fail(cause, missing); }};
  auto started = NetworkProgress::start(std::move(setup));
  if (!started.is_ok()) return group_.fail(started.status());
  progress_ = std::move(started).value();
  running_ = progress_.get();
  if (group_.has_failed()) hear_of_failure();  // which nobody told it yet
  return Status::ok();
}

Status NetworkExecutor::make_staging() {
  if (group_.cuda() == nullptr) return Status::ok();
  const auto bytes = Knobs::process().integer("TUTTI_NETWORK_STAGING_BYTES");
  TUTTI_ASSIGN(staging_, StagedOperations::create({.cuda = *group_.cuda(),
                                                   .device = group_.device(),
                                                   .ranks = group_.bootstrap().size(),
                                                   .staging_bytes = static_cast<std::size_t>(bytes),
                                                   .timeout = group_.timeout()}));
  return Status::ok();
}

bool NetworkExecutor::wants_direct() const {
  if (group_.cuda() == nullptr || !Knobs::process().flag("TUTTI_NETWORK_DIRECT")) return false;
  const auto gpu = group_.cuda()->properties(group_.device());
  if (gpu.is_ok() && gpu->orders_rdma_writes) return true;
  log(LogLevel::kWarn,
      "TUTTI_NETWORK_DIRECT=1: GPU {} does not order what network adapters write, so buffers on "
      "GPUs are staged",
      group_.device());
  return false;
}

// Where ranks run different operations, the others are asked for theirs.
void NetworkExecutor::fail(const Status& cause, int missing) {
  const std::string operation = cause.message().substr(0, cause.message().find(": "));
  if (cause.code() == StatusCode::kMismatch) {
    group_.fail_waiting(cause, operation);
  } else if (missing >= 0) {
    group_.fail_in(cause, operation, missing);
  } else {
    (void)group_.fail(cause);
  }
}

NetworkRanks NetworkExecutor::ranks() const {
  const Topology& topology = group_.topology();
  return {group_.bootstrap().rank(), topology.ranks, topology.node_of};
}

Result<Ticket> NetworkExecutor::enqueue(PlannedOperation& operation) {
  if (progress_->staged() != nullptr) return enqueue_staged(operation);
  const auto timeout = group_.timeout_of(operation.operation).value;
  Ticket ticket = 0;
  for (NetworkOperation& lowered : lower_to_network(operation, ranks())) {
    ticket = progress_->add(std::move(lowered), timeout);
  }
  const std::lock_guard lock(mutex_);
  under_way_.emplace_back(ticket, operation.operation.sequence);
  return ticket;
}

// A part of it may have been enqueued where it fails, so the group fails, too.
Result<Ticket> NetworkExecutor::enqueue_staged(const PlannedOperation& operation) {
  const Stream stream = operation.call.stream;
  StagedOperations::Work work{.transfers = lower_to_staging(operation, ranks(), direct_),
                              .timeout = group_.timeout_of(operation.operation).value,
                              .has_own_timeout = operation.call.options.timeout.count() > 0,
                              .text = to_string(operation.operation)};
  TUTTI_TRY(group_.streams().enter(stream, {}));
  const auto ticket = progress_->staged()->enqueue(std::move(work), stream);
  progress_->wake();
  const Status left = group_.streams().leave(stream, {});
  if (!ticket.is_ok()) return group_.fail(ticket.status());
  TUTTI_TRY(left);
  const std::lock_guard lock(mutex_);
  under_way_.emplace_back(*ticket, operation.operation.sequence);
  return ticket;
}

void NetworkExecutor::await(Ticket ticket) {
  NetworkProgress* const running = running_;
  if (running != nullptr) running->await(ticket);
}

bool NetworkExecutor::has_ended(Ticket ticket) {
  NetworkProgress* const running = running_;
  if (running == nullptr) return true;
  const StagedOperations* const staged = running->staged();
  return (staged != nullptr ? staged->ended_through() : running->ended_through()) >= ticket;
}

std::uint64_t NetworkExecutor::ended_through(std::uint64_t started) {
  const std::lock_guard lock(mutex_);
  while (!under_way_.empty() && has_ended(under_way_.front().first)) under_way_.pop_front();
  return under_way_.empty() ? started : std::min(started, under_way_.front().second - 1);
}

std::string NetworkExecutor::position() {
  NetworkProgress* const running = running_;
  return running == nullptr ? std::string() : running->position();
}

StagedOperations* NetworkExecutor::staged() {
  NetworkProgress* const running = running_;
  return running == nullptr ? nullptr : running->staged();
}

Status NetworkExecutor::check() {
  const StagedOperations* const staged = this->staged();
  return staged == nullptr ? Status::ok() : staged->check();
}

Status NetworkExecutor::set_timeout(std::chrono::nanoseconds timeout) {
  if (StagedOperations* const staged = this->staged()) staged->set_timeout(timeout);
  return Status::ok();
}

void NetworkExecutor::hear_of_failure() {
  NetworkProgress* const running = running_;
  if (running == nullptr) return;
  // If the wire reads and writes the callers' memory, kernels end once it does so no more.
  if (running->staged() != nullptr && !direct_) running->staged()->cancel();
  running->cancel();
}

// While the group hears who has left.
void NetworkExecutor::drain(Deadline deadline) {
  if (progress_ == nullptr || progress_->lost_in_fork()) return;
  while (ended_through(~std::uint64_t{0}) != ~std::uint64_t{0}) {
    if (deadline.passed()) return progress_->cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (group_.has_failed()) return;
  progress_->say_goodbye(std::min<std::chrono::nanoseconds>(deadline.left(), kGoodbye));
}

// While the group can still be told of a failure. A child that was forked has no part in any of it:
// what its parent uses stays as it is.
void NetworkExecutor::close(Deadline) {
  running_ = nullptr;
  {
    const std::lock_guard lock(mutex_);
    under_way_.clear();
  }
  if (progress_ != nullptr && progress_->lost_in_fork()) {
    (void)progress_.release();
  } else {
    progress_.reset();
  }
}

}  // namespace tutti
