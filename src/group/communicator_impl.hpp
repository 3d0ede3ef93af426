// One group of ranks: owns its bootstrap, its memory, its executors and its failure.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/knobs.hpp"
#include "bootstrap/bootstrap.hpp"
#include "executors/copy_engine/arrival_lane.hpp"
#include "executors/executor.hpp"
#include "executors/peer_services.hpp"
#include "group/failure_state.hpp"
#include "group/pipelines.hpp"
#include "group/plan_cache.hpp"
#include "group/recorder/flight_recorder.hpp"
#include "group/recorder/peer_pages.hpp"
#include "memory/symmetric_heap.hpp"
#include "operation/call.hpp"
#include "operation/one_sided_call.hpp"
#include "planning/choose.hpp"
#include "planning/table.hpp"
#include "topology/topology.hpp"
#include "tutti/communicator.hpp"

namespace tutti {

class CudaDriver;
class MulticastDriver;
class NcclDriver;
class NetworkDriver;
class NvmlDriver;
struct ProtocolMutation;

// What a communicator works with; tests put fakes in.
struct Drivers {
  CudaDriver* cuda = nullptr;
  NcclDriver* nccl = nullptr;
  NvmlDriver* nvml = nullptr;
  MulticastDriver* multicast = nullptr;  // null where it may not be used
  NetworkDriver* network = nullptr;
  const ProtocolMutation* weakening = nullptr;
  int local_rank = 0;  // among the ranks of this host, for the default GPU

  static Drivers real();
};

// What `options` says, or TUTTI_TIMEOUT_MS.
Timeout timeout_of(const CommunicatorOptions& options);

class CommunicatorImpl : private GroupServices {
 public:
  // Of a part of a group: the key of this rank's node there (topology/nodes.hpp), and its table.
  static Result<std::unique_ptr<CommunicatorImpl>> create(
      std::unique_ptr<Bootstrap> bootstrap, const CommunicatorOptions& options,
      const Drivers& drivers, std::optional<std::uint64_t> node = std::nullopt,
      std::shared_ptr<const TuningTable> table = nullptr);
  ~CommunicatorImpl() override;

  int rank() const { return bootstrap_->rank(); }
  int size() const { return bootstrap_->size(); }
  Backend backend() const { return topology_.backend; }
  std::uint64_t number() const { return group_; }  // random; the same on every rank
  int device() const override { return device_; }
  const Topology& topology() const override { return topology_; }
  const TuningTable& table() const { return *table_; }
  const std::string& tune() const { return settings_.tune; }  // the text of TUTTI_TUNE
  bool only_nccl() const { return settings_.only_nccl; }      // TUTTI_DISABLE
  Bootstrap& bootstrap() override { return *bootstrap_; }
  SymmetricHeap* heap() override { return heap_.get(); }
  const std::string& why_no_heap() const override { return why_no_heap_; }

  Result<std::unique_ptr<CommunicatorImpl>> split(int color, int key);
  struct Shrunk {
    std::unique_ptr<CommunicatorImpl> group;
    std::vector<int> missing;
  };
  Result<Shrunk> shrink(std::chrono::milliseconds within);
  Result<std::shared_ptr<SymmetricSegment>> allocate(std::size_t bytes);
  Result<std::shared_ptr<SymmetricSegment>> register_memory(void* address, std::size_t bytes);
  // Not collective, from any thread. The answer points to the first byte.
  Result<std::shared_ptr<void>> allocate_local(std::size_t bytes);
  Status start_capture();
  Status finish_capture();
  // Collective: makes what an executor's operations may need, for algorithms with these Needs; with
  // none, for those that may be chosen unasked. kUnavailable where there is no such executor.
  Status prepare_executor(std::string_view name, unsigned needs = kNeedsNothing);
  Status set_timeout(std::chrono::milliseconds timeout);
  void abort(std::string_view reason);
  // An exception has ended what this rank did with the others: the failure of the group.
  Status break_off(const Status& cause);
  Status status();
  Communicator::Failure describe_failure();

  // In steps, so that one thread can drive several ranks: whether preparing a call asks the other
  // ranks something (then each rank needs a thread of its own), preparing it, starting it, and what
  // comes once its batch has ended (`handed_over`: what the batch said), whatever start() returned.
  bool must_agree(const Call& call);
  Result<PlannedOperation> prepare(const Call& call);
  Status start(PlannedOperation& prepared);
  // What a message would run on: the same at both of its ends.
  Result<OperationPlan> plan_message(const MessageCall& message, const Call& call);
  Status settle(PlannedOperation& prepared, const Status& handed_over);
  Status execute(const Call& call);
  // On the host backend: begins all, in their order, before it waits for any, so far as an executor
  // has a thread that goes on with them.
  Status execute_on_host(std::span<const Call* const> calls);
  // Streams::follow(), between operations.
  Status follow(Stream later, Stream earlier);

  // Turns of an ArrivalLane. A matmul that waits takes every SM, and must not begin before what its
  // all-gather is behind: other threads may enqueue operations until that is started, which orders
  // both streams (Arrivals::kernel_stream). Captured turns are behind what their graph says.
  Status check_arrivals(bool capturing);  // whether there is a lane
  Result<ArrivalLane::Turn> begin_arrivals(Stream stream, int flags);
  Status end_arrivals(ArrivalLane::Turn turn, Stream stream);  // in any case

  // In symmetric memory. The group's device is current; the stream is not captured.
  Status execute(const PipelinedAllGatherMatmul& call);

  // From any thread, also while another one's call waits.
  Status execute(const OneSidedCall& call);
  Result<device::Peers> device_peers(const void* address, std::size_t bytes) const;

  // What `query` asks, whatever may have to be made for it.
  Request question(Collective collective, const Communicator::Query& query) const;
  // What a call asks, which is as the group takes it.
  Result<Request> question(const Call& call);
  Result<Plan> plan(Collective collective, const Communicator::Query& query) const;

  // Takes up what a kernel has written, and tells the group. Called by the watchdog and by
  // status(). True if that is the group's first failure.
  bool collect_failure();
  // Where no call may ever answer with it.
  void log_failure();
  // Finds a rank that runs other operations. Called by the watchdog.
  void compare_operations();
  // Records how far the stream has come. Called by the watchdog.
  void record_progress();
  // Finds what is late or wrong in executors. Called by the watchdog.
  void check_executors();
  // Where the group has failed, ends what executors do. Called by the watchdog.
  void cancel_if_failed();
  FlightRecorder& recorder() { return *recorder_; }

  // Null on the host backend.
  CudaDriver* cuda() const override {
    return backend() == Backend::kCuda ? drivers_.cuda : nullptr;
  }
  Streams& streams() override { return *streams_; }
  Timeout timeout_of(const Operation& operation) const override {
    return failure_->timeout_of(operation);
  }
  Communicator::Counters counters() const {
    return {.allocations = allocations_, .registrations = registrations_, .exchanges = exchanges_};
  }

 private:
  CommunicatorImpl(std::unique_ptr<Bootstrap> bootstrap, const CommunicatorOptions& options,
                   const Drivers& drivers);

  // create.cpp
  Status open();
  Status of_this_rank(const Status& status) const;  // which the others do not have
  Status agree();
  Status agree_on_network();
  Status name_differences();
  CommunicatorOptions options_of_part() const;
  void open_recorder();
  Status open_peer_pages();
  Status open_memory();
  Status give_memory_to_peers();
  Status prepare_early();
  Status verify_peers();
  Status open_heap(RankPairs& lost);
  Status bind_to_one_address(SymmetricSegment& segment);

  // What executors ask.
  Deadline deadline() const override { return Deadline(timeout_.load()); }
  std::chrono::milliseconds timeout() const override { return timeout_.load(); }
  bool has_failed() const override { return failure_->failed(); }
  Status failure() const override { return failure_->status(); }
  bool has_left(int rank) const override { return failure_->has_left(rank); }
  Status fail(const Status& cause) override;
  void report(const FailureRecord& record) override;
  void fail_waiting(const Status& cause, const std::string& operation) override;
  void fail_in(const Status& cause, const std::string& operation, int missing) override;
  Status exchanged(const Status& answer) override;
  using GroupServices::exchanged;
  void forget_plans() override { plans_.clear(); }
  Result<std::shared_ptr<SymmetricSegment>> allocate_own(std::size_t bytes,
                                                         Deadline deadline) override;
  Result<OwnMemory> own_memory() override;
  Result<std::vector<std::shared_ptr<SymmetricSegment>>> register_ranges(
      const std::vector<std::pair<void*, std::size_t>>& ranges, bool alike) override;
  Result<OperationPlan> plan_message(const MessageCall& message, const Call& call,
                                     bool captured) override;
  bool waits_blindly() const;
  bool has_position() const;
  std::string position() override;

  // operations.cpp
  Request request_for(Collective collective, const Communicator::Query& query) const;
  Request request_of(const PlannedOperation& operation) const;
  void add_facts(Request& request, const Executor::Buffers* buffers) const;
  Result<OperationPlan> plan_for(const Request& request);
  Status describe_call(PlannedOperation& operation);
  Status find_buffers(PlannedOperation& operation);
  Status check_received(const PlannedOperation& operation) const;
  Status choose_plan(PlannedOperation& operation);
  Executor* executor_named(std::string_view name) const;  // null: there is none
  Status prepare_locked(PlannedOperation& operation);
  Status start_locked(PlannedOperation& operation);
  Status begin_locked(PlannedOperation& operation);
  Status prepare_and_start(PlannedOperation& operation);
  Status prepare_executor_of(PlannedOperation& operation);
  Status enqueue(PlannedOperation& operation);
  Status copy_alone(const PlannedOperation& operation);
  Status wait_on_host(const PlannedOperation& operation);
  std::unique_ptr<Pipelines> make_pipelines();
  std::uint64_t begin_pipeline(const PipelinedAllGatherMatmul& call);
  void end_pipeline(std::uint64_t number, const Status& status);
  void note_started(const PlannedOperation& operation);
  void record_start(const PlannedOperation& operation);

  // Poisons this rank and tells the others.
  void tell(const Status& cause);
  // Likewise of what others tell.
  void hear(const GroupFailure& failure);
  // Of what all ranks know: rank 0 says it, once.
  void warn(const std::string& text) const;
  Result<std::shared_ptr<SymmetricSegment>> allocate_locked(std::size_t bytes);
  Result<std::shared_ptr<SymmetricSegment>> allocate_counted(std::size_t bytes, Deadline deadline);

  std::atomic<std::uint64_t> allocations_ = 0, registrations_ = 0, exchanges_ = 0;
  std::unique_ptr<Bootstrap> bootstrap_;  // counts exchanges_
  CommunicatorOptions options_;
  Drivers drivers_;
  std::atomic<std::chrono::milliseconds> timeout_;
  int device_ = -1;
  std::optional<std::uint64_t> node_;  // empty until agree()
  Topology topology_;
  // What choices depend on, read once: each call would look for the names.
  struct Settings {
    std::int64_t bidirectional_bytes =
        Knobs::process().integer("TUTTI_RING_BIDIRECTIONAL_MAX_BYTES");
    std::int64_t stream_barrier_bytes = Knobs::process().integer("TUTTI_STREAM_BARRIER_MAX_BYTES");
    std::string tune = Knobs::process().text("TUTTI_TUNE");
    bool only_nccl = Knobs::process().flag("TUTTI_DISABLE");
  };
  const Settings settings_ = {};
  std::shared_ptr<const TuningTable> table_;

  std::uint64_t group_ = 0;  // number()
  // Outlives the executors, whose waits tell it for whom they wait.
  std::unique_ptr<FlightRecorder> recorder_ = std::make_unique<FlightRecorder>();
  std::unique_ptr<PeerPages> peer_pages_;  // null: operations are not compared by them
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<SymmetricHeap> heap_;  // null: why_no_heap_ says why
  std::string why_no_heap_;
  std::vector<std::shared_ptr<SymmetricSegment>> own_;  // what executors keep for themselves
  // Made once the topology is known.
  std::vector<std::unique_ptr<Executor>> executors_;
  PeerServices* peers_ = nullptr;          // of one of them
  std::unique_ptr<FailureState> failure_;  // of words that an executor keeps

  std::mutex mutex_;  // one operation, registration or capture step at a time
  std::uint64_t sequence_ = 0;
  std::atomic<std::uint64_t> started_ = 0;  // an event stands behind the operation with this number
  PlanCache plans_;
  std::unique_ptr<Pipelines> pipelines_;  // since the first call
};

}  // namespace tutti
