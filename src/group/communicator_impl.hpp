// One group of ranks: owns its bootstrap, its memory, its engine and its failure.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/knobs.hpp"
#include "bootstrap/bootstrap.hpp"
#include "drivers/nccl.hpp"
#include "group/captures.hpp"
#include "group/engine.hpp"
#include "group/failure_state.hpp"
#include "group/layout.hpp"
#include "group/nccl_session.hpp"
#include "group/nccl_windows.hpp"
#include "group/one_sided.hpp"
#include "group/operation_watch.hpp"
#include "group/recorder/flight_recorder.hpp"
#include "memory/symmetric_heap.hpp"
#include "operation/call.hpp"
#include "planning/choose.hpp"
#include "planning/table.hpp"
#include "topology/topology.hpp"
#include "tutti/communicator.hpp"

namespace tutti {

class CudaDriver;
class MulticastDriver;
class NvmlDriver;
struct ProtocolMutation;

// What a communicator works with; tests put fakes in.
struct Drivers {
  CudaDriver* cuda = nullptr;
  NcclDriver* nccl = nullptr;
  NvmlDriver* nvml = nullptr;
  MulticastDriver* multicast = nullptr;  // null where it may not be used
  const ProtocolMutation* weakening = nullptr;
  int local_rank = 0;  // among the ranks of this host, for the default GPU

  static Drivers real();
};

// What `options` says, or TUTTI_TIMEOUT_MS.
std::chrono::milliseconds timeout_of(const CommunicatorOptions& options);

// On threads: as many as the host backend takes, or as there are GPUs.
int most_ranks_in_process(Backend backend);

// A call whose choices are made: it can be started without asking anybody.
struct PlannedOperation {
  Call call;
  Sides sides;  // in bytes
  bool in_place = false;
  Operation operation;
  Plan plan;
  int channel = 0;
  int area = 0;  // of packets and rings: the stream's (Captures::area)
  bool captured = false;
  std::shared_ptr<SymmetricSegment> input, output;  // null: plain
  bool staged = false;
  int late_slot = -1;                 // captured, to be registered by finish_capture()
  std::optional<Messages> messages;   // of rows that send some
  std::optional<PieceCounts> counts;  // of uneven pieces
  // While it is given to NCCL.
  NcclSession::Call nccl_call;
  std::optional<OperationWatch::Ticket> watched;
};

// Where a buffer lies on each rank: in its segment there, at offset + rank * step. No segment:
// peers do not touch it.
struct BufferPlace {
  const SymmetricSegment* segment = nullptr;
  std::size_t offset = 0, step = 0;

  std::byte* at(int rank) const {
    return segment->at[rank] + offset + static_cast<std::size_t>(rank) * step;
  }
};

class CommunicatorImpl {
 public:
  static Result<std::unique_ptr<CommunicatorImpl>> create(std::unique_ptr<Bootstrap> bootstrap,
                                                          const CommunicatorOptions& options,
                                                          const Drivers& drivers);
  ~CommunicatorImpl();

  int rank() const { return bootstrap_->rank(); }
  int size() const { return bootstrap_->size(); }
  Backend backend() const { return topology_.backend; }
  int device() const { return device_; }
  const Topology& topology() const { return topology_; }
  const TuningTable& table() const { return *table_; }
  const Layout& layout() const { return layout_; }
  Bootstrap& bootstrap() { return *bootstrap_; }
  SymmetricHeap& heap() { return *heap_; }

  Result<std::unique_ptr<CommunicatorImpl>> split(int color, int key);
  Result<std::shared_ptr<SymmetricSegment>> allocate(std::size_t bytes);
  Result<std::shared_ptr<SymmetricSegment>> register_memory(void* address, std::size_t bytes);
  Status start_capture();
  Status finish_capture();
  Status prepare_nccl();
  // And NCCL's windows, for calls that are going to name rows with these needs. Collective.
  Status prepare_nccl_windows(unsigned needs = kNeedsNcclWindows);
  Status set_timeout(std::chrono::milliseconds timeout);
  void abort(std::string_view reason);
  // An exception has ended what this rank did with the others: the failure of the group.
  Status break_off(const Status& cause);
  Status status();

  // In steps, so that one thread can drive several ranks: whether preparing a call asks the other
  // ranks something (then each rank needs a thread of its own), preparing it, starting it, and what
  // comes once NCCL has it (`given`: what NCCL's group said), whatever start() returned.
  bool must_agree(const Call& call);
  Result<PlannedOperation> prepare(const Call& call);
  Status start(PlannedOperation& prepared);
  // What a message would run on: the same at both of its ends.
  Result<Plan> plan_message(const MessageCall& message, const Call& call);
  Status settle(PlannedOperation& prepared, const Status& given);
  Status execute(const Call& call);
  bool runs_on_nccl(const PlannedOperation& prepared) const;

  // one_sided.cpp. From any thread, also while another one's call waits.
  Status execute(const OneSidedCall& call);
  Result<device::Peers> device_peers(const void* address, std::size_t bytes) const;

  Request request_for(Collective collective, const Communicator::Query& query) const;
  Result<Plan> plan(Collective collective, const Communicator::Query& query) const;

  // Takes up what a kernel has written, and tells the group. Called by the watchdog and by
  // status().
  void collect_failure();
  // Records how far the stream has come. Called by the watchdog.
  void record_progress();
  // Finds what is late or wrong in NCCL. Called by the watchdog.
  void watch_nccl();
  // Where the group has failed, ends what NCCL does. Called by the watchdog.
  void end_failed_nccl();
  FlightRecorder& recorder() { return *recorder_; }

  NcclDriver* nccl_driver() const { return drivers_.nccl; }
  // Null on the host backend.
  CudaDriver* cuda() const { return backend() == Backend::kCuda ? drivers_.cuda : nullptr; }
  Result<StreamState> stream_state(Stream stream) { return engine_->stream_state(stream); }
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
  Status name_differences();
  void open_recorder();
  Status open_memory();
  Status verify_peers();
  Status bind_to_one_address(SymmetricSegment& segment);
  Deadline deadline() const { return Deadline(timeout_.load()); }

  // operations.cpp
  Result<Plan> plan_for(const Request& request);
  Status find_buffers(PlannedOperation& prepared);
  Result<const Algorithm*> choose_row(PlannedOperation& prepared);
  Result<CaptureLease*> lease_for(const StreamState& stream);
  Status register_late(PlannedOperation& prepared, CaptureLease& lease, const StreamState& stream);
  KernelArgs make_work(const PlannedOperation& prepared) const;
  void point_at_packets(const PlannedOperation& prepared, KernelArgs& work) const;
  void point_at_buffers(const PlannedOperation& prepared, KernelArgs& work) const;

  // messages.cpp
  Result<Plan> plan_message_locked(const MessageCall& message, const Call& call, bool captured);
  Result<PlannedOperation> prepare_messages(PlannedOperation prepared);
  Status add_message(const MessageCall& call, const Plan& plan, bool captured, Messages& messages);
  std::uint32_t signature_of(const MessageCall& call, const Message& message) const;
  Status point_at_output(const MessageCall& call, bool captured, Message& message);
  Status open_to_messages(const SymmetricSegment& segment);

  BufferPlace place_of(const PlannedOperation& prepared, std::size_t bytes,
                       BufferPlace alone) const;
  BufferPlace input_place(const PlannedOperation& prepared) const;
  BufferPlace output_place(const PlannedOperation& prepared) const;
  DeferredBuffers late_buffers(const BufferPlace& input, const BufferPlace& output) const;
  std::uint32_t signature_of(const PlannedOperation& prepared) const;
  void record_start(const PlannedOperation& prepared, std::uint32_t signature);
  Status run(const PlannedOperation& prepared);
  Status run_row(const PlannedOperation& prepared);
  Status run_alone(const PlannedOperation& prepared);

  // one_sided.cpp
  Status check_one_sided() const;
  device::impl::Signals signals(std::chrono::nanoseconds timeout) const;
  Result<device::Peers> peers_at(const void* address, std::size_t bytes, bool captured) const;

  // nccl_operations.cpp
  Status start_on_nccl(PlannedOperation& prepared);
  Status nccl_error();
  Status nccl_failure();
  std::string whereabouts();
  Status retain_nccl_graph(Stream stream);
  Status prepare_nccl_locked();
  Status prepare_nccl_for(PlannedOperation& prepared);
  unsigned windows_that_are_named() const;
  bool may_open_windows(const Call& call) const;
  NcclWindows* windows_for(const Algorithm& row);  // null: it needs none
  Status open_windows(unsigned needs);
  Status open_windows(NcclWindows& windows);
  Status hold_in_windows(const SymmetricSegment& segment);
  NcclWindows::Group window_group();
  NcclSession& session_of(const PlannedOperation& prepared);
  Status warm_up_nccl(NcclSession& session);
  Status warm_up_nccl_on(Stream stream, NcclSession& session);
  Status wait_for_warm_up(Stream stream);
  void drain_nccl(Deadline deadline);
  void close_nccl(Deadline deadline);
  Status sweep_captures();
  Status register_late_requests();

  // The first failure, which is returned, is told.
  Status fail(const Status& cause);
  // Poisons this rank and tells the others.
  void tell(const Status& cause);
  // The answer of an exchange among the ranks. One that broke off leaves them out of step, which is
  // a failure of the group.
  Status exchanged(const Status& answer) {
    const StatusCode code = answer.code();
    if (code != StatusCode::kTimeout && code != StatusCode::kPeerFailed) return answer;
    return fail(answer);
  }
  template <class T>
  Result<T> exchanged(Result<T> answer) {
    const Status status = exchanged(answer.status());
    return status.is_ok() ? std::move(answer) : Result<T>(status);
  }

  Result<std::shared_ptr<SymmetricSegment>> allocate_counted(std::size_t bytes);

  std::atomic<std::uint64_t> allocations_ = 0, registrations_ = 0, exchanges_ = 0;
  std::unique_ptr<Bootstrap> bootstrap_;  // counts exchanges_
  CommunicatorOptions options_;
  Drivers drivers_;
  std::atomic<std::chrono::milliseconds> timeout_;
  int device_ = -1;
  Topology topology_;
  // What choices depend on, read once: each call would look for the names.
  struct Settings {
    std::int64_t bidirectional_bytes =
        Knobs::process().integer("TUTTI_RING_BIDIRECTIONAL_MAX_BYTES");
    std::string tune = Knobs::process().text("TUTTI_TUNE");
    bool only_nccl = Knobs::process().flag("TUTTI_DISABLE");
  };
  const Settings settings_ = {};
  std::shared_ptr<const TuningTable> table_;
  Layout layout_;

  std::uint64_t group_ = 0;  // random; the same on every rank
  // Outlives the engine, whose waits tell it for whom they wait.
  std::unique_ptr<FlightRecorder> recorder_ = std::make_unique<FlightRecorder>();
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<FailureState> failure_;
  std::unique_ptr<SymmetricHeap> heap_;
  std::shared_ptr<SymmetricSegment> own_;  // channels and staging, see Layout
  std::unique_ptr<Captures> captures_;
  NcclSession nccl_;
  NcclWindows windows_, copies_;            // for kernels, for copy engines; only where nccl_ is
  unsigned named_windows_ = kNeedsNothing;  // of rows that may be chosen unasked
  std::unique_ptr<OperationWatch> nccl_watch_;  // made before nccl_ is open
  std::uint64_t nccl_capture_ = 0;              // the latest that NCCL is part of
  const std::shared_ptr<std::atomic<int>> nccl_graphs_ = std::make_shared<std::atomic<int>>(0);

  std::mutex mutex_;  // one operation, registration or capture step at a time
  std::uint64_t sequence_ = 0;
  std::atomic<std::uint64_t> started_ = 0;  // an event stands behind the operation with this number
  using PlanKey = std::tuple<Collective, std::size_t, DataType, OpKind, std::size_t, bool, bool,
                             bool, bool, bool, bool, bool, bool, std::size_t, std::size_t,
                             std::string, std::optional<int>, bool>;
  std::map<PlanKey, Plan> plans_;

  // Between start_capture and finish_capture: what is to be registered.
  struct LateRequest {
    int slot;
    const Algorithm* row;
    const void* input;
    void* output;
    Sides sides;  // in bytes
    std::uint64_t capture_id;
  };
  bool registering_ = false;
  bool unfinished_ =
      false;  // finish_capture() has failed for want of something, and may be repeated
  std::vector<LateRequest> late_requests_;
};

}  // namespace tutti
