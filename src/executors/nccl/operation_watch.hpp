// Sees from the host when operations without a deadline on the device begin and end: an event
// before each and one behind it. Operations of one lane run one after the other, as those of one of
// NCCL's communicators do, also on several streams: an operation's clock starts when its stream has
// come to it and those before it in its lane have ended, so that work of the user's ahead of it
// makes none late.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/deadline.hpp"
#include "drivers/cuda.hpp"
#include "operation/operation.hpp"

namespace tutti {

class OperationWatch {
 public:
  using Clock = RunningClock;

  static Result<std::unique_ptr<OperationWatch>> create(CudaDriver& cuda, int device);
  ~OperationWatch();
  OperationWatch(const OperationWatch&) = delete;
  OperationWatch& operator=(const OperationWatch&) = delete;

  // Around what enqueues an operation, which may block. One call of begin() at a time; ends may
  // come in any order. `limit`: the operation's own deadline; 0: the usual one. An operation whose
  // begin() or end() failed stays unfinished.
  using Ticket = std::uint64_t;
  static constexpr Ticket kUnwatched = 0;  // of no operation; it has ended
  static constexpr int kLanes = 3;
  Result<Ticket> begin(int lane, const Operation& operation, std::chrono::milliseconds limit,
                       Stream stream);
  Status end(Ticket ticket, Stream stream);

  // These ask the device how far it has come. From any thread.
  bool has_ended(Ticket ticket);
  // The oldest operation that has not ended.
  struct Oldest {
    Operation operation;
    bool begun = false;  // on the device
  };
  std::optional<Oldest> oldest();
  // An operation that is beyond its deadline by now.
  struct Late {
    Operation operation;
    int operations = 1;  // that and those behind it, of which one is late
    std::chrono::duration<double> waited{0};
  };
  Result<std::optional<Late>> look(Clock::time_point now, std::chrono::milliseconds usual);

 private:
  // Where all pairs are in use, an operation shares the latest of its lane: one time for all of
  // them together. If its lane has none, it shares the latest of all.
  static constexpr std::size_t kPairs = 128;
  struct Pair {
    CudaEvent before = nullptr, behind = nullptr;
    int lane = 0;
    Operation operation;  // the first of them
    int operations = 0;
    int usual = 0;                     // of them, so many without a deadline of their own
    std::chrono::milliseconds own{0};  // the deadlines of the others
    int open = 0;                      // of them, so many between begin() and end()
    bool entered = false;              // `before` is recorded
    bool ended = false;                // seen to have
    std::optional<Clock::time_point> begun;

    void add(std::chrono::milliseconds limit);
  };

  OperationWatch(CudaDriver& cuda, int device) : cuda_(cuda), device_(device) {}
  Status make_events();
  Status record(CudaEvent event, Stream stream);
  Pair& at(Ticket ticket) { return pairs_[ticket % kPairs]; }
  Ticket shared_by(int lane);
  // Of each lane the first that has not ended, where there is one.
  using Fronts = std::array<Pair*, kLanes>;
  Result<Fronts> see_ended();
  Result<Fronts> ask_device(Clock::time_point now);

  CudaDriver& cuda_;
  const int device_;
  std::mutex mutex_;  // never held while something is enqueued, which may block
  std::array<Pair, kPairs> pairs_{};
  Ticket first_ = kUnwatched + 1, next_ = first_;
};

}  // namespace tutti
