// Where all-gathers run beside a matmul that waits for what they bring (matmul/gated.hpp): a stream
// beside the caller's, the words that copy engines write and the kernel reads, and the host's watch
// over the kernel's waits.
//
//   begin   the side stream continues behind what is in the caller's
//           an all-gather in the side stream, which announces each chunk; the matmul in the
//           caller's
//   end     the caller's stream continues behind the side stream
//
// Words count the turns: a chunk of this turn has come once its word has reached the turn's number.
// Turns follow each other, whatever streams they are in. So a word is never ahead of the turn that
// reads it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/deadline.hpp"
#include "drivers/cuda.hpp"
#include "matmul/gated.hpp"
#include "memory/rank_memory.hpp"

namespace tutti {

class ArrivalLane {
 public:
  static constexpr int kWords = kMostArrivalFlags;

  // The device is current. `turns`: that words count as having been, for tests.
  static Result<std::unique_ptr<ArrivalLane>> create(CudaDriver& cuda, int device,
                                                     std::uint32_t turns = 0);
  ~ArrivalLane();
  ArrivalLane(const ArrivalLane&) = delete;
  ArrivalLane& operator=(const ArrivalLane&) = delete;

  // Not in captures. The device is current. end() follows whatever came between, failures too.
  struct Turn {
    Stream side = nullptr;
    std::uint32_t* words = nullptr;  // kWords of them
    std::uint32_t number = 0;
    const std::uint32_t* abort = nullptr;
    GateFailure* failure = nullptr;
  };
  Result<Turn> begin(Stream stream);
  Status end(Stream stream);

  // The failed wait of a kernel, once; null: there is none. From any thread, as what follows.
  const GateFailure* new_failure();
  // The group has failed: kernels do not wait any more.
  void release() { aborted().store(1, std::memory_order_release); }
  // Whether all turns have ended. If not, their memory stays.
  bool drain(Deadline deadline);

 private:
  ArrivalLane(CudaDriver& cuda, std::uint32_t turns) : cuda_(cuda), turn_(turns) {}
  Status open(int device);
  std::atomic_ref<std::uint32_t> aborted() const { return std::atomic_ref(*abort_); }

  CudaDriver& cuda_;
  RankMemory memory_;
  std::uint32_t* words_ = nullptr;
  std::uint32_t* abort_ = nullptr;
  GateFailure* failure_ = nullptr;
  Stream side_ = nullptr;
  CudaEvent begun_ = nullptr, gathered_ = nullptr, ended_ = nullptr;
  std::uint32_t turn_;
  std::atomic<bool> used_ = false;  // `ended_` was recorded
  std::atomic<bool> reported_ = false;
  bool drained_ = true;
};

}  // namespace tutti
