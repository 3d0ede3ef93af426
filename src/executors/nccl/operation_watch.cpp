#include "executors/nccl/operation_watch.hpp"

#include <utility>

#include "base/try.hpp"
#include "memory/device_scope.hpp"

namespace tutti {

Result<std::unique_ptr<OperationWatch>> OperationWatch::create(CudaDriver& cuda, int device) {
  std::unique_ptr<OperationWatch> watch(new OperationWatch(cuda, device));
  TUTTI_TRY(watch->make_events());
  return watch;
}

Status OperationWatch::make_events() {
  const DeviceScope scope(cuda_, device_);
  TUTTI_TRY(scope.status());
  for (Pair& pair : pairs_) {
    TUTTI_ASSIGN(pair.before, cuda_.create_event(false));
    TUTTI_ASSIGN(pair.behind, cuda_.create_event(false));
  }
  return Status::ok();
}

OperationWatch::~OperationWatch() {
  for (const Pair& pair : pairs_) {
    for (CudaEvent const event : {pair.before, pair.behind}) {
      if (event != nullptr) (void)cuda_.destroy_event(event);
    }
  }
}

// The null stream is that of the current device.
Status OperationWatch::record(CudaEvent event, Stream stream) {
  const DeviceScope scope(cuda_, device_);
  TUTTI_TRY(scope.status());
  return cuda_.record_event(event, stream);
}

void OperationWatch::Pair::add(std::chrono::milliseconds limit) {
  ++operations;
  ++open;
  usual += limit.count() > 0 ? 0 : 1;
  own += limit;
}

OperationWatch::Ticket OperationWatch::shared_by(int lane) {
  for (Ticket ticket = next_; ticket-- > first_;) {
    if (at(ticket).lane == lane && !at(ticket).ended) return ticket;
  }
  return next_ - 1;
}

Result<OperationWatch::Ticket> OperationWatch::begin(int lane, const Operation& operation,
                                                     std::chrono::milliseconds limit,
                                                     Stream stream) {
  Ticket ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    if (next_ - first_ == kPairs) TUTTI_TRY(see_ended().status());
    if (next_ - first_ == kPairs) {
      ticket = shared_by(lane);
      Pair& pair = at(ticket);
      if (std::exchange(pair.ended, false)) pair.begun.reset();
      pair.add(limit);
      return ticket;
    }
    ticket = next_++;
    Pair& pair = at(ticket);
    pair = {.before = pair.before, .behind = pair.behind, .lane = lane, .operation = operation};
    pair.add(limit);
  }
  TUTTI_TRY(record(at(ticket).before, stream));
  const std::lock_guard lock(mutex_);
  at(ticket).entered = true;
  return ticket;
}

Status OperationWatch::end(Ticket ticket, Stream stream) {
  TUTTI_TRY(record(at(ticket).behind, stream));
  const std::lock_guard lock(mutex_);
  --at(ticket).open;
  return Status::ok();
}

bool OperationWatch::has_ended(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  (void)see_ended();
  return ticket < first_ || at(ticket).ended;
}

std::optional<OperationWatch::Oldest> OperationWatch::oldest() {
  const std::lock_guard lock(mutex_);
  (void)ask_device(Clock::now());
  if (next_ == first_) return std::nullopt;
  const Pair& pair = at(first_);
  return Oldest{pair.operation, pair.begun.has_value()};
}

// Behind one that has not ended no other of its lane has.
Result<OperationWatch::Fronts> OperationWatch::see_ended() {
  Fronts fronts{};
  for (Ticket ticket = first_; ticket < next_; ++ticket) {
    Pair& pair = at(ticket);
    if (pair.ended || fronts[pair.lane] != nullptr) continue;
    if (pair.open == 0) {
      TUTTI_ASSIGN(pair.ended, cuda_.event_finished(pair.behind));
    }
    if (!pair.ended) fronts[pair.lane] = &pair;
  }
  while (first_ < next_ && at(first_).ended) ++first_;
  return fronts;
}

Result<OperationWatch::Fronts> OperationWatch::ask_device(Clock::time_point now) {
  TUTTI_ASSIGN(const Fronts fronts, see_ended());
  for (Pair* const pair : fronts) {
    if (pair == nullptr || pair->begun || !pair->entered) continue;
    TUTTI_ASSIGN(const bool begun, cuda_.event_finished(pair->before));
    if (begun) pair->begun = now;
  }
  return fronts;
}

Result<std::optional<OperationWatch::Late>> OperationWatch::look(Clock::time_point now,
                                                                 std::chrono::milliseconds usual) {
  const std::lock_guard lock(mutex_);
  TUTTI_ASSIGN(const Fronts fronts, ask_device(now));
  using Seconds = std::chrono::duration<double>;  // many long deadlines together are no integer
  for (const Pair* const pair : fronts) {
    if (pair == nullptr || !pair->begun) continue;
    const Seconds limit = Seconds(pair->own) + pair->usual * Seconds(usual);
    if (Seconds(now - *pair->begun) < limit) continue;
    return std::optional(Late{pair->operation, pair->operations, now - *pair->begun});
  }
  return std::optional<Late>();
}

}  // namespace tutti
