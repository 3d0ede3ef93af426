#include "tune/all_gather_matmul/timer.hpp"

#include <cstring>

#include "base/try.hpp"
#include "bench/cuda_wait.hpp"

namespace tutti::cli {

Result<std::unique_ptr<RankTimer>> RankTimer::make(Communicator& communicator, CudaDriver* cuda,
                                                   std::chrono::milliseconds timeout) {
  std::unique_ptr<RankTimer> timer(new RankTimer(communicator, cuda, timeout));
  TUTTI_TRY(timer->open());
  return timer;
}

RankTimer::~RankTimer() {
  for (const Interval& interval : intervals_) {
    static_cast<void>(cuda_->destroy_event(interval.start).is_ok());
    static_cast<void>(cuda_->destroy_event(interval.end).is_ok());
  }
  if (stream_ != nullptr) static_cast<void>(cuda_->destroy_stream(stream_).is_ok());
}

Status RankTimer::open() {
  if (cuda_ != nullptr) {
    TUTTI_ASSIGN(stream_, cuda_->create_stream(communicator_.device()));
  }
  TUTTI_ASSIGN(barrier_, communicator_.allocate(sizeof(float)));
  return Status::ok();
}

Status RankTimer::fill(std::byte* at, std::uint8_t value, std::size_t bytes) {
  if (cuda_ != nullptr) return cuda_->set_async(at, value, bytes, stream_);
  std::memset(at, value, bytes);
  return Status::ok();
}

// An all-reduce of one element ends when every rank has begun it.
Status RankTimer::align() {
  return all_reduce(
      communicator_,
      {.input = barrier_.data(), .output = barrier_.data(), .count = 1, .stream = stream_});
}

Status RankTimer::run(const TimedCall& call, Stream stream) {
  for (std::size_t i = 0; i < call.operations; ++i) TUTTI_TRY(call.run(i, stream));
  return Status::ok();
}

Status RankTimer::sample(std::span<TimedCall* const> calls, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<TimedCall*> order(calls.begin(), calls.end());
    if (round % 2 != 0) order.assign(calls.rbegin(), calls.rend());
    if (cuda_ != nullptr) {
      TUTTI_TRY(sample_on_gpu(order));
      continue;
    }
    for (TimedCall* call : order) TUTTI_TRY(sample_on_host(*call));
  }
  return Status::ok();
}

Status RankTimer::sample_on_host(TimedCall& call) {
  TUTTI_TRY(align());
  const auto start = std::chrono::steady_clock::now();
  TUTTI_TRY(run(call, nullptr));
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  call.samples_us.push_back(time.count() / static_cast<double>(call.operations));
  return Status::ok();
}

// All are enqueued before any is waited for: while one runs, the host is at the next ones.
Status RankTimer::sample_on_gpu(std::span<TimedCall* const> calls) {
  TUTTI_TRY(make_intervals(calls.size()));
  for (std::size_t k = 0; k < calls.size(); ++k) {
    TUTTI_TRY(align());
    TUTTI_TRY(cuda_->record_event(intervals_[k].start, stream_));
    TUTTI_TRY(run(*calls[k], stream_));
    TUTTI_TRY(cuda_->record_event(intervals_[k].end, stream_));
  }
  TUTTI_TRY(wait_for(*cuda_, communicator_, stream_, 2 * timeout_ + std::chrono::seconds(10)));
  for (std::size_t k = 0; k < calls.size(); ++k) {
    TUTTI_ASSIGN(const float time, cuda_->elapsed_us(intervals_[k].start, intervals_[k].end));
    calls[k]->samples_us.push_back(static_cast<double>(time) /
                                   static_cast<double>(calls[k]->operations));
  }
  return Status::ok();
}

Status RankTimer::make_intervals(std::size_t count) {
  while (intervals_.size() < count) {
    Interval interval;
    TUTTI_ASSIGN(interval.start, cuda_->create_event(true));
    TUTTI_ASSIGN(interval.end, cuda_->create_event(true));
    intervals_.push_back(interval);
  }
  return Status::ok();
}

}  // namespace tutti::cli
