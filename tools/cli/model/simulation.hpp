// The discrete-event simulation: ranks that run their programs chunk by chunk, on processors and
// ports.
//
// A chunk that is sent occupies a processor, then its way out, arrives after the delay, occupies
// the receiver's way in, for which its first bit does not wait for its last one, and then a
// processor there, which also adds it where the step adds. A port passes messages in the order in
// which their first bits come. A processor of one rank takes the first chunk in the order of the
// program; shared ones take chunks in the order in which they became ready. A send is done when
// its last bit is out. Two partitions are open at a time, as in the engine (engine.hpp); its
// unasked bytes and its credits for partitions are not simulated: what comes early is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "model/cluster_program.hpp"
#include "model/event_queue.hpp"
#include "model/fold.hpp"
#include "model/port.hpp"
#include "model/simulate.hpp"
#include "tutti/status.hpp"

namespace tutti::model {

class Simulation {
 public:
  Simulation(const ClusterProgram& program, const Fold& fold, int slots);

  // kInvalidArgument: ranks wait for each other for ever.
  Result<SimulatedTime> run();

 private:
  struct Task {
    std::uint64_t order = 0;  // the least one is taken first
    std::uint32_t rank = 0, partition = 0, chunk = 0;
    friend bool operator>(const Task& a, const Task& b) { return a.order > b.order; }
  };
  struct Server {
    int idle = 1;
    std::priority_queue<Task, std::vector<Task>, std::greater<>> tasks;
  };
  struct Slot {
    bool is_open = false;
    std::uint32_t partition = 0;
    const PeerlessProgram* program = nullptr;
    std::vector<std::uint32_t> waits_for;
    std::vector<bool> has_arrived;  // by chunk
    std::size_t left = 0;
    Picoseconds sent_at = 0;  // the last bit of a send that nothing waits for
  };
  struct Chunk {
    std::uint32_t partition = 0, chunk = 0;
    friend bool operator>(const Chunk& a, const Chunk& b) {
      return a.partition != b.partition ? a.partition > b.partition : a.chunk > b.chunk;
    }
  };
  // Staging slots at a peer.
  struct Credit {
    int left = 0;
    std::priority_queue<Chunk, std::vector<Chunk>, std::greater<>> waiting;
  };
  struct Rank {
    std::uint32_t place = 0;   // on its node
    std::uint32_t server = 0;  // index
    std::uint32_t rail = 0;    // index of the ports to other nodes
    std::uint32_t opened = 0, completed = 0;
    std::array<const PeerlessProgram*, 2> programs = {};  // as Behaviour has them
    std::array<Slot, 2> slots;
    std::vector<Chunk> early;  // came before their partition was open
    std::vector<Credit> credits;
    Port out_within, in_within;
  };

  const PeerlessProgram& program_of(std::uint32_t rank, std::uint32_t partition) const;
  Slot& slot_of(std::uint32_t rank, std::uint32_t partition) {
    return ranks_[rank].slots[partition % 2];
  }

  Status check_peers() const;
  Status check_peer(std::size_t rank, std::size_t number, std::size_t part) const;
  void push(Event event);
  void handle(const Event& event);
  void open_partitions(std::uint32_t index);
  void open(std::uint32_t index);
  void end(std::uint32_t index, std::uint32_t partition);
  void ready(std::uint32_t index, std::uint32_t partition, std::uint32_t chunk);
  void queue(std::uint32_t index, std::uint32_t partition, std::uint32_t chunk);
  void serve(std::uint32_t server);
  Picoseconds takes(const Task& task) const;
  void processed(const Task& task);
  void send(const Task& task);
  void first_bit(const Event& event);
  void received(const Event& event);
  void give_credit(const Task& task);
  void credited(const Event& event);
  void finish(std::uint32_t index, std::uint32_t partition, std::uint32_t chunk);
  std::string stuck() const;
  SimulatedTime result() const;

  const ClusterProgram& program_;
  const ClusterModel& cluster_;
  const Fold& fold_;
  const int slots_;
  double send_ps_ = 0, receive_ps_ = 0, local_ps_ = 0, copy_ps_per_byte_ = 0, sum_ps_per_byte_ = 0;
  Picoseconds delay_between_ = 0, delay_within_ = 0;
  std::vector<Rank> ranks_;
  std::vector<Server> servers_;
  std::vector<Port> out_between_, in_between_;  // by rail
  EventQueue events_;
  std::uint64_t handled_ = 0, order_ = 0;
  Picoseconds now_ = 0, ended_at_ = 0;
  std::uint32_t turn_ = 0;
};

}  // namespace tutti::model
