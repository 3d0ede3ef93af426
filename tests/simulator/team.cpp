#include "simulator/team.hpp"

#include <algorithm>

namespace tutti {
namespace {

using Kind = simulated::Mutation::Kind;

}  // namespace

SimulatedTeam::SimulatedTeam(const KernelArgs& work, int block, const Environment& environment)
    : HostTiles(work, block),
      environment_(environment),
      epoch_(work.epochs[block]),
      ended_(work.control->poison != 0 && !left_out(Kind::kNoPoison, 0)) {
  memory().proxy_fence(fiber());  // as the end of the kernel before
}

void SimulatedTeam::load_bytes(std::byte* to, const std::byte* from, std::size_t bytes) const {
  environment_.simulation.interrupt(fiber());
  memory().load(fiber(), to, from, bytes);
}

void SimulatedTeam::store_bytes(std::byte* to, const std::byte* from, std::size_t bytes) const {
  environment_.simulation.interrupt(fiber());
  memory().store(fiber(), to, from, bytes);
}

// --- bulk copies ---

void SimulatedTeam::copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;
  environment_.simulation.interrupt(fiber());
  copies_in_bulk_ = true;
  memory().bulk_copy(fiber(), to, from, bytes);
}

void SimulatedTeam::send_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  environment_.simulation.interrupt(fiber());
  copies_in_bulk_ = true;
  memory().bulk_store(fiber(), to, from, bytes);
}

Outcome SimulatedTeam::bulk_wait() {
  environment_.simulation.interrupt(fiber());
  if (!left_out(Kind::kNoBulkWait, bulk_waits_++)) memory().wait_written(fiber());
  return Outcome::kDone;
}

// --- scalars ---

void SimulatedTeam::publish_scalar(ScalarBits scalar) {
  if (left_out(Kind::kNoScalar, scalars_++)) return;
  store_bytes(reinterpret_cast<std::byte*>(&channel(work_.rank).scalars[block_]),
              reinterpret_cast<const std::byte*>(&scalar), sizeof scalar);
}

ScalarBits SimulatedTeam::scalar_of(int rank) const {
  ScalarBits scalar = 0;
  load_bytes(reinterpret_cast<std::byte*>(&scalar),
             reinterpret_cast<const std::byte*>(&channel(rank).scalars[block_]), sizeof scalar);
  return scalar;
}

// --- counts ---

void SimulatedTeam::publish_count(int to, std::uint32_t count) {
  store_bytes(reinterpret_cast<std::byte*>(&channel(work_.rank).counts[block_][to]),
              reinterpret_cast<const std::byte*>(&count), sizeof count);
}

std::uint32_t SimulatedTeam::published(int from, int to) const {
  std::uint32_t count = 0;
  load_bytes(reinterpret_cast<std::byte*>(&count),
             reinterpret_cast<const std::byte*>(&channel(from).counts[block_][to]), sizeof count);
  return count;
}

// --- barriers ---

void SimulatedTeam::arrive(Publish publish) {
  const int index = barriers_++;
  if (environment_.trace != nullptr) environment_.trace->arrivals.push_back(publish);
  if (left_out(Kind::kNoBarrier, index)) return;
  ++epoch_;
  if (ended_ || left_out(Kind::kNoArrival, index)) return;
  publish = weakened(publish, index);
  if (publish == Publish::kStores) memory().release(fiber());
  memory().send(fiber(), publish);
  for (int r = 0; r < work_.ranks; ++r) {
    if (left_out(Kind::kNoSignal, index, r)) continue;
    memory().store_flag(fiber(), &channel(r).flags[block_][work_.rank],
                        {epoch_, check_word(epoch_)});
  }
}

Outcome SimulatedTeam::wait() {
  const int index = barriers_ - 1;
  if (ended_) return Outcome::kFailed;
  if (left_out(Kind::kNoBarrier, index) || left_out(Kind::kNoWait, index)) return Outcome::kDone;
  for (int r = 0; r < work_.ranks; ++r) {
    if (left_out(Kind::kNoWaitFor, index, r)) continue;
    const std::uint64_t enough = epoch_ - (left_out(Kind::kOldEpoch, index) ? 1 : 0);
    const Outcome waited = wait_for({.flag = &channel(work_.rank).flags[block_][r],
                                     .rank = r,
                                     .epoch = epoch_,
                                     .enough = enough,
                                     .acquires = !left_out(Kind::kNoAcquire, index)});
    if (waited == Outcome::kDone) continue;
    take_flags_back();
    return Outcome::kFailed;
  }
  if (copies_in_bulk_) memory().proxy_fence(fiber());  // as bulk_copy() on GPUs, of what was before
  return Outcome::kDone;
}

void SimulatedTeam::take_flags_back() const {
  if (left_out(Kind::kFlagsNotTakenBack, 0) || left_out(Kind::kNoPoison, 0)) return;
  if (Control::reason_of(work_.control->poison) == FailureReason::kMismatch) return;
  const auto take_back = [this](Flag& flag) { memory().store_flag(fiber(), &flag, {}); };
  for (int r = 0; r < work_.ranks; ++r) take_back(channel(r).flags[block_][work_.rank]);
  if (work_.ring.directions > 0) for_each_ring_flag(take_back);
}

Outcome SimulatedTeam::wait_for(const Wait& wait) const {
  const std::uint64_t enough = wait.enough != 0 ? wait.enough : wait.epoch;
  const auto waited =
      environment_.simulation.wait_for_flag(fiber(), wait.flag, enough, &work_.control->poison);
  const Flag seen = memory().read_flag(wait.flag);
  using simulated::Waited;
  if (waited == Waited::kCalledOff) {
    return fail(FailureReason::kAborted, wait.rank, wait.epoch, seen);
  }
  if (waited == Waited::kTimeIsOver) {
    return fail(FailureReason::kTimeout, wait.rank, wait.epoch, seen);
  }
  const bool other = seen.epoch == wait.epoch && seen.check != check_word(wait.epoch);
  if (other && !left_out(Kind::kNoSignature, 0)) {
    return fail(FailureReason::kMismatch, wait.rank, wait.epoch, seen);
  }
  if (wait.acquires) memory().acquire(fiber(), wait.flag);
  return Outcome::kDone;
}

Outcome SimulatedTeam::finish() {
  if (environment_.trace != nullptr) {
    environment_.trace->copies_in = copies_in_;
    environment_.trace->copies_out = copies_out_;
    environment_.trace->scalars = scalars_;
    environment_.trace->counts = counts_;
    environment_.trace->bulk_waits = bulk_waits_;
  }
  if (memory().copies_in_bulk(fiber())) {
    environment_.simulation.report(simulated::Breach::kBulkSource,
                                   "a block ends, and its shared memory, before its bulk copies");
  }
  if (!left_out(Kind::kEpochNotKept, 0)) {
    work_.epochs[block_] = epoch_ + std::max(sent_[kForward], taken_[kForward]);
  }
  return Outcome::kDone;
}

Outcome SimulatedTeam::fail(FailureReason reason, int missing, std::uint64_t expected,
                            const Flag& seen) const {
  if (work_.control->poison == 0) work_.control->poison = static_cast<std::uint32_t>(reason);
  if (work_.control->claimed++ != 0) return Outcome::kFailed;
  describe(reason, missing, expected, seen);
  work_.failure->state = 1;
  return Outcome::kFailed;
}

// --- what a test takes away ---

bool SimulatedTeam::left_out(Kind kind, int at) const {
  const simulated::Mutation* const mutation = environment_.mutation;
  return mutation != nullptr && mutation->kind == kind && mutation->at == at;
}

bool SimulatedTeam::left_out(Kind kind, int at, int rank) const {
  return left_out(kind, at) && rank == (work_.rank + environment_.mutation->peer) % work_.ranks;
}

Publish SimulatedTeam::weakened(Publish publish, int at) const {
  if (!left_out(Kind::kPublishLess, at)) return publish;
  return publish == Publish::kStores ? Publish::kLoads : Publish::kEarlierKernels;
}

}  // namespace tutti
