// Runs operations on NCCL: its communicators' set-up and end, calls of them, and the watch over
// both. NCCL has up to three communicators of a group: the ordinary one, and one each for the
// memory that its symmetric kernels and its copy engines may run on (windows.hpp).
#pragma once

#include <atomic>
#include <memory>

#include "executors/binding_pool.hpp"
#include "executors/executor.hpp"
#include "executors/make.hpp"
#include "executors/nccl/operation_watch.hpp"
#include "executors/nccl/session.hpp"
#include "executors/nccl/windows.hpp"

namespace tutti {

class NcclExecutor : public Executor {
 public:
  NcclExecutor(GroupServices& group, const ExecutorParts& parts);
  ~NcclExecutor() override;

  std::string_view name() const override { return kNcclExecutor; }
  void add_facts(Request& request, const Buffers* buffers) const override;
  bool may_exchange(const Call& call) const override;
  Result<Ready> prepare(PlannedOperation& operation) override;
  Status prepare_all(unsigned needs) override;
  Batch* batch() override { return &batch_; }
  Result<Ticket> enqueue(PlannedOperation& operation) override;
  Status settle(PlannedOperation& operation, const Status& handed_over) override;
  bool has_ended(Ticket ticket) override;
  std::uint64_t ended_through(std::uint64_t started) override;
  bool waits_blindly() const override { return session_.is_open(); }
  std::string position() override;
  Status check() override;
  Status known_error() override;
  void cancel() override;
  void drain(Deadline deadline) override;
  void close(Deadline deadline) override;
  Status add_segment(const SymmetricSegment& segment) override;
  void remove_segment(const std::byte* local) override;

 private:
  // Of NCCL's own: one thread may serve several of its communicators.
  class GroupCalls : public Batch {
   public:
    explicit GroupCalls(NcclDriver* driver) : driver_(driver) {}
    const void* key() const override { return driver_; }
    Status begin() override { return driver_->group_start(); }
    Status end() override { return driver_->group_end(); }

   private:
    NcclDriver* driver_;
  };
  struct Given;  // an operation that NCCL has

  bool has_symmetric_memory() const { return group_.heap() != nullptr; }
  // Windows that algorithms need which may be chosen unasked. They cost an exchange for each
  // allocation, a second communicator of NCCL's and address space, so nobody has them whom no
  // algorithm runs on. The same on every rank.
  unsigned named_windows() const { return has_symmetric_memory() ? named_ : kNeedsNothing; }
  int rank() const;
  int size() const;
  void end_sessions(NcclSession::How how);
  Status open();
  Status make_watch();
  NcclWindows* windows_for(const Algorithm& algorithm);  // null: it needs none
  Status open_windows(unsigned needs);
  Status open_windows(NcclWindows& windows);
  NcclWindows::Group window_group();
  NcclSession& session_of(const Algorithm& algorithm);
  int lane_of(const NcclSession& session);
  Status warm_up(NcclSession& session);
  Status warm_up_on(Stream stream, NcclSession& session, const GroupServices::OwnMemory& own);
  Status wait_for_warm_up(Stream stream);
  Status retain_graph(const StreamState& state);
  Status give(NcclSession& session, PlannedOperation& operation, Given& given);

  GroupServices& group_;
  NcclDriver* const driver_;
  const unsigned named_;  // see named_windows()
  GroupCalls batch_;
  NcclSession session_;
  NcclWindows windows_, copies_;  // for kernels, for copy engines; only where session_ is
  BindingPool<Given> given_;
  std::unique_ptr<OperationWatch> watch_;  // made before session_ is open
  std::uint64_t capture_ = 0;              // the latest that NCCL is part of
  const std::shared_ptr<std::atomic<int>> graphs_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tutti
