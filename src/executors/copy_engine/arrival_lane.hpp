// Where all-gathers run beside a matmul that waits for what they bring (matmul/gated.hpp): a stream
// beside the caller's, the words that copy engines write and the kernel reads, and the host's watch
// over the kernel's waits.
//
//   begin   the side stream continues behind what is in the caller's
//           an all-gather in the side stream, which announces each chunk; the matmul in the
//           caller's; the caller's stream waits for the all-gather
//   end     what the caller's stream has come to is the end of the turn
//
// Words count the turns: a chunk of this turn has come once its word has reached the turn's number.
// Turns follow each other, whatever streams they are in. So a word is never ahead of the turn that
// reads it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/deadline.hpp"
#include "drivers/cuda.hpp"
#include "matmul/gated.hpp"
#include "memory/rank_memory.hpp"

namespace tutti {

class ArrivalLane {
 public:
  static constexpr int kWords = kMostArrivalFlags;

  // The device is current. `turns`: the number of the turn before the first one; tests say others.
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
    std::uint32_t* words = nullptr;  // kWords of them
    std::uint32_t number = 0;
    const std::uint32_t* abort = nullptr;
    GateFailure* failure = nullptr;
  };
  // Not in captures. The device is current. Shards have so many words each. end() follows whatever
  // came between, failures too; the caller's stream is behind the side stream then.
  Result<Turn> begin(std::unique_lock<std::mutex> lock, Stream stream, int chunks);
  Status end(Turn turn, Stream stream);

  // Of a kernel's wait that has failed. From any thread, as what follows.
  struct LateChunk {
    int shard, chunk;
    std::uint32_t number, seen;  // the turn's, and the word's
  };
  std::optional<LateChunk> late_chunk() const;
  // The group has failed: kernels do not wait any more.
  void release() { std::atomic_ref(*abort_).store(1, std::memory_order_release); }
  // Whether all turns have ended. If not, their memory stays.
  bool drain(Deadline deadline);

 private:
  ArrivalLane(CudaDriver& cuda, std::uint32_t turns) : cuda_(cuda), turn_(turns) {}
  Status open(int device);
  bool has_ended() const;

  CudaDriver& cuda_;
  RankMemory memory_;
  std::uint32_t* words_ = nullptr;
  std::uint32_t* abort_ = nullptr;
  GateFailure* failure_ = nullptr;
  Stream side_ = nullptr;
  CudaEvent begun_ = nullptr, ended_ = nullptr;
  std::mutex mutex_;  // of turns
  std::uint32_t turn_;
  Stream stream_ = nullptr;      // the caller's, in the last turn
  std::atomic<int> chunks_ = 1;  // of a shard, in the last turn
  // What `ended_` stands for: nothing yet, a turn that has begun, or the last turn.
  enum class Last : std::uint8_t { kNone, kBegun, kEnded };
  std::atomic<Last> last_ = Last::kNone;
  bool drained_ = true;
};

}  // namespace tutti
