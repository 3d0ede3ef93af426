#include "executors/copy_engine/stream_barrier.hpp"

#include <fmt/format.h>

#include <thread>

#include "base/bytes.hpp"
#include "base/try.hpp"
#include "bootstrap/agree.hpp"
#include "bootstrap/bootstrap.hpp"
#include "memory/device_scope.hpp"
#include "memory/rank_memory.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {

class StreamBarrier::Pages : public RankMemory::Companion {
 public:
  Pages(CudaDriver& cuda, int device, std::shared_ptr<SymmetricSegment> segment)
      : cuda_(cuda), device_(device), segment_(std::move(segment)) {
    for (std::byte* const at : segment_->at) {
      on_host.push_back(reinterpret_cast<PipelinePage*>(at));
    }
  }
  ~Pages() override {
    const DeviceScope scope(cuda_, device_);
    for (std::size_t r = 0; r < on_device.size(); ++r) {
      (void)cuda_.unregister_host(segment_->at[r]);
    }
  }

  Status register_all() {
    for (std::byte* const at : segment_->at) {
      TUTTI_ASSIGN(std::byte* const there, cuda_.register_host(at, segment_->capacity));
      on_device.push_back(reinterpret_cast<PipelinePage*>(there));
    }
    return Status::ok();
  }

  BarrierPages on_host, on_device;

 private:
  CudaDriver& cuda_;
  const int device_;
  std::shared_ptr<SymmetricSegment> segment_;
};

namespace {

Status has_operations(CudaDriver& cuda, int device) {
  TUTTI_ASSIGN(const CudaDeviceProperties gpu, cuda.properties(device));
  if (gpu.stream_memory_operations) return Status::ok();
  return {StatusCode::kUnsupported, "the GPU has no 64-bit stream memory operations"};
}

// What the stream of a rank writes into every page: no two bytes are alike.
std::uint64_t tried_value(std::size_t rank) { return 0x0123456789abcde0 + rank; }

Status finish_trial(CudaDriver& cuda, Stream stream) {
  const Deadline end(std::chrono::seconds(1));
  for (;;) {
    TUTTI_ASSIGN(const bool finished, cuda.stream_finished(stream));
    if (finished) return Status::ok();
    if (end.passed()) return {StatusCode::kTimeout, "a stream awaits its own word for 1 s"};
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// After the streams of all ranks have written.
Status check_trial(BarrierPage& own, std::size_t ranks) {
  for (std::size_t r = 0; r < ranks; ++r) {
    if (read_word(own.tried[r]) == tried_value(r)) continue;
    return {StatusCode::kUnavailable,
            fmt::format("what the stream of rank {} wrote is not in this rank's page", r)};
  }
  return Status::ok();
}

}  // namespace

// This rank's stream writes into every page, the own one last, and awaits the own word. The limit
// is far below the group's deadline: a rank that cannot must still tell the others.
Status StreamBarrier::try_words(const Place& place, const Pages& pages) {
  const auto ranks = pages.on_device.size();
  const auto rank = static_cast<std::size_t>(place.bootstrap.rank());
  std::vector<CudaMemoryOperation> operations;
  for (std::size_t step = 1; step <= ranks; ++step) {
    std::uint64_t& word = pages.on_device[(rank + step) % ranks]->tried[rank];
    operations.push_back({CudaMemoryOperation::Kind::kWrite, &word, tried_value(rank)});
  }
  operations.push_back({CudaMemoryOperation::Kind::kWaitAtLeast,
                        &pages.on_device[rank]->tried[rank], tried_value(rank)});
  CudaDriver& cuda = place.cuda;
  TUTTI_ASSIGN(const Stream stream, cuda.create_stream(place.device));
  Status status = cuda.memory_operations(operations, stream);
  if (status.is_ok()) status = finish_trial(cuda, stream);
  if (!status.is_ok()) {  // in case that the stream awaits the word
    std::atomic_ref(pages.on_host[rank]->tried[rank]).store(tried_value(rank));
  }
  const Status destroyed = cuda.destroy_stream(stream);
  return status.is_ok() ? destroyed : status;
}

Result<std::unique_ptr<StreamBarrier>> StreamBarrier::open(const Place& place, Deadline deadline) {
  const int rank = place.bootstrap.rank();
  const DeviceScope scope(place.cuda, place.device);
  const Status possible =
      scope.status().is_ok() ? has_operations(place.cuda, place.device) : scope.status();
  TUTTI_TRY(agree(place.bootstrap, possible, deadline));
  const auto heap = make_host_heap(place.bootstrap, place.shared_memory);
  if (!heap.is_ok()) return Status(StatusCode::kUnavailable, heap.status().message());
  TUTTI_ASSIGN(auto segment, (*heap)->allocate(sizeof(PipelinePage), deadline));
  auto pages = std::make_unique<Pages>(place.cuda, place.device, std::move(segment));
  std::unique_ptr<StreamBarrier> barrier(new StreamBarrier(place.cuda, rank, std::move(pages)));
  TUTTI_TRY(barrier->try_out(place, deadline));
  return barrier;
}

// Collective.
Status StreamBarrier::try_out(const Place& place, Deadline deadline) {
  open_page(own(), place.bootstrap.size());
  Status made = pages_->register_all();
  if (made.is_ok()) made = try_words(place, *pages_);
  TUTTI_TRY(agree(place.bootstrap, made, deadline));
  return agree(place.bootstrap, check_trial(own(), pages_->on_host.size()), deadline);
}

StreamBarrier::StreamBarrier(CudaDriver& cuda, int rank, std::unique_ptr<Pages> pages)
    : cuda_(cuda),
      rank_(rank),
      pages_(std::move(pages)),
      waits_(std::make_unique<StreamWaits>(cuda, rank, pages_->on_host, pages_->on_device)) {}

StreamBarrier::~StreamBarrier() {
  if (drained_) {
    RankMemory::keep(cuda_, std::move(pages_));
  } else {  // its words must stay, since a stream may still use them
    static_cast<void>(pages_.release());
  }
}

BarrierPage& StreamBarrier::own() const {
  return *pages_->on_host[static_cast<std::size_t>(rank_)];
}

Status StreamBarrier::enqueue(const KernelArgs& work, Stream stream,
                              std::vector<CudaMemoryOperation> first) {
  BarrierTurn turn;
  {
    const std::lock_guard lock(mutex_);
    turn = last_ = last_.next(work.signature);
    pending_.push_back({turn, work.sequence, work.timeout_ns, work.signature});
  }
  const auto operations = barrier_operations(pages_->on_device, rank_, turn);
  first.insert(first.end(), operations.begin(), operations.end());
  return cuda_.memory_operations(first, stream);
}

// The barrier that a stream is in; null where it is in none, or was released: its slots then hold
// what this host stored. Under the lock.
const StreamBarrier::Pending* StreamBarrier::current() {
  const std::uint64_t ended = read_word(own().ended);
  while (!pending_.empty() && has_reached(ended, pending_.front().turn.number)) {
    pending_.pop_front();
  }
  if (released_ || pending_.empty()) return nullptr;
  if (!has_reached(read_word(own().begun), pending_.front().turn.number)) return nullptr;
  const std::uint64_t number = pending_.front().turn.number;
  if (waiting_in_ != number) {
    waiting_in_ = number;
    since_ = Clock::now();
    left_ = -1;
  }
  return &pending_.front();
}

FailureRecord StreamBarrier::record_of(const Pending& pending, const BarrierView& view,
                                       FailureReason reason, std::uint32_t there) const {
  const BarrierTurn& turn = pending.turn;
  const int missing = view.missing_rank();
  const std::uint64_t before = turn.number > 2 ? turn.number - 2 : 0;
  return failed_wait({.sequence = pending.sequence,
                      .expected_epoch = turn.number,
                      .seen_epoch = view.has_arrival(missing) ? turn.number : before,
                      .expected_signature = pending.signature,
                      .seen_signature = there,
                      .waiting_rank = rank_,
                      .missing_rank = missing},
                     reason, since_);
}

std::optional<FailureRecord> StreamBarrier::look(std::uint64_t usual_ns, std::uint32_t notices) {
  if (auto record = look_at_barriers(usual_ns, notices)) return record;
  return waits_->look(usual_ns, notices);
}

std::optional<FailureRecord> StreamBarrier::look_at_barriers(std::uint64_t usual_ns,
                                                             std::uint32_t notices) {
  const std::lock_guard lock(mutex_);
  const Pending* const pending = current();
  if (pending == nullptr) return std::nullopt;
  const auto view = BarrierView::of(pages_->on_host, rank_, pending->turn);
  const int missing = view ? view->missing_rank() : -1;
  if (missing < 0) return std::nullopt;
  if (const auto there = view->other_operation(missing)) {
    return record_of(*pending, *view, FailureReason::kMismatch, *there);
  }
  // It was looked for in vain since it was seen to have left: nothing will come.
  if (left_ == missing) return record_of(*pending, *view, FailureReason::kLeft);
  if ((notices & Notice::left(missing)) != 0) left_ = missing;
  const std::uint64_t limit = pending->timeout_ns != 0 ? pending->timeout_ns : usual_ns;
  if (Clock::now() - since_ < std::chrono::nanoseconds(limit)) return std::nullopt;
  return record_of(*pending, *view, FailureReason::kTimeout);
}

std::optional<FailureRecord> StreamBarrier::waiting() {
  if (auto record = waiting_in_barrier()) return record;
  return waits_->waiting();
}

std::optional<FailureRecord> StreamBarrier::waiting_in_barrier() {
  const std::lock_guard lock(mutex_);
  const Pending* const pending = current();
  if (pending == nullptr) return std::nullopt;
  const auto view = BarrierView::of(pages_->on_host, rank_, pending->turn);
  if (!view || view->missing_rank() < 0) return std::nullopt;
  return record_of(*pending, *view, FailureReason::kAborted);
}

void StreamBarrier::release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  leave_peers(pages_->on_host, rank_);
  end_barriers(pages_->on_host, rank_, last_);
  waits_->release();
}

}  // namespace tutti
