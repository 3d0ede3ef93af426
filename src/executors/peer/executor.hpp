// Runs algorithms whose ranks reach each other's memory: kernels and copy engines on GPUs, bodies
// on the host. It keeps two symmetric segments of the group's (layout.hpp), and words of this rank
// alone (engine.hpp).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/knobs.hpp"
#include "executors/binding_pool.hpp"
#include "executors/copy_engine/arrival_lane.hpp"
#include "executors/copy_engine/stream_barrier.hpp"
#include "executors/executor.hpp"
#include "executors/make.hpp"
#include "executors/peer/captures.hpp"
#include "executors/peer/engine.hpp"
#include "executors/peer/layout.hpp"
#include "executors/peer_services.hpp"

namespace tutti {

class PeerExecutor final : public Executor, public PeerServices {
 public:
  static Result<std::unique_ptr<PeerExecutor>> create(GroupServices& group,
                                                      const ExecutorParts& parts);

  std::string_view name() const override { return kPeerExecutor; }
  void add_facts(Request& request, const Buffers* buffers) const override;
  bool may_exchange(const Call& call) const override;
  bool must_exchange(const Call& call) const override {
    return own_ == nullptr && needs_memory(call);
  }
  Status prepare_all(unsigned needs) override;
  Result<Ready> prepare(PlannedOperation& operation) override;
  Result<Ticket> enqueue(PlannedOperation& operation) override;
  bool leaves_usable(const PlannedOperation& operation, const Status&) const override {
    return operation.captured();
  }
  Status settle(PlannedOperation& operation, const Status& handed_over) override;
  void await_users(const PlannedOperation& operation) override;
  bool has_ended(Ticket ticket) override;
  std::uint64_t ended_through(std::uint64_t started) override;
  Status check() override;
  Status known_error() override { return check(); }
  void hear_of_failure() override;
  void cancel() override;
  void drain(Deadline deadline) override;
  Status set_timeout(std::chrono::nanoseconds timeout) override;

  Status add_segment(const SymmetricSegment& segment) override;
  std::size_t memory_bytes() const override { return layout_.early_bytes(); }
  void take_memory(std::shared_ptr<SymmetricSegment> early) override;
  Result<GroupServices::OwnMemory> scratch() override;
  Words words() override { return {engine_->memory().failure, engine_->memory().notices}; }

  Status start_capture() override;
  Status finish_capture() override;
  Status sweep() override;

  Result<ArrivalLane*> arrivals(bool capturing) override;
  Result<StreamBarrier*> stream_barrier() override;

  // one_sided_calls.cpp
  Status execute(const OneSidedCall& call) override;
  Result<device::Peers> device_peers(const void* address, std::size_t bytes) override;

 private:
  // Where a buffer lies on each rank: in its segment there, at offset + rank * step. No segment:
  // peers do not touch it.
  struct BufferPlace {
    const SymmetricSegment* segment = nullptr;
    std::size_t offset = 0, step = 0;

    std::byte* at(int rank) const {
      return segment->at[rank] + offset + static_cast<std::size_t>(rank) * step;
    }
  };
  // What the kernel, or the host thread, is given.
  struct Launch : Binding {
    int channel = 0;
    std::uint64_t capture = 0;                  // CaptureLease::number
    int late_slot = -1;                         // captured, to be registered by finish_capture()
    std::optional<DeferredBuffers> registered;  // or by the call
    Messages messages{};                        // of algorithms that send some
    PieceCounts counts{};
    KernelArgs args{};
  };
  // Between start_capture and finish_capture: what is to be registered.
  struct LateRequest {
    int slot;
    const Algorithm* row;
    const void* input;
    void* output;
    Sides sides;  // in bytes
    bool uneven;
    std::uint64_t capture_id;
  };

  PeerExecutor(GroupServices& group, Layout layout, int late_buffers)
      : group_(group), layout_(layout), captures_(layout.capture_channels, late_buffers) {}

  int rank() const { return rank_; }
  int size() const { return ranks_; }
  bool shares_addresses() const;
  bool copies_may_queue() const;
  bool needs_memory(const Call& call) const;
  Status make_memory(Deadline deadline, const std::string& whose);
  Status make_memory_for(const PlannedOperation& operation);
  bool may_open_barrier(const Call& call) const;
  Status open_barrier();
  void check_barrier();
  Status bind(PlannedOperation& operation, Launch& launch);
  Launch& release(PlannedOperation& operation);
  Result<Ready> join_capture(const PlannedOperation& operation);
  Status find_channel(const PlannedOperation& operation, Launch& launch);
  int channel_of(std::uint64_t capture_id) const;

  // late_registration.cpp
  static LateRequest request_of(const PlannedOperation& operation, int slot);
  Status note_late(const PlannedOperation& operation, CaptureLease& lease, Launch& launch);
  Status register_now(const PlannedOperation& operation, CaptureLease& lease, Launch& launch);
  // The input and the output of each; null where peers do not touch it.
  using Registered =
      std::pair<std::shared_ptr<SymmetricSegment>, std::shared_ptr<SymmetricSegment>>;
  Result<std::vector<Registered>> register_buffers(const std::vector<LateRequest>& requests);
  Status register_late_requests();
  Status fill_late(const LateRequest& request, const std::shared_ptr<SymmetricSegment>& input,
                   const std::shared_ptr<SymmetricSegment>& output);

  // arguments.cpp
  void fill_args(const PlannedOperation& operation, Launch& launch) const;
  void point_at_own_memory(const PlannedOperation& operation, Launch& launch) const;
  void point_at_packets(const PlannedOperation& operation, Launch& launch) const;
  void point_at_buffers(const PlannedOperation& operation, Launch& launch) const;
  BufferPlace place_of(const PlannedOperation& operation, std::size_t bytes,
                       BufferPlace alone) const;
  BufferPlace input_place(const PlannedOperation& operation) const;
  BufferPlace output_place(const PlannedOperation& operation) const;
  DeferredBuffers late_buffers(const BufferPlace& input, const BufferPlace& output) const;
  std::uint32_t signature_of(const PlannedOperation& operation, const Launch& launch) const;

  // messages.cpp
  Status add_messages(PlannedOperation& operation, Launch& launch);
  void add_message(const MessageCall& call, const OperationPlan& plan, Messages& messages);
  std::uint32_t signature_of(const MessageCall& call, const Message& message) const;
  void point_at_output(const MessageCall& call, Message& message);

  // one_sided_calls.cpp
  Status check_one_sided() const;
  device::impl::Signals signals(std::chrono::nanoseconds timeout) const;
  Result<device::Peers> peers_at(const void* address, std::size_t bytes, bool captured) const;
  Mover mover_of(const OneSidedCall& call) const;

  GroupServices& group_;
  const Layout layout_;
  int rank_ = 0, ranks_ = 1;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<SymmetricSegment> early_;  // since the creation; see Layout
  std::shared_ptr<SymmetricSegment> own_;    // since the first operation: channels and staging
  Captures captures_;
  BindingPool<Launch> launches_;

  const bool addressing_ = !Knobs::process().flag("TUTTI_P2P_DIRECT_DISABLE");
  const std::int64_t barrier_bytes_ = Knobs::process().integer("TUTTI_STREAM_BARRIER_MAX_BYTES");
  // Made by the first operation that is planned with it; the ranks have settled that together.
  std::unique_ptr<StreamBarrier> barrier_;
  std::atomic<StreamBarrier*> watched_ = nullptr;  // the same, for other threads
  bool no_barrier_ = false;                        // a rank cannot have it
  std::string why_no_barrier_;

  std::unique_ptr<ArrivalLane> arrivals_;  // made when first asked for
  std::atomic<ArrivalLane*> watched_arrivals_ = nullptr;

  bool registering_ = false;
  bool unfinished_ = false;  // finish_capture() has failed for want of something: once more
  std::vector<LateRequest> late_requests_;
};

}  // namespace tutti
