// A group of ranks that compute together. "Collective" calls are made by every rank of the group,
// in the same order, with matching arguments.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/export.hpp"
#include "tutti/status.hpp"
#include "tutti/symmetric_memory.hpp"
#include "tutti/tuning.hpp"
#include "tutti/types.hpp"

namespace tutti {

class CommunicatorImpl;

struct CommunicatorOptions {
  // kAuto: CUDA where every rank has a GPU of its own, else host.
  Backend backend = Backend::kAuto;
  // CUDA ordinal for this rank; -1: the launcher's local rank, or the rank, modulo the visible
  // GPUs. Below -1: kInvalidArgument.
  int device = -1;
  // Every wait of this communicator ends by then, but for replays of captured operations on NCCL.
  // On the host, time in which this process was suspended does not count
  // (docs/troubleshooting/errors.md). 0 means TUTTI_TIMEOUT_MS. Capped at 100 years; a negative
  // timeout is kInvalidArgument.
  std::chrono::milliseconds timeout{0};
  // Leave out every algorithm whose bits depend on more than the inputs and the number of ranks.
  bool deterministic = false;
};

// Proves membership and says where to meet. Make it on one rank, hand its text to the others.
class UniqueId {
 public:
  // Ranks on this host only.
  TUTTI_API static Result<UniqueId> create();
  // Ranks on several hosts: rank 0 listens on `host`:`port` (port 0 is not possible here).
  TUTTI_API static Result<UniqueId> create_tcp(std::string_view host, int port);
  TUTTI_API static Result<UniqueId> from_text(std::string_view text);
  const std::string& text() const { return text_; }  // at most 127 printable characters; a secret

 private:
  explicit UniqueId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

class Communicator {
 public:
  // Collective. Waits for all `size` ranks, at most the timeout. Each rank may be a process or a
  // thread. Errors: kTimeout names the ranks that did not come; kMismatch names the setting or
  // version that differs; kUnsupported/kUnavailable say why the backend cannot run here;
  // kResourceExhausted names the rank that ran out of something, and the limit.
  //
  // Ranks on several hosts, or more of them than share memory (16 on the host, 8 on GPUs), make a
  // group without symmetric memory: operations that NCCL cannot run are refused with kUnsupported,
  // and split() makes groups that share memory.
  TUTTI_API static Result<Communicator> create(const UniqueId& id, int rank, int size,
                                               const CommunicatorOptions& options = {});

  // Collective. Rank, size and meeting point from torchrun, Open MPI, SLURM, PMI or tutti's
  // launcher.
  TUTTI_API static Result<Communicator> create_from_environment(
      const CommunicatorOptions& options = {});

  // All `ranks` ranks in this process, made by one call from one thread. Element r is rank r's;
  // on CUDA it drives device r (options.device is ignored). kUnsupported above 256 ranks.
  TUTTI_API static Result<std::vector<Communicator>> create_in_process(
      int ranks, const CommunicatorOptions& options = {});

  TUTTI_API Communicator(Communicator&&) noexcept;
  TUTTI_API Communicator& operator=(Communicator&&) noexcept;
  // Waits for this rank's own work, at most the timeout, after which what runs on NCCL is aborted.
  // Replays of graphs and kernels of the caller's own must have ended. After that the rank has left
  // the group: a later call of the other ranks that waits for it fails at once with kPeerFailed;
  // calls in which it took part still complete. Never hangs, never reports.
  TUTTI_API ~Communicator();

  TUTTI_API int rank() const;
  TUTTI_API int size() const;
  TUTTI_API Backend backend() const;  // kHost or kCuda
  TUTTI_API int device() const;       // CUDA ordinal; -1 on the host

  // Collective. Ranks of equal `color` form a group, ordered by (key, rank). A rank with a negative
  // color takes part and gets null. Where a rank cannot make its part, all of the new group fail;
  // this communicator stays usable.
  TUTTI_API Result<std::unique_ptr<Communicator>> split(int color, int key);

  // Collective. `bytes` > 0, equal on every rank. Not inside a capture. kResourceExhausted on every
  // rank names one that ran out of memory, maps or descriptors; the communicator stays usable.
  TUTTI_API Result<SymmetricMemory> allocate(std::size_t bytes);

  // Collective. Memory of the caller's (cudaMalloc or VMM on CUDA; any on the host backend), which
  // must stay allocated and in place until the result is destroyed. Where peers cannot address it,
  // the result says zero_copy() == false. kResourceExhausted as for allocate. Not inside a capture.
  TUTTI_API Result<SymmetricMemory> register_memory(void* address, std::size_t bytes);

  // Collective, outside captures. Between the two, buffers of captured operations that are not
  // symmetric are noted instead of staged; finish_capture registers them, so that replays are
  // zero-copy. A replay whose inputs were never registered fails with kInvalidArgument in status().
  // Where finish_capture says kResourceExhausted, nothing was registered: call it again once there
  // is room, or start_capture, which forgets what was noted.
  //
  // Graphs of one communicator replay beside its other calls, and beside graphs that were captured
  // on other streams. Two that were captured on one stream share memory in some algorithms: replay
  // them one after the other. Where they meet, status() says kInvalidArgument.
  TUTTI_API Status start_capture();
  TUTTI_API Status finish_capture();

  // Collective. Makes what is made lazily otherwise and cannot be made inside a capture: NCCL's
  // communicator, and windows over what is allocated where TUTTI_TUNE or a table names a row that
  // needs them. Waits for all ranks, at most the timeout. kUnavailable where NCCL is not there.
  TUTTI_API Status prepare_nccl();

  // For every wait of this rank that begins or goes on from now on, also in graphs that were
  // captured before; a deadline of a single call stays what it is. From any thread. Error:
  // kInvalidArgument unless `timeout` > 0.
  TUTTI_API Status set_timeout(std::chrono::milliseconds timeout);

  // From any thread, also while an operation runs or a kernel spins: ends it on every rank with
  // kAborted and `reason`. Poisons the communicator.
  TUTTI_API void abort(std::string_view reason);

  // Never blocks. The first failure, with the operation, its sequence number, the waiting rank, the
  // missing rank, the expected and the seen value; ok while there is none. Every later call returns
  // the same failure.
  TUTTI_API Status status() const;

  // What this rank has asked for since the communicator was made, its own creation included. A loop
  // whose buffers are there leaves all of them as they are.
  struct Counters {
    std::uint64_t allocations = 0;    // of symmetric memory; after creation there are no others
    std::uint64_t registrations = 0;  // of a user's memory, those of finish_capture() included
    std::uint64_t exchanges = 0;      // over the bootstrap, in which every rank takes part

    friend bool operator==(const Counters&, const Counters&) = default;
  };
  // Never blocks. From any thread.
  TUTTI_API Counters counters() const;

  // What a call with these arguments would run, without running it.
  struct Query {
    // Of the larger side: all_gather's and gather's output, reduce_scatter's and scatter's input,
    // either one of all_to_all's: ranks * their `count`. Of pieces of any lengths (all_gather_v and
    // so on): ranks * the longest one.
    std::size_t count = 0;
    DataType dtype = DataType::kFloat32;
    ReduceOp op = {};
    // all_reduce_residual_rms_norm: of a token, and `count` is that of all tokens. reduce_scatter:
    // of a row of the input, where rows are split; else 0.
    std::size_t hidden = 0;
    bool symmetric = true;
    bool in_place = false;
    std::string_view algorithm;         // as in CallOptions
    std::optional<int> sm_budget = {};  // likewise
    bool counts_on_device = false;      // of pieces of any lengths
    // Inside a graph capture that will not register its buffers, prepare_nccl() having been called.
    bool captured = false;
  };
  // `collective`: "all_reduce", "broadcast". kInvalidArgument lists the known ones.
  TUTTI_API Result<Plan> plan(std::string_view collective, const Query& query) const;

  CommunicatorImpl& impl() const { return *impl_; }
  explicit Communicator(std::unique_ptr<CommunicatorImpl> impl);

 private:
  std::unique_ptr<CommunicatorImpl> impl_;
};

}  // namespace tutti
