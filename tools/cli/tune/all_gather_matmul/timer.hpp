// Times what all ranks do together: CUDA events around it, or the host's clock.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "drivers/cuda.hpp"
#include "tutti/tutti.hpp"

namespace tutti::cli {

// A sample runs `operations` in order; operation i has the number i.
struct TimedCall {
  std::function<Status(std::size_t number, Stream stream)> run;
  std::size_t operations = 1;
  std::vector<double> samples_us = {};  // per operation
};

class RankTimer {
 public:
  // Collective: allocates what aligns the ranks. `cuda`: null on the host.
  static Result<std::unique_ptr<RankTimer>> make(Communicator& communicator, CudaDriver* cuda,
                                                 std::chrono::milliseconds timeout);
  ~RankTimer();
  RankTimer(const RankTimer&) = delete;
  RankTimer& operator=(const RankTimer&) = delete;

  Stream stream() const { return stream_; }
  // Behind what is in the stream.
  Status fill(std::byte* at, std::uint8_t value, std::size_t bytes);

  // Collective. `rounds` samples of each call: in order, then in reverse order, and so on
  // (A B B A), each begun by all ranks together. Returns when all have ended.
  Status sample(std::span<TimedCall* const> calls, int rounds);

 private:
  struct Interval {
    CudaEvent start = nullptr, end = nullptr;
  };

  RankTimer(Communicator& communicator, CudaDriver* cuda, std::chrono::milliseconds timeout)
      : communicator_(communicator), cuda_(cuda), timeout_(timeout) {}
  Status open();
  Status align();
  static Status run(const TimedCall& call, Stream stream);
  Status sample_on_host(TimedCall& call);
  Status sample_on_gpu(std::span<TimedCall* const> calls);
  Status make_intervals(std::size_t count);

  Communicator& communicator_;
  CudaDriver* const cuda_;
  const std::chrono::milliseconds timeout_;
  Stream stream_ = nullptr;
  SymmetricMemory barrier_;
  std::vector<Interval> intervals_;
};

}  // namespace tutti::cli
