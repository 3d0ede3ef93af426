#include "executors/network/staged_operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "base/try.hpp"
#include "base/units.hpp"
#include "memory/device_scope.hpp"

namespace tutti {
namespace {

constexpr std::size_t kPageBytes = 4096;
static_assert(sizeof(CopyRequests) <= kPageBytes);
// Shares begin at multiples of it, so no piece can be shorter.
constexpr std::size_t kPieceUnitBytes = 64;
// How long the end of kernels is waited for that were told to end.
constexpr std::chrono::seconds kKernelEnd{1};

// Two slots for each peer and way, and two of two sides, each of which holds a unit of each rank.
std::size_t staging_of(std::size_t asked, int ranks) {
  const std::size_t least = 4 * kPieceUnitBytes * static_cast<std::size_t>(ranks);
  return round_up(std::max(asked, least), kPageBytes);
}

std::uint64_t patience_ns(std::chrono::nanoseconds timeout) {
  return static_cast<std::uint64_t>((timeout + kKernelPatience).count());
}

}  // namespace

Result<std::unique_ptr<StagedOperations>> StagedOperations::create(const Setup& setup) {
  const DeviceScope scope(setup.cuda, setup.device);
  TUTTI_TRY(scope.status());
  if (const void* const kernel = requested_copies_kernel()) {
    TUTTI_TRY(setup.cuda.load_kernel(kernel, 0));
  }
  const std::size_t bytes = kPageBytes + staging_of(setup.staging_bytes, setup.ranks);
  TUTTI_ASSIGN(RankMemory memory,
               RankMemory::create(setup.cuda, setup.device, {.host_bytes = bytes}));
  return std::unique_ptr<StagedOperations>(new StagedOperations(setup, std::move(memory)));
}

StagedOperations::StagedOperations(const Setup& setup, RankMemory memory)
    : cuda_(setup.cuda),
      device_(setup.device),
      ranks_(setup.ranks),
      staging_bytes_(staging_of(setup.staging_bytes, setup.ranks)),
      omitted_(setup.omitted),
      memory_(std::move(memory)),
      page_(*new (memory_.host_memory()) CopyRequests{}),
      copies_(page_) {
  set_timeout(setup.timeout);
}

StagedOperations::~StagedOperations() {
  cancel();
  const Deadline end(kKernelEnd);
  const auto has_ended = [this] {
    return std::atomic_ref(page_.ended).load(std::memory_order_acquire) == launched_;
  };
  while (!has_ended() && !end.passed()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (!has_ended()) memory_.leave_behind();
}

std::byte* StagedOperations::staging() const { return memory_.host_memory() + kPageBytes; }

StagedSlots StagedOperations::slots_of_all() const {
  const std::size_t bytes = staging_bytes_ / 4 / kPieceUnitBytes * kPieceUnitBytes;
  std::byte* const base = staging();
  return {.inputs = {base, base + bytes},
          .outputs = {base + 2 * bytes, base + 3 * bytes},
          .bytes = bytes,
          .scalar = reinterpret_cast<std::byte*>(&page_.scalar)};
}

// Both ends of a message cut it alike, however many other messages each of them has.
StagedSlots StagedOperations::slots_of_pair(int peer, bool sends) const {
  const auto pairs = static_cast<std::size_t>(2 * ranks_);
  const std::size_t bytes = staging_bytes_ / pairs / 2 / kPieceUnitBytes * kPieceUnitBytes;
  const auto pair = static_cast<std::size_t>(2 * peer + (sends ? 1 : 0));
  std::byte* const base = staging() + 2 * pair * bytes;
  return {.inputs = {base, base + bytes}, .outputs = {base, base + bytes}, .bytes = bytes};
}

// Messages between two ranks are in order, and wait for no others: each pair and way has a lane.
std::vector<StagedLane> StagedOperations::lanes_of(std::vector<StagedTransfer> transfers) const {
  std::vector<StagedLane> lanes;
  std::map<std::pair<int, bool>, std::size_t> of_pair;
  for (StagedTransfer& transfer : transfers) {
    const auto& pair = transfer.what.pair;
    if (!pair) {
      lanes.emplace_back(slots_of_all(), omitted_).add(std::move(transfer));
      continue;
    }
    const bool sends = pair->sender == transfer.what.shape.rank;
    const int peer = sends ? pair->receiver : pair->sender;
    const auto [place, is_new] = of_pair.try_emplace({peer, sends}, lanes.size());
    if (is_new) lanes.emplace_back(slots_of_pair(peer, sends), omitted_);
    lanes[place->second].add(std::move(transfer));
  }
  return lanes;
}

Result<std::uint64_t> StagedOperations::enqueue(Work work, Stream stream) {
  const std::uint64_t number = taken_ + 1;
  Operation operation{.number = number,
                      .lanes = lanes_of(std::move(work.transfers)),
                      .timeout = work.timeout,
                      .text = std::move(work.text)};
  RequestedCopies requests{.page = &page_,
                           .number = number,
                           .timeout_ns = work.has_own_timeout ? patience_ns(work.timeout) : 0,
                           .first = {}};
  if (!operation.lanes.empty()) requests.first = operation.lanes.front().take_first_copy();
  {
    const std::lock_guard lock(mutex_);
    operations_.push_back(std::move(operation));
  }
  taken_ = number;
  TUTTI_TRY(launch(requests, stream));
  launched_ = number;
  return number;
}

Status StagedOperations::launch(RequestedCopies work, Stream stream) {
  const DeviceScope scope(cuda_, device_);
  TUTTI_TRY(scope.status());
  void* arguments[] = {&work};
  return cuda_.launch({.kernel = requested_copies_kernel(),
                       .blocks = 1,
                       .threads = kRequestThreads,
                       .arguments = arguments,
                       .stream = stream});
}

StagedOperations::Operation* StagedOperations::oldest() {
  const std::lock_guard lock(mutex_);
  return operations_.empty() ? nullptr : &operations_.front();
}

Result<bool> StagedOperations::advance(NetworkEngine& engine,
                                       NetworkEngine::Clock::time_point now) {
  const RunningClock::time_point running(now.time_since_epoch());
  bool did = copies_.flush(running);
  Operation* const operation = oldest();
  if (operation == nullptr) return did;
  // Acquire: the first copy, and all that the kernels before have done.
  const std::uint64_t begun = std::atomic_ref(page_.begun).load(std::memory_order_acquire);
  if (begun < operation->number) return did;
  did |= !operation->begun;
  operation->begun = true;
  did |= advance(*operation, engine, now);
  did |= copies_.flush(running);
  if (copies_.idle(running) > operation->timeout) {
    return Status(
        StatusCode::kTimeout,
        fmt::format("{}: the GPU did not copy between its memory and the host's", operation->text));
  }
  const bool has_finished = std::all_of(operation->lanes.begin(), operation->lanes.end(),
                                        [](const StagedLane& lane) { return lane.finished(); });
  if (!has_finished) return did;
  copies_.add({});
  copies_.flush(running);
  const std::uint64_t number = operation->number;
  {
    const std::lock_guard lock(mutex_);
    operations_.pop_front();
  }
  finished_ = number;
  return true;
}

bool StagedOperations::advance(Operation& operation, NetworkEngine& engine,
                               NetworkEngine::Clock::time_point now) {
  const StagedLane::Context context{engine, copies_, now + operation.timeout};
  bool did = false;
  for (StagedLane& lane : operation.lanes) did |= lane.advance(context);
  return did;
}

std::uint64_t StagedOperations::ended_through() const {
  if (std::atomic_ref(page_.aborted).load() != 0) return taken_;
  return std::atomic_ref(page_.ended).load(std::memory_order_acquire);
}

void StagedOperations::cancel() { std::atomic_ref(page_.aborted).store(1); }

Status StagedOperations::check() const {
  const std::uint64_t late = std::atomic_ref(page_.late).load();
  if (late == 0) return Status::ok();
  return {
      StatusCode::kTimeout,
      fmt::format("operation {} over the network: the GPU waited in vain for the thread of this "
                  "rank that sends its messages",
                  late)};
}

void StagedOperations::set_timeout(std::chrono::nanoseconds timeout) {
  std::atomic_ref(page_.timeout_ns).store(patience_ns(timeout));
}

std::string StagedOperations::position() {
  const std::lock_guard lock(mutex_);
  if (operations_.empty()) return {};
  const Operation& operation = operations_.front();
  const bool begun = std::atomic_ref(page_.begun).load() >= operation.number;
  return operation.text + (begun ? "" : ", to which its stream has not come");
}

}  // namespace tutti
