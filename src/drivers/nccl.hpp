// NCCL as a library that may be there: found at run time (one that is already loaded is reused;
// then TUTTI_NCCL_LIBRARY, then libnccl.so.2), with own prototypes of what is used.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "tutti/types.hpp"

namespace tutti {

using NcclComm = void*;    // ncclComm_t
using NcclWindow = void*;  // ncclWindow_t
struct NcclId {
  std::array<std::byte, 128> bytes{};
};

// Of all_reduce, reduce_scatter and reduce; `count` is that of the output, or of the root's.
struct NcclReduction {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  ReduceOp op;
  int root = 0;  // of reduce
  Stream stream = nullptr;
};

// Bits are moved as bytes, so every version takes every element type.
struct NcclAllGather {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t bytes = 0;  // of one rank
  Stream stream = nullptr;
};

// Likewise.
struct NcclBroadcast {
  const void* input = nullptr;  // of the root
  void* output = nullptr;
  std::size_t bytes = 0;
  int root = 0;
  Stream stream = nullptr;
};

// Pieces in one call. A side holds as many as there are ranks, or one: of a gather the input, of a
// scatter the output.
struct NcclPieces {
  enum class Way { kAllToAll, kGather, kScatter };
  Way way = Way::kAllToAll;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t bytes = 0;  // of a piece
  int root = 0;           // but for kAllToAll
  Stream stream = nullptr;
};

// Likewise: sends and receives that go on together. Where two ranks have several for each other,
// they match in their order.
struct NcclExchange {
  struct Send {
    int rank = 0;
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  struct Receive {
    int rank = 0;
    void* to = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Send> sends;
  std::vector<Receive> receives;
  Stream stream = nullptr;
};

// What NCCL demands of memory that is to be a window: a VMM allocation (cuMemCreate), all of it,
// whose address and size are multiples of this (2.27; newer versions are content with 4 KiB).
inline constexpr std::size_t kNcclWindowAlignment = 2 * 1024 * 1024;

// What a communicator moves bytes with where both buffers lie in windows and nothing is computed.
enum class NcclMover : std::uint8_t {
  kKernels,
  kCopyEngines,  // which take no default stream
};

// What a rank makes its communicator as.
struct NcclMember {
  NcclId id;
  int rank = -1, size = 0;
  NcclMover mover = NcclMover::kKernels;
};

class NcclDriver {
 public:
  virtual ~NcclDriver() = default;
  virtual Result<std::string> version() = 0;  // "2.28.9"
  virtual int version_number() = 0;           // 22809
  virtual Result<NcclId> unique_id() = 0;
  // Blocks until every rank has called, at most until `deadline`: then kTimeout; or until
  // `give_up`, asked a hundred times a second, says true: then kAborted. What was half made is
  // given up. The calling thread's device must be set. From several ranks of one process: one
  // thread per rank, not inside a group. kUnsupported where this NCCL is too old for `mover` (copy
  // engines: before 2.28).
  using GiveUp = std::function<bool()>;
  virtual Result<NcclComm> create(const NcclMember& member, Deadline deadline,
                                  const GiveUp& give_up = nullptr) = 0;
  // Both end the communicator: no other call with it may be under way or follow. They may block for
  // as long as a graph that holds its operations exists, or the device has other work.
  virtual Status destroy(NcclComm comm) = 0;
  virtual Status abort(NcclComm comm) = 0;  // and what it runs on the device, first of all
  // Ends what it runs on the device and calls that block in it, from another thread than theirs;
  // only abort() may follow. kUnsupported where NCCL is too old (before 2.28).
  virtual Status interrupt(NcclComm comm) = 0;
  // What NCCL has noticed since; kPeerFailed where it blames a peer. Never blocks.
  virtual Status async_error(NcclComm comm) = 0;
  // kUnsupported where this NCCL is too old for the element type or the operation.
  virtual Status all_reduce(NcclComm comm, const NcclReduction& call) = 0;
  virtual Status all_gather(NcclComm comm, const NcclAllGather& call) = 0;
  // As all_reduce().
  virtual Status reduce_scatter(NcclComm comm, const NcclReduction& call) = 0;
  virtual Status reduce(NcclComm comm, const NcclReduction& call) = 0;
  virtual Status broadcast(NcclComm comm, const NcclBroadcast& call) = 0;
  virtual Status exchange(NcclComm comm, const NcclExchange& call) = 0;
  // kUnsupported where this NCCL has none (before 2.28).
  virtual Status move_pieces(NcclComm comm, const NcclPieces& call) = 0;
  // From now on operations of `comm` whose buffers all lie in windows may run on NCCL's symmetric
  // kernels; every rank has to give them at the same offset. Blocks until every rank has called,
  // without an end where one has failed: only abort() ends that. Outside captures. kUnsupported
  // where NCCL is too old (before 2.27) or makes none here.
  virtual Result<NcclWindow> register_window(NcclComm comm, std::byte* base, std::size_t bytes) = 0;
  // Local. No operation may still use the window; the memory is still mapped.
  virtual Status deregister_window(NcclComm comm, NcclWindow window) = 0;
  virtual Status group_start() = 0;
  virtual Status group_end() = 0;
};

// Null where no NCCL can be loaded; `why` says what was tried and what to do.
NcclDriver* real_nccl(std::string* why = nullptr);

// The same from another file.
std::unique_ptr<NcclDriver> open_nccl(const std::string& library, std::string* why = nullptr);

}  // namespace tutti
