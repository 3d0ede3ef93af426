// Runs collectives between nodes, over a wire (drivers/wire.hpp) that is opened at the first
// operation which needs it. Buffers on GPUs are staged through memory of the host.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "executors/executor.hpp"
#include "executors/network/progress.hpp"

namespace tutti {

class NetworkDriver;
struct NetworkRanks;

class NetworkExecutor : public Executor {
 public:
  // `driver`: null where there is no network.
  NetworkExecutor(GroupServices& group, NetworkDriver* driver);
  ~NetworkExecutor() override;

  std::string_view name() const override { return kNetworkExecutor; }
  bool may_exchange(const Call& call) const override;
  Result<Ready> prepare(PlannedOperation& operation) override;
  Status prepare_all(unsigned needs) override;
  Result<Ticket> enqueue(PlannedOperation& operation) override;
  void await(Ticket ticket) override;
  bool has_ended(Ticket ticket) override;
  std::uint64_t ended_through(std::uint64_t started) override;
  std::string position() override;
  Status check() override;
  void hear_of_failure() override;
  void cancel() override { hear_of_failure(); }
  Status set_timeout(std::chrono::nanoseconds timeout) override;
  void drain(Deadline deadline) override;
  void close(Deadline deadline) override;

 private:
  Status open();
  void fail(const Status& cause, int missing);
  Status make_staging();
  bool wants_direct() const;
  StagedOperations* staged();  // null on the host, and where nothing runs
  NetworkRanks ranks() const;
  Result<Ticket> enqueue_staged(const PlannedOperation& operation);

  GroupServices& group_;
  NetworkDriver* const driver_;
  std::unique_ptr<StagedOperations> staging_;  // until progress_ has it
  std::unique_ptr<NetworkProgress> progress_;
  bool direct_ = false;  // the wires of all ranks reach their GPUs
  // progress_, for other threads. Null before the first operation and after close(): every ticket
  // has ended then.
  std::atomic<NetworkProgress*> running_ = nullptr;
  Status why_none_;  // once the ranks have found that they can have no wire
  // Of operations that may not have ended: their tickets, and their numbers in the group.
  std::mutex mutex_;
  std::deque<std::pair<Ticket, std::uint64_t>> under_way_;
};

}  // namespace tutti
