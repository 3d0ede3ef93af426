// The state of a NetworkEngine. engine.cpp handles what comes, and the life of operations;
// sending.cpp decides what is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "executors/network/domain.hpp"
#include "executors/network/engine.hpp"
#include "executors/network/life_signs.hpp"
#include "executors/network/message.hpp"
#include "executors/network/partitions.hpp"
#include "executors/network/running_operation.hpp"

namespace tutti {

class NetworkEngine::Impl {
 public:
  Impl(Group group, Wire& wire);
  ~Impl() {
    wire_.set_handlers(
        {[](ByteView, ByteView) {}, [](WireTicket) {}, [](int, const Status&) {}, {}});
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::uint64_t start(NetworkOperation operation);
  Result<bool> progress(Clock::time_point now);
  Clock::time_point next_event() const;
  bool has_ended(std::uint64_t ticket) const;
  std::uint64_t ended_through() const { return first_ticket_ - 1; }
  bool idle() const { return operations_.empty(); }
  std::string position() const;
  int missing() const { return missing_; }
  std::size_t kept_bytes() const;
  void say_goodbye();
  bool may_leave() const;
  void cancel();

 private:
  using Outgoing = RunningOperation::Outgoing;

  struct Peer {
    std::vector<RunningOperation*> waiting;  // with something for it, in the order of tickets
    std::size_t posted_bytes = 0, posted_messages = 0;
    bool asks = false;         // for a sign of life
    bool leaves = false;       // asks whether all that it sent has come
    bool was_sent_to = false;  // a chunk
    bool is_asked = false;     // whether it has all, and has not answered
    bool is_lost = false;
    Clock::time_point lost_at;
    Status why_lost;
  };
  // What was posted and not sent. Tickets grow.
  struct Flight {
    WireTicket ticket = 0;
    RunningOperation* operation = nullptr;
    Outgoing what;
    int peer = 0;
    std::size_t bytes = 0;
    Bytes staged;
    bool is_sent = false;
  };
  struct Control {
    int peer = 0;
    NetworkMessage message;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  std::size_t domain_index(const NetworkOperation& operation) const;
  std::size_t domain_index(const NetworkMessage& message) const;
  NetworkDomain& domain(std::size_t index);
  void fail(Status why, int missing = -1);  // the rank that an operation waited for

  // What comes.
  void arrived(ByteView header, ByteView payload);
  std::byte* place(ByteView header, std::size_t bytes);
  bool is_of_group(const Result<NetworkMessage>& parsed) const;
  void take(const NetworkMessage& message, ByteView payload);
  void hold_early(NetworkDomain& domain, const NetworkMessage& message, ByteView payload);
  void hold(RunningOperation& operation, const NetworkMessage& message, ByteView payload);
  void note_begun(NetworkDomain& domain, const NetworkMessage& message);
  bool has_same_signature(const RunningOperation& operation, const NetworkMessage& message);
  void take_sign(const NetworkMessage& message);
  void lose(int rank, const Status& why);
  bool has_left(int rank) const { return group_.has_left && group_.has_left(rank); }

  // Operations.
  bool open_partitions();
  bool may_open(const RunningOperation& operation);
  void open(RunningOperation& operation);
  NetworkScratch take_scratch(std::size_t bytes);
  void settle(RunningOperation& operation);
  void retire();

  // What is sent.
  void give_credits(RunningOperation& operation, std::uint32_t partition);
  void queue_credit(const RunningOperation& operation, int peer, std::uint32_t partition);
  bool post_controls();
  bool post_chunks();
  bool post_chunk_to(int rank);
  bool may_send(RunningOperation& operation, const Outgoing& send, int rank);
  void post_chunk(RunningOperation& operation, const Outgoing& send, int rank);
  bool post(int rank, NetworkMessage message, ByteView payload, WireTicket& ticket,
            bool from_gpu = false);
  bool drain_sent();
  void finish(Flight& flight);

  // Time.
  const RunningOperation* oldest() const;
  Clock::duration life_interval() const;
  void ask_for_life();
  void check_lost();
  void check_deadlines(bool did);
  static int awaited_by(const RunningOperation& operation);  // -1: nobody
  std::string waits_text(const RunningOperation& operation) const;
  std::string silence_text() const;

  const Group group_;
  Wire& wire_;
  Clock::time_point now_ = {};
  Status failure_;
  int missing_ = -1;
  PartitionCache cache_;
  std::vector<std::unique_ptr<NetworkDomain>> domains_;
  std::vector<Peer> peers_;
  LifeSigns life_;
  Clock::time_point next_question_ = Clock::time_point::max();
  Clock::time_point first_deadline_ = Clock::time_point::max();

  std::uint64_t first_ticket_ = 1;                            // of operations_.front()
  std::deque<std::unique_ptr<RunningOperation>> operations_;  // null: ended
  std::vector<std::unique_ptr<RunningOperation>> spare_;
  std::vector<RunningOperation*> ended_;  // since the last retire()
  bool may_open_more_ = false;

  std::vector<NetworkScratch> spare_scratch_;
  std::size_t scratch_in_use_ = 0, scratch_spare_ = 0;

  std::vector<Control> controls_;
  std::vector<Flight> flights_;  // from first_flight_ on
  std::size_t first_flight_ = 0;
  std::vector<WireTicket> sent_;  // as the wire has told, and not handled yet
  bool something_came_ = false;
};

}  // namespace tutti
