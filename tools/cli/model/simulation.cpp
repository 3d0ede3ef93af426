#include "model/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/try.hpp"

namespace tutti::model {
namespace {

using Kind = NetworkStep::Kind;
using Steps = std::vector<std::uint32_t>;

double per_byte(double gb_per_s) { return gb_per_s > 0 ? 1e3 / gb_per_s : 0; }

const Steps& with_peer(const std::vector<Steps>& steps, int number) {
  static const Steps none;
  const auto at = static_cast<std::size_t>(number);
  return at < steps.size() ? steps[at] : none;
}

bool meet(const PeerlessProgram& a, const Steps& sends, const PeerlessProgram& b,
          const Steps& receives) {
  if (sends.size() != receives.size()) return false;
  for (std::size_t k = 0; k < sends.size(); ++k) {
    const auto &sent = a.steps[sends[k]], &came = b.steps[receives[k]];
    if (sent.bytes != came.bytes || sent.within != came.within) return false;
  }
  return true;
}

}  // namespace

Simulation::Simulation(const ClusterProgram& program, const Fold& fold, int slots)
    : program_(program), cluster_(program.cluster()), fold_(fold), slots_(slots) {
  const Processor& processor = cluster_.processor;
  send_ps_ = processor.send_us * kPicosecondsPerMicrosecond;
  receive_ps_ = processor.receive_us * kPicosecondsPerMicrosecond;
  local_ps_ = processor.local_us * kPicosecondsPerMicrosecond;
  copy_ps_per_byte_ = per_byte(processor.copy_gb_per_s);
  sum_ps_per_byte_ = per_byte(processor.sum_gb_per_s);
  delay_between_ = to_picoseconds(cluster_.between.delay_us);
  delay_within_ = to_picoseconds(cluster_.within.delay_us);
  servers_.resize(processor.shared > 0 ? 1 : fold.size());
  if (processor.shared > 0) servers_[0].idle = processor.shared;
  ranks_.resize(fold.size());
  std::unordered_map<std::uint64_t, std::uint32_t> rails;
  for (std::size_t index = 0; index < fold.size(); ++index) {
    Rank& one = ranks_[index];
    const int node = fold[index].rank / cluster_.ranks_per_node;
    const int place = fold[index].rank % cluster_.ranks_per_node;
    one.place = static_cast<std::uint32_t>(place);
    for (std::size_t part = 0; part < one.programs.size(); ++part) {
      const int made = fold[index].behaviour.programs[part];
      if (made >= 0) one.programs[part] = &program.program(made);
    }
    one.server = processor.shared > 0 ? 0 : static_cast<std::uint32_t>(index);
    one.credits.resize(fold[index].peers.size());
    for (Credit& credit : one.credits) credit.left = slots;
    if (cluster_.ranks_per_node > 1) {
      one.out_within = one.in_within = Port(cluster_.within, 1);
    }
    const int count =
        cluster_.rails.empty() ? cluster_.ranks_per_node : static_cast<int>(cluster_.rails.size());
    const std::uint64_t key = static_cast<std::uint64_t>(node) * static_cast<std::uint64_t>(count) +
                              static_cast<std::uint64_t>(place % count);
    const auto [rail, is_new] = rails.emplace(key, static_cast<std::uint32_t>(out_between_.size()));
    one.rail = rail->second;
    if (!is_new || cluster_.nodes < 2) continue;
    const double speed =
        cluster_.rails.empty() ? 1 : cluster_.rails[static_cast<std::size_t>(place % count)];
    out_between_.emplace_back(cluster_.between, speed);
    in_between_.emplace_back(cluster_.between, speed);
  }
}

const PeerlessProgram& Simulation::program_of(std::uint32_t rank, std::uint32_t partition) const {
  return *ranks_[rank].programs[partition + 1 < program_.partitions() ? 0 : 1];
}

Status Simulation::check_peer(std::size_t rank, std::size_t number, std::size_t part) const {
  const FoldedRank& one = fold_[rank];
  const FoldedPeer& peer = one.peers[number];
  const FoldedRank& other = fold_[static_cast<std::size_t>(peer.rank)];
  const PeerlessProgram& mine = program_.program(one.behaviour.programs[part]);
  const PeerlessProgram& theirs = program_.program(other.behaviour.programs[part]);
  const int at = static_cast<int>(number);
  if (meet(mine, with_peer(mine.sends, at), theirs, with_peer(theirs.receives, peer.number)) &&
      meet(theirs, with_peer(theirs.sends, peer.number), mine, with_peer(mine.receives, at))) {
    return Status::ok();
  }
  return {StatusCode::kInvalidArgument,
          fmt::format("the program has no end: what ranks {} and {} send to each other is not what "
                      "they receive",
                      one.rank, one.behaviour.peers[number])};
}

Status Simulation::check_peers() const {
  for (std::size_t rank = 0; rank < fold_.size(); ++rank) {
    for (std::size_t number = 0; number < fold_[rank].peers.size(); ++number) {
      if (program_.partitions() > 1) TUTTI_TRY(check_peer(rank, number, 0));
      TUTTI_TRY(check_peer(rank, number, 1));
    }
  }
  return Status::ok();
}

Result<SimulatedTime> Simulation::run() {
  TUTTI_TRY(check_peers());
  for (std::uint32_t index = 0; index < ranks_.size(); ++index) {
    Event start;
    start.kind = Event::Kind::kStart;
    start.at = to_picoseconds(cluster_.processor.start_us);
    start.rank = index;
    start.place = ranks_[index].place;
    events_.push(start);
  }
  while (!events_.empty()) {
    const Event event = events_.pop();
    now_ = event.at;
    turn_ = event.turn;
    ++handled_;
    handle(event);
    serve(ranks_[event.rank].server);
  }
  for (const Rank& one : ranks_) {
    if (one.completed < program_.partitions()) {
      return Status(StatusCode::kInvalidArgument, stuck());
    }
  }
  return result();
}

void Simulation::push(Event event) {
  event.turn = event.at == now_ ? turn_ + 1 : 0;
  event.place = ranks_[event.rank].place;
  events_.push(event);
}

void Simulation::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kStart:
      open_partitions(event.rank);
      return;
    case Event::Kind::kFirstBit:
      first_bit(event);
      return;
    case Event::Kind::kReceived:
      received(event);
      return;
    case Event::Kind::kProcessed:
      ++servers_[ranks_[event.rank].server].idle;
      processed({0, event.rank, event.partition, event.chunk});
      return;
    case Event::Kind::kSent:
      finish(event.rank, event.partition, event.chunk);
      return;
    case Event::Kind::kCredit:
      credited(event);
      return;
    case Event::Kind::kEnd:
      end(event.rank, event.partition);
      open_partitions(event.rank);
      return;
  }
}

// Partitions.

void Simulation::open_partitions(std::uint32_t index) {
  Rank& one = ranks_[index];
  while (one.opened < program_.partitions() && !slot_of(index, one.opened).is_open) open(index);
}

void Simulation::open(std::uint32_t index) {
  Rank& one = ranks_[index];
  const std::uint32_t partition = one.opened++;
  Slot& slot = slot_of(index, partition);
  slot.is_open = true;
  slot.partition = partition;
  slot.program = &program_of(index, partition);
  slot.waits_for = slot.program->waits_for;
  slot.has_arrived.assign(slot.waits_for.size(), false);
  slot.left = slot.waits_for.size();
  slot.sent_at = 0;
  std::erase_if(one.early, [&](const Chunk& came) {
    if (came.partition != partition) return false;
    slot.has_arrived[came.chunk] = true;
    return true;
  });
  if (slot.left == 0) end(index, partition);
  const PeerlessProgram& program = *slot.program;  // the slot is another's if this one ends here
  for (std::uint32_t chunk = 0; chunk < program.waits_for.size(); ++chunk) {
    if (program.waits_for[chunk] == 0) ready(index, partition, chunk);
  }
}

// When the last chunk is done, and the last send that nothing waits for is out.
void Simulation::end(std::uint32_t index, std::uint32_t partition) {
  Slot& slot = slot_of(index, partition);
  if (slot.sent_at > now_) {
    Event end;
    end.kind = Event::Kind::kEnd;
    end.at = slot.sent_at;
    end.rank = index;
    end.partition = partition;
    push(end);
    return;
  }
  slot.is_open = false;
  ++ranks_[index].completed;
  ended_at_ = std::max(ended_at_, now_);
}

// Chunks.

void Simulation::ready(std::uint32_t index, std::uint32_t partition, std::uint32_t chunk) {
  const Slot& slot = slot_of(index, partition);
  const PeerlessProgram::Step& step = slot.program->steps[slot.program->step_of[chunk]];
  if (step.kind == Kind::kReceive && !slot.has_arrived[chunk]) return;
  if (step.kind == Kind::kSend && slots_ > 0) {
    Credit& credit = ranks_[index].credits[static_cast<std::size_t>(step.peer)];
    if (credit.left == 0) {
      credit.waiting.push({partition, chunk});
      return;
    }
    --credit.left;
  }
  queue(index, partition, chunk);
}

void Simulation::queue(std::uint32_t index, std::uint32_t partition, std::uint32_t chunk) {
  const Task free_of_cost{0, index, partition, chunk};
  if (takes(free_of_cost) == 0) {  // needs no processor, so none that is busy delays it
    processed(free_of_cost);
    return;
  }
  constexpr int kChunkBits = 32;
  const bool shared = cluster_.processor.shared > 0;
  const std::uint64_t order =
      shared ? order_++ : (std::uint64_t{partition} << kChunkBits) | std::uint64_t{chunk};
  servers_[ranks_[index].server].tasks.push({order, index, partition, chunk});
}

void Simulation::serve(std::uint32_t server) {
  Server& one = servers_[server];
  while (one.idle > 0 && !one.tasks.empty()) {
    const Task task = one.tasks.top();
    one.tasks.pop();
    --one.idle;
    Event done;
    done.kind = Event::Kind::kProcessed;
    done.at = now_ + takes(task);
    done.rank = task.rank;
    done.partition = task.partition;
    done.chunk = task.chunk;
    push(done);
  }
}

Picoseconds Simulation::takes(const Task& task) const {
  const PeerlessProgram& program = *ranks_[task.rank].slots[task.partition % 2].program;
  const PeerlessProgram::Step& step = program.steps[program.step_of[task.chunk]];
  const double bytes = program.bytes_of(task.chunk);
  const double local = bytes > 0 ? local_ps_ : 0;
  const double copied = bytes * copy_ps_per_byte_, added = bytes * sum_ps_per_byte_ * step.added;
  switch (step.kind) {
    case Kind::kSend:
      return rounded(send_ps_ + copied);
    case Kind::kReceive:
      return rounded(receive_ps_ + copied + added);
    case Kind::kSum:
      return rounded(local + (step.added == 0 ? copied : added));
    case Kind::kCopy:
      return rounded(local + copied);
  }
  return 0;
}

void Simulation::processed(const Task& task) {
  const PeerlessProgram& program = *slot_of(task.rank, task.partition).program;
  const Kind kind = program.steps[program.step_of[task.chunk]].kind;
  if (kind == Kind::kSend) {
    send(task);
    return;
  }
  if (kind == Kind::kReceive && slots_ > 0) give_credit(task);
  finish(task.rank, task.partition, task.chunk);
}

void Simulation::finish(std::uint32_t index, std::uint32_t partition, std::uint32_t chunk) {
  Slot& slot = slot_of(index, partition);
  const PeerlessProgram& program = *slot.program;
  for (std::uint32_t k = program.dependents_at[chunk]; k < program.dependents_at[chunk + 1]; ++k) {
    const std::uint32_t next = program.dependents[k];
    if (--slot.waits_for[next] == 0) ready(index, partition, next);
  }
  if (--slot.left > 0) return;
  end(index, partition);
  open_partitions(index);
}

// Messages.

void Simulation::send(const Task& task) {
  Rank& from = ranks_[task.rank];
  Slot& slot = slot_of(task.rank, task.partition);
  const PeerlessProgram& program = *slot.program;
  const PeerlessProgram::Step& step = program.steps[program.step_of[task.chunk]];
  const FoldedPeer& peer = fold_[task.rank].peers[static_cast<std::size_t>(step.peer)];
  Port& port = step.within ? from.out_within : out_between_[from.rail];
  const auto passage = port.pass(program.bytes_of(task.chunk), now_, now_);
  const Picoseconds delay = step.within ? delay_within_ : delay_between_;
  Event event;
  event.kind = Event::Kind::kFirstBit;
  event.at = passage.first_bit + delay;
  event.last_bit_at = passage.last_bit + delay;
  event.rank = static_cast<std::uint32_t>(peer.rank);
  event.partition = task.partition;
  const PeerlessProgram& theirs = program_of(event.rank, task.partition);
  const std::uint32_t met = theirs.receives[static_cast<std::size_t>(peer.number)][step.ordinal];
  event.chunk = theirs.steps[met].first_chunk + (task.chunk - step.first_chunk);
  push(event);
  if (program.dependents_at[task.chunk] == program.dependents_at[task.chunk + 1]) {
    slot.sent_at = std::max(slot.sent_at, passage.last_bit);
    finish(task.rank, task.partition, task.chunk);
    return;
  }
  Event sent;
  sent.kind = Event::Kind::kSent;
  sent.at = passage.last_bit;
  sent.rank = task.rank;
  sent.partition = task.partition;
  sent.chunk = task.chunk;
  push(sent);
}

void Simulation::first_bit(const Event& event) {
  const PeerlessProgram& program = program_of(event.rank, event.partition);
  const PeerlessProgram::Step& step = program.steps[program.step_of[event.chunk]];
  Rank& to = ranks_[event.rank];
  Port& port = step.within ? to.in_within : in_between_[to.rail];
  Event received = event;
  received.kind = Event::Kind::kReceived;
  received.at = port.pass(program.bytes_of(event.chunk), now_, event.last_bit_at).last_bit;
  push(received);
}

void Simulation::received(const Event& event) {
  Rank& to = ranks_[event.rank];
  if (event.partition >= to.opened) {
    to.early.push_back({event.partition, event.chunk});
    return;
  }
  Slot& slot = slot_of(event.rank, event.partition);
  slot.has_arrived[event.chunk] = true;
  if (slot.waits_for[event.chunk] == 0) queue(event.rank, event.partition, event.chunk);
}

void Simulation::give_credit(const Task& task) {
  const PeerlessProgram& program = *slot_of(task.rank, task.partition).program;
  const PeerlessProgram::Step& step = program.steps[program.step_of[task.chunk]];
  const FoldedPeer& peer = fold_[task.rank].peers[static_cast<std::size_t>(step.peer)];
  Event credit;
  credit.kind = Event::Kind::kCredit;
  credit.at = now_ + (step.within ? delay_within_ : delay_between_);
  credit.rank = static_cast<std::uint32_t>(peer.rank);
  credit.chunk = static_cast<std::uint32_t>(peer.number);
  push(credit);
}

void Simulation::credited(const Event& event) {
  Credit& credit = ranks_[event.rank].credits[event.chunk];
  if (credit.waiting.empty()) {
    ++credit.left;
    return;
  }
  const Chunk next = credit.waiting.top();
  credit.waiting.pop();
  queue(event.rank, next.partition, next.chunk);
}

// Results.

std::string Simulation::stuck() const {
  for (std::size_t index = 0; index < ranks_.size(); ++index) {
    for (const Slot& slot : ranks_[index].slots) {
      if (!slot.is_open) continue;
      for (std::size_t chunk = 0; chunk < slot.waits_for.size(); ++chunk) {
        const std::uint32_t step = slot.program->step_of[chunk];
        if (slot.waits_for[chunk] != 0 || slot.has_arrived[chunk] ||
            slot.program->steps[step].kind != Kind::kReceive) {
          continue;
        }
        return fmt::format(
            "the program has no end: ranks wait for each other, rank {} in step {} for rank {}",
            fold_[index].rank, step,
            fold_[index].behaviour.peers[static_cast<std::size_t>(slot.program->steps[step].peer)]);
      }
    }
  }
  return "the program has no end: ranks wait for each other";
}

SimulatedTime Simulation::result() const {
  SimulatedTime time;
  time.us = static_cast<double>(ended_at_) / kPicosecondsPerMicrosecond;
  time.events = handled_;
  time.simulated_ranks = static_cast<int>(ranks_.size());
  time.is_approximate = program_.form() == ClusterProgram::Form::kAlike;
  time.padded_part = program_.padded_part();
  Picoseconds busiest = 0;
  for (const std::vector<Port>* ports : {&out_between_, &in_between_}) {
    for (const Port& port : *ports) {
      if (port.busy() < busiest) continue;
      busiest = port.busy();
      time.sent_bytes = port.bytes();
    }
  }
  if (ended_at_ > 0) {
    time.busy_part = static_cast<double>(busiest) / static_cast<double>(ended_at_);
  }
  return time;
}

}  // namespace tutti::model
