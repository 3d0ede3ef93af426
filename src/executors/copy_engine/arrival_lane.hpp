// Where all-gathers run beside a matmul that waits for what they bring (matmul/gated.hpp): a stream
// beside the caller's, the words that copy engines write and the kernel reads, and the host's watch
// over the kernel's waits. Where the kernel brings A itself, the side stream writes the go word
// alone, and the kernel writes the others.
//
//   begin   the side stream continues behind what is in the caller's
//           an all-gather in the side stream, which announces each chunk; the matmul in the
//           caller's; the caller's stream waits for the all-gather. A matmul that brings A is
//           between both meetings of the all-gather: the side stream waits for it (Turn::pulled)
//   end     what the caller's stream has come to is the end of the turn
//
// Words count the turns: a chunk of this turn has come once its word has reached the turn's number.
// Turns follow each other, whatever streams they are in. So a word is never ahead of the turn that
// reads it.
//
// A captured turn has words of its own as long as its graph lives, and a number that stays the
// same. So each replay sets the words to zero before anything else. Ranks meet by kernels there,
// which need an SM: the matmul begins once they have met (Turn::met), and then needs copies alone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "drivers/cuda.hpp"
#include "executors/copy_engine/copy_lanes.hpp"
#include "matmul/gated.hpp"
#include "memory/rank_memory.hpp"

namespace tutti {

class ArrivalLane {
 public:
  // Of a turn: flags, the go word, and the counters of pullers.
  static constexpr int kFlags = kMostArrivalFlags + 1;
  static constexpr int kWords = kFlags + kMostArrivalFlags;
  static constexpr int kCapturedTurns = 1024;  // of living graphs

  // The device is current, and the thread captures nothing. `turns`: the number of the turn before
  // the first one; tests say others.
  static Result<std::unique_ptr<ArrivalLane>> create(CudaDriver& cuda, int device,
                                                     std::uint32_t turns = 0);
  ~ArrivalLane();
  ArrivalLane(const ArrivalLane&) = delete;
  ArrivalLane& operator=(const ArrivalLane&) = delete;

  // For a turn: they are of one thread at a time.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  struct Turn {
    std::unique_lock<std::mutex> lock;  // of the lane
    ArrivalLane* lane = nullptr;
    Stream side = nullptr;
    std::uint32_t* words = nullptr;     // kFlags of them
    std::uint32_t* counters = nullptr;  // kMostArrivalFlags; zero unless a kernel has failed
    std::uint32_t number = 0;
    const std::uint32_t* abort = nullptr;
    GateFailure* failure = nullptr;
    // Captured: to be recorded in the side stream once the ranks have met, and to be awaited by the
    // caller's before the matmul. Null: the matmul need not wait.
    CudaEvent met = nullptr;
    CudaEvent pulled = nullptr;    // for a matmul that brings A: behind it
    CudaEvent gathered = nullptr;  // captured: of the lane
  };
  // The device is current. Shards have so many flags each. end() follows whatever came between,
  // failures too; the caller's stream is behind the side stream then, unless it is captured.
  // In a capture: kUnsupported where the driver captures no stream memory operations,
  // kResourceExhausted where as many turns are in living graphs. A begin that fails is followed by
  // the next turn as one that has ended. kCuda: the end of an earlier turn could not be recorded,
  // so nothing can be ordered behind it, and no turn begins any more.
  Result<Turn> begin(std::unique_lock<std::mutex> lock, Stream stream, int flags);
  Status end(Turn turn, Stream stream);

  // Of a kernel's wait that has failed. From any thread, as what follows.
  struct LateChunk {
    int shard;                   // as many as there are shards: the go word
    int chunk;                   // or k-group
    std::uint32_t number, seen;  // the turn's, and the word's
  };
  std::optional<LateChunk> late_chunk() const;
  // The group has failed: kernels do not wait any more.
  void release() { std::atomic_ref(*abort_).store(1, std::memory_order_release); }
  // Whether all turns have ended, but for replays. If not, their memory stays.
  bool drain(Deadline deadline);

 private:
  // Numbers of captured turns whose graphs are gone: they come from a thread of the driver's.
  struct Returned {
    std::mutex mutex;
    std::vector<int> slots;
  };

  ArrivalLane(CudaDriver& cuda, std::uint32_t turns) : cuda_(cuda), lanes_(cuda), turn_(turns) {}
  Status open(int device);
  Status try_capture(Stream side);
  Result<Turn> begin_captured(std::unique_lock<std::mutex> lock, CopyLane& lane, Stream stream,
                              int flags);
  Status enqueue_begin(Stream stream, Stream side);
  Status record_end(Stream stream);
  Result<int> take_slot(Stream stream);
  bool has_ended() const;

  CudaDriver& cuda_;
  RankMemory memory_;
  std::uint32_t* words_ = nullptr;  // kWords of eager turns, then of each captured one
  std::uint32_t* abort_ = nullptr;
  GateFailure* failure_ = nullptr;  // of eager turns, then of captured ones
  CopyLanes lanes_;                 // the side streams
  CudaEvent begun_ = nullptr, pulled_ = nullptr, ended_ = nullptr;
  std::mutex mutex_;  // of turns
  std::uint32_t turn_;
  std::uint64_t stream_ = 0;    // the caller's, in the last turn: CudaDriver::stream_id()
  std::atomic<int> flags_ = 1;  // of a shard, in the last turn
  std::string why_not_captured_;
  std::vector<int> free_slots_;
  std::array<std::atomic<int>, kCapturedTurns> captured_flags_{};  // of a shard
  std::shared_ptr<Returned> returned_ = std::make_shared<Returned>();
  // What `ended_` stands for: nothing yet, a turn that has begun, or the last turn.
  enum class Last : std::uint8_t { kNone, kBegun, kEnded };
  std::atomic<Last> last_ = Last::kNone;
  bool drained_ = true;
};

}  // namespace tutti
