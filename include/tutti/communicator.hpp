/// \file
/// The group of ranks that operations run in. "Collective" functions are called by every rank of
/// the group, in the same order, with matching arguments.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/export.hpp"
#include "tutti/local_memory.hpp"
#include "tutti/status.hpp"
#include "tutti/symmetric_memory.hpp"
#include "tutti/tuning.hpp"
#include "tutti/types.hpp"

namespace tutti {

class CommunicatorImpl;
struct Survivors;

/// How a communicator is created.
struct CommunicatorOptions {
  /// kAuto: CUDA if every rank has a GPU of its own, otherwise host.
  Backend backend = Backend::kAuto;
  /// CUDA ordinal of this rank; -1: the launcher's local rank, or else the rank, modulo the number
  /// of visible GPUs. Below -1: kInvalidArgument.
  int device = -1;
  /// Timeout of every wait of this communicator, except in replays of captured NCCL operations; 0:
  /// TUTTI_TIMEOUT_MS. On the host, time in which the process was suspended does not count
  /// (docs/troubleshooting/errors.md). At most 20 years; longer ones are shortened to that.
  /// Negative: kInvalidArgument.
  std::chrono::milliseconds timeout{0};
  /// Excludes algorithms that do not reduce in the order of ranks (rings, NVLink switch, NCCL), so
  /// that all results have the same bits.
  bool deterministic = false;
};

/// Identifies a group before it exists: where its ranks meet, and the secret that proves
/// membership. One rank creates it and sends its text to the others.
class UniqueId {
 public:
  /// For ranks on this host.
  TUTTI_API static Result<UniqueId> create();
  /// For ranks on several hosts. Rank 0 listens on `host`:`port`.
  ///
  /// Port 0: a free port of this machine, which must be rank 0's (else kInvalidArgument); rank 0
  /// may be another process of it. The port is held, by one file descriptor of this process, until
  /// rank 0 listens there in this process, or this process ends. Of more than 64 such ports the
  /// oldest is let go of; its id stays valid while nobody else takes the port.
  TUTTI_API static Result<UniqueId> create_tcp(std::string_view host, int port);
  /// The id whose text() this is.
  TUTTI_API static Result<UniqueId> from_text(std::string_view text);
  /// At most 127 printable characters. Contains a secret.
  const std::string& text() const { return text_; }

 private:
  explicit UniqueId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

/// One rank's membership in a group.
///
/// Threads: different communicators may be used from different threads at the same time, for
/// everything: creation, split(), memory, operations, destruction. That holds for communicators of
/// one process that belong to one group, for parts of one group, and for groups that share nothing.
/// The exception is create_from_environment(), whose ranks are told apart by the environment alone:
/// one call at a time in a process. On one communicator, calls that are collective or that enqueue
/// operations come one after the other, since all ranks need the same order; what may run beside
/// them says "from any thread".
class Communicator {
 public:
  /// Collective. Creates a group of `size` ranks, each a process or a thread. Waits for all ranks,
  /// at most for the timeout.
  ///
  /// Ranks on several hosts, or more ranks than can share memory (16 on the host, 8 on GPUs), form
  /// a group without symmetric memory. Between hosts, operations run over UCX or on NCCL, and are
  /// kUnsupported if neither can run them. If too many ranks are all on one host, only NCCL runs
  /// their operations, and on the host backend nothing does. split() makes groups that share
  /// memory. A group has at most 4096 ranks.
  ///
  /// Errors: kTimeout names the missing ranks; kMismatch names the setting or version that differs;
  /// kUnsupported and kUnavailable say why the backend cannot run here; kResourceExhausted names
  /// the rank and the limit.
  TUTTI_API static Result<Communicator> create(const UniqueId& id, int rank, int size,
                                               const CommunicatorOptions& options = {});

  /// Collective. As create(), with rank, size and meeting point from the environment that torchrun,
  /// Open MPI, SLURM, PMI or `tutti run` sets.
  TUTTI_API static Result<Communicator> create_from_environment(
      const CommunicatorOptions& options = {});

  /// Creates a group of `ranks` ranks that all live in this process. One thread calls it once.
  /// Element r of the result is rank r's; on CUDA rank r uses device r, modulo the number of
  /// visible GPUs, and `options.device` is ignored. More than 256 ranks: kUnsupported.
  TUTTI_API static Result<std::vector<Communicator>> create_in_process(
      int ranks, const CommunicatorOptions& options = {});

  /// The same with one rank per element of `devices`: element r is rank r's CUDA ordinal, or -1 for
  /// the one above. kInvalidArgument: below -1, or not -1 with Backend::kHost. With Backend::kCuda
  /// an ordinal that is not visible is kUnavailable, as is one that two ranks share without
  /// TUTTI_SHARE_GPUS=1; with Backend::kAuto the group then is on the host.
  TUTTI_API static Result<std::vector<Communicator>> create_in_process(
      std::span<const int> devices, const CommunicatorOptions& options = {});

  TUTTI_API Communicator(Communicator&&) noexcept;
  TUTTI_API Communicator& operator=(Communicator&&) noexcept;
  /// Waits for this rank's operations, at most for the timeout; after that it aborts what runs on
  /// NCCL. Graph replays and your own kernels must have ended.
  ///
  /// Then the rank has left the group. Operations that it took part in still complete on the other
  /// ranks; later calls that wait for it fail at once with kPeerFailed.
  TUTTI_API ~Communicator();

  TUTTI_API int rank() const;
  TUTTI_API int size() const;
  TUTTI_API Backend backend() const;  ///< kHost or kCuda
  TUTTI_API int device() const;       ///< CUDA ordinal; -1 on the host

  /// Collective. Ranks with the same `color` form a new group, ordered by (key, rank). A rank with
  /// a negative color takes part in the call and gets null. If one rank fails, all ranks of its new
  /// group fail, and this communicator stays usable.
  TUTTI_API Result<std::unique_ptr<Communicator>> split(int color, int key);

  /// Makes a new group of the ranks that are left, typically after a failure (kPeerFailed,
  /// kTimeout, kAborted). Every rank that can go on calls it; ranks whose process has ended, and
  /// ranks that do not call it within `within`, are missing. The deadline runs from the first call;
  /// 0: the communicator's timeout. Also allowed on a group that has not failed. Outside captures.
  ///
  /// The new group has its own memory and executors, and the options of this one; its ranks are
  /// numbered without gaps, in the old order. This communicator may be destroyed afterwards. If
  /// somebody is missing, it has failed, or fails now.
  ///
  /// All ranks that get a group get the same one. kPeerFailed: the others have gone on without this
  /// rank, because it was late; then it can never take part again. kTimeout: a rank can be neither
  /// heard nor told, or this process is too slow. Other errors are those of create(). After an
  /// error, except kPeerFailed, the ranks can call shrink() again. A rank that ends while shrink()
  /// returns may be in the new group, which then fails, and can be shrunk in turn.
  ///
  /// Ranks of one host that cannot hear each other never go on as two groups. Between hosts that
  /// cannot reach each other, each side gets a group of its own: compare `missing` with size() if
  /// only one side may go on (docs/troubleshooting/errors.md). Negative `within`: kInvalidArgument.
  TUTTI_API Result<Survivors> shrink(std::chrono::milliseconds within = {});

  /// Collective, outside captures. Allocates `bytes` bytes of symmetric memory on every rank.
  ///
  /// `bytes` is above 0 and equal on every rank. If a rank runs out of memory, maps or descriptors,
  /// every rank gets kResourceExhausted, which names that rank; the communicator stays usable.
  TUTTI_API Result<SymmetricMemory> allocate(std::size_t bytes);

  /// Collective, outside captures. Makes your own memory symmetric: on CUDA, memory from
  /// allocate_local(), cudaMalloc or the VMM API; on the host backend, any memory, between
  /// processes without copies only that of allocate_local(). It must stay allocated until the
  /// result is destroyed, except that of allocate_local(), which the result holds.
  ///
  /// On CUDA a call outside captures whose buffer lies in memory that was freed, or freed and
  /// allocated anew, is kInvalidArgument, and the communicator stays usable: destroy the result on
  /// every rank, and register the new memory. In a capture and a replay nothing checks that.
  ///
  /// If peers cannot address the memory, the result has zero_copy() == false. Errors: see
  /// allocate().
  TUTTI_API Result<SymmetricMemory> register_memory(void* address, std::size_t bytes);

  /// Allocates `bytes` bytes that this rank can register later, as a whole or in parts, without
  /// copies: on CUDA on its GPU, on the host in shared memory, which takes one file descriptor.
  ///
  /// Not collective, from any thread, outside captures. Its content is not defined. It is no
  /// symmetric memory until it is registered, and Counters::allocations does not count it. Errors:
  /// kInvalidArgument unless `bytes` > 0; kResourceExhausted, after which the communicator stays
  /// usable.
  TUTTI_API Result<LocalMemory> allocate_local(std::size_t bytes);

  /// Collective, outside captures. From here to finish_capture(), captured operations remember
  /// buffers that are not symmetric instead of staging them. Those on copy engines register them
  /// at once, which is collective: kUnsupported if peers cannot address one, kResourceExhausted.
  /// If ranks are threads of one process and do not all share one GPU, those stay staged.
  ///
  /// Graphs of one communicator, as many as you like, can replay concurrently with its other calls,
  /// and with graphs that were captured on other streams, of up to TUTTI_CAPTURE_CHANNELS streams.
  /// Replay graphs that were captured on one stream one after the other, in the same order on every
  /// rank. If they overlap, status() is kInvalidArgument or kMismatch, and says so.
  TUTTI_API Status start_capture();

  /// Collective, outside captures. Registers the buffers that were remembered since
  /// start_capture(), so that replays are zero-copy. A replay before that fails with
  /// kInvalidArgument in status().
  ///
  /// After kResourceExhausted nothing is registered: free resources and call it again, or call
  /// start_capture(), which forgets the buffers.
  TUTTI_API Status finish_capture();

  /// Collective, outside captures. Allocates what this communicator's first operation would
  /// allocate otherwise: flags, staging, packets and channels for captures, 64 MiB on GPUs with
  /// default settings (docs/reference/memory.md). Until then a communicator of 2 ranks needs a few
  /// hundred KiB; with 3 ranks or more it also has the slots for messages, 8 MiB. Calls after the
  /// first one do nothing.
  ///
  /// The first operation waits on the host for the other ranks. So call prepare() before that
  /// operation is captured (it is kUnsupported inside a capture; start_capture() prepares, too),
  /// or if one thread issues the operations of several ranks without a group of calls.
  /// TUTTI_PREPARE=1 prepares every communicator at its creation. Errors: see allocate(). Of ranks
  /// that share no memory: ok, and nothing is done.
  TUTTI_API Status prepare();

  /// Collective. Creates what is otherwise created on first use and cannot be created inside a
  /// capture: what prepare() creates, NCCL's communicator, and NCCL windows over the allocated
  /// memory if TUTTI_TUNE or a tuning table names an algorithm that needs them. Waits for all
  /// ranks, at most for the timeout. kUnavailable if NCCL is not installed.
  TUTTI_API Status prepare_nccl();

  /// Changes the timeout of this rank's waits, including waits in progress and graphs that were
  /// captured before. These keep the timeout with which they began: a call with one of its own
  /// (CallOptions::timeout), the waits of a product in all_gather_matmul(), and what all ranks set
  /// up together (allocate(), split(), prepare() and the like, and the first operation). From any
  /// thread. kInvalidArgument unless `timeout` > 0.
  TUTTI_API Status set_timeout(std::chrono::milliseconds timeout);

  /// Ends all operations on every rank with kAborted and `reason`, running kernels included. From
  /// any thread. After that the communicator returns kAborted from every call.
  TUTTI_API void abort(std::string_view reason);

  /// The first failure, with operation, sequence number, waiting rank, missing rank, expected and
  /// seen value; ok if there is none. After a failure every call returns that failure. Never
  /// blocks.
  TUTTI_API Status status() const;

  /// The first failure as values, for programs; the text is for people. Ranks are -1, numbers 0 and
  /// the operation empty where they are not known.
  struct Failure {
    StatusCode code = StatusCode::kOk;
    std::string text = {};
    std::string operation = {};  ///< "all_reduce/two_shot #42 (1048576 x bf16, sum)"
    std::uint64_t sequence = 0;  ///< number of the operation in this communicator, from 1
    int waiting_rank = -1;       ///< the rank whose wait failed, or was ended by the failure
    int missing_rank = -1;       ///< the rank that it waited for
    int failed_rank = -1;        ///< the rank that told this one, or whose process ended
    std::uint64_t expected = 0;  ///< flag, signal, signature or count that the wait expected
    std::uint64_t seen = 0;      ///< what it saw instead
  };
  /// kOk in `code` if there is none. Never blocks. From any thread.
  TUTTI_API Failure failure() const;

  /// What this rank has created since the communicator was created, including for that creation.
  /// The first operation, or prepare(), adds one allocation and its exchanges; after that a loop
  /// that reuses its buffers does not change the counters.
  struct Counters {
    std::uint64_t allocations = 0;    ///< of symmetric memory
    std::uint64_t registrations = 0;  ///< of the user's memory, by finish_capture() too
    std::uint64_t exchanges = 0;      ///< messages between all ranks through the bootstrap

    friend bool operator==(const Counters&, const Counters&) = default;
  };
  /// Never blocks. From any thread.
  TUTTI_API Counters counters() const;

  /// Describes a call for plan() and explain().
  struct Query {
    /// Elements of the larger buffer: ranks * the call's `count` for all_gather, gather,
    /// reduce_scatter, scatter and all_to_all; ranks * the largest count for the v-variants.
    std::size_t count = 0;
    DataType dtype = DataType::kFloat32;
    ReduceOp op = {};
    /// all_reduce_residual_rms_norm: elements of one token (`count` is that of all tokens).
    /// reduce_scatter with rows > 1: elements of one row of the input. Otherwise 0.
    std::size_t hidden = 0;
    bool symmetric = true;  ///< the buffers are symmetric memory
    bool in_place = false;
    std::string_view algorithm = {};    ///< see CallOptions::algorithm
    std::optional<int> sm_budget = {};  ///< see CallOptions::sm_budget
    bool counts_on_device = false;      ///< v-variants: DeviceCounts
    /// Inside a graph capture whose buffers will not be registered, after prepare_nccl().
    bool captured = false;
  };
  /// What a call with these arguments would run. Runs nothing. `collective` is "all_reduce",
  /// "broadcast", ...; an unknown one is kInvalidArgument, and the text lists the known ones.
  TUTTI_API Result<Plan> plan(std::string_view collective, const Query& query) const;

  /// For the library.
  CommunicatorImpl& impl() const { return *impl_; }
  /// For the library.
  explicit Communicator(std::unique_ptr<CommunicatorImpl> impl);

 private:
  std::unique_ptr<CommunicatorImpl> impl_;
};

/// What Communicator::shrink() returns.
struct Survivors {
  std::unique_ptr<Communicator> communicator;  ///< of the ranks that are left; never null
  std::vector<int> missing;                    ///< old ranks that are not in it, ascending
};

}  // namespace tutti
