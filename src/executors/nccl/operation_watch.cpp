#include "executors/nccl/operation_watch.hpp"

#include <algorithm>

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

Result<OperationWatch::Ticket> OperationWatch::begin(const Operation& operation,
                                                     std::chrono::milliseconds limit,
                                                     Stream stream) {
  Ticket ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    if (next_ - first_ == kPairs) TUTTI_TRY(forget_ended());
    if (next_ - first_ == kPairs) {
      at(next_ - 1).add(limit);
      return next_ - 1;
    }
    ticket = next_++;
    Pair& pair = at(ticket);
    pair = {.before = pair.before, .behind = pair.behind, .operation = operation};
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

std::optional<OperationWatch::Oldest> OperationWatch::oldest() {
  const std::lock_guard lock(mutex_);
  (void)ask_device(Clock::now());
  if (next_ == first_) return std::nullopt;
  const Pair& pair = at(first_);
  return Oldest{pair.operation, pair.begun.has_value(), first_};
}

// They end in order: between one that has ended and one that has not, the border is looked for.
Status OperationWatch::forget_ended() {
  Ticket border = first_;
  while (border < next_ && at(border).open == 0) ++border;
  while (first_ < border) {
    const Ticket middle = first_ + (border - first_) / 2;
    TUTTI_ASSIGN(const bool ended, cuda_.event_finished(at(middle).behind));
    (ended ? first_ : border) = ended ? middle + 1 : middle;
  }
  return Status::ok();
}

Status OperationWatch::ask_device(Clock::time_point now) {
  TUTTI_TRY(forget_ended());
  if (next_ == first_) return Status::ok();
  Pair& pair = at(first_);
  if (pair.begun || !pair.entered) return Status::ok();
  TUTTI_ASSIGN(const bool begun, cuda_.event_finished(pair.before));
  if (begun) pair.begun = now;
  return Status::ok();
}

Result<std::optional<OperationWatch::Late>> OperationWatch::look(Clock::time_point now,
                                                                 std::chrono::milliseconds usual) {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(ask_device(now));
  if (next_ == first_) return std::optional<Late>();
  const Pair& pair = at(first_);
  using Seconds = std::chrono::duration<double>;  // many long deadlines together are no integer
  const Seconds limit = Seconds(pair.own) + pair.usual * Seconds(usual);
  if (!pair.begun || Seconds(now - *pair.begun) < limit) return std::optional<Late>();
  return std::optional(Late{pair.operation, pair.operations, now - *pair.begun});
}

}  // namespace tutti
