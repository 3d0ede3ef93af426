#include "unit/executors/network/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "unit/executors/network/programs.hpp"

namespace tutti::test {
namespace {

using Ints = std::vector<std::int32_t>;

std::int32_t value(int rank, std::size_t number, std::size_t index) {
  return static_cast<std::int32_t>((static_cast<std::size_t>(rank) + 1) * 100'003 + number * 7'919 +
                                   index * 31);
}

bool has_pieces(const Task& task) { return task.schedule == gather; }

Ints input_of(const Task& task, int rank, std::size_t number) {
  Ints input(task.count);
  for (std::size_t k = 0; k < input.size(); ++k) input[k] = value(rank, number, k);
  return input;
}

Ints sum_of(const Task& task, int ranks, std::size_t number) {
  Ints sum(task.count);
  for (std::size_t k = 0; k < sum.size(); ++k) {
    for (int rank = 0; rank < ranks; ++rank) {
      sum[k] += value(rank, number, k) * (task.op == OpKind::kPreMulSum ? rank + 2 : 1);
    }
    if (task.op == OpKind::kAvg) sum[k] /= ranks;
  }
  return sum;
}

Ints gathered(const Task& task, int ranks, std::size_t number) {
  Ints all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Ints piece = input_of(task, rank, number);
    all.insert(all.end(), piece.begin(), piece.end());
  }
  return all;
}

// As share_begin() divides, but of each partition, so only where there is one.
Ints assembled(const Task& task, int ranks, std::size_t number) {
  NetworkShape shape;
  shape.ranks = ranks;
  shape.count = task.count;
  Ints all(task.count);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t k = share_begin(shape, rank); k < share_begin(shape, rank + 1); ++k) {
      all[k] = value(rank, number, k);
    }
  }
  return all;
}

// What a rank's output has to be; empty: it is not written.
Ints expected(const Task& task, int ranks, std::size_t number) {
  if (task.schedule == ring || task.schedule == direct) return sum_of(task, ranks, number);
  if (task.schedule == gather) return gathered(task, ranks, number);
  if (task.schedule == assemble) return assembled(task, ranks, number);
  if (task.schedule == chain || task.schedule == star) return input_of(task, task.root, number);
  if (task.schedule == take_from) return input_of(task, task.pair->sender, number);
  return {};
}

}  // namespace

World::World(const Setup& setup)
    : setup_(setup),
      network_(setup.ranks, setup.network),
      random_(setup.network.seed),
      ranks_(static_cast<std::size_t>(setup.ranks)) {
  for (int rank = 0; rank < setup.ranks; ++rank) {
    NetworkEngine::Group group;
    group.id = 99;
    group.rank = rank;
    group.ranks = setup.ranks;
    group.name = [](int of) { return fmt::format("rank {} (host {})", of, char('a' + of)); };
    group.most_scratch_bytes = setup.most_scratch_bytes;
    group.omitted = setup.omitted;
    ranks_[static_cast<std::size_t>(rank)].engine =
        std::make_unique<NetworkEngine>(std::move(group), network_.wire(rank));
    ranks_[static_cast<std::size_t>(rank)].counted.resize(
        1 + static_cast<std::size_t>(setup.ranks * setup.ranks));
  }
}

World::~World() {
  for (Rank& rank : ranks_) rank.engine->cancel();
}

std::size_t& World::counter(Rank& rank, const Task& task) const {
  if (!task.pair) return rank.counted[0];
  return rank.counted[static_cast<std::size_t>(1 + task.pair->sender * setup_.ranks +
                                               task.pair->receiver)];
}

std::uint64_t World::start(int rank, const Task& task) {
  Rank& at = ranks_[static_cast<std::size_t>(rank)];
  auto running = std::make_unique<Running>();
  running->task = task;
  running->number = ++counter(at, task);
  running->input = input_of(task, rank, running->number);
  const std::size_t pieces = has_pieces(task) ? static_cast<std::size_t>(setup_.ranks) : 1;
  running->output.assign(task.count * pieces, -1);
  if (task.in_place) running->output = running->input;
  NetworkOperation operation;
  operation.schedule = task.schedule;
  operation.shape.rank = rank;
  operation.shape.ranks = setup_.ranks;
  operation.shape.root = task.root;
  operation.shape.count = task.count;
  operation.shape.stride = has_pieces(task) ? task.count : 0;
  operation.dtype = DataType::kInt32;
  operation.op = task.op;
  operation.scalar = rank + 2;
  const auto& input = task.in_place ? running->output : running->input;
  operation.input = reinterpret_cast<const std::byte*>(input.data());
  operation.output = reinterpret_cast<std::byte*>(running->output.data());
  operation.chunk_bytes = task.chunk_bytes;
  operation.signature = task.signature;
  operation.text = fmt::format("task #{}", running->number);
  operation.deadline = network_.now() + setup_.timeout;
  operation.pair = task.pair;
  running->ticket = at.engine->start(std::move(operation));
  at.running.push_back(std::move(running));
  return at.running.back()->ticket;
}

void World::start_all(const Task& task) {
  for (int rank = 0; rank < setup_.ranks; ++rank) start(rank, task);
}

void World::note(std::string what) {
  if (problem_.empty()) problem_ = std::move(what);
}

// Once an operation has ended its buffers are the caller's, who writes to them at once.
void World::check(int rank, Running& running) {
  const Ints right = expected(running.task, setup_.ranks, running.number);
  const bool is_written = running.task.schedule != pass_on && running.task.schedule != rendezvous;
  if (is_written && running.output != right) {
    const auto at = std::mismatch(right.begin(), right.end(), running.output.begin());
    note(fmt::format("rank {} has a wrong result of task {} at element {}", rank, running.number,
                     at.first - right.begin()));
  }
  std::fill(running.input.begin(), running.input.end(), -2);
  std::fill(running.output.begin(), running.output.end(), -3);
}

bool World::step(int rank) {
  Rank& at = ranks_[static_cast<std::size_t>(rank)];
  if (!network_.runs(rank)) return false;
  const auto did = at.engine->progress(network_.now());
  at.most_kept = std::max(at.most_kept, at.engine->kept_bytes());
  if (!did.is_ok()) {
    at.failure = did.status();
    network_.stop(rank);  // handles nothing any more
    return false;
  }
  for (std::size_t k = at.first_running; k < at.running.size(); ++k) {
    auto& running = at.running[k];
    if (k == at.first_running && running->ticket == 0) ++at.first_running;
    if (running->ticket == 0 || !at.engine->has_ended(running->ticket)) continue;
    check(rank, *running);
    running->ticket = 0;
  }
  return *did;
}

void World::settle() {
  std::vector<int> order(ranks_.size());
  std::iota(order.begin(), order.end(), 0);
  for (bool did = true; did;) {
    did = false;
    std::shuffle(order.begin(), order.end(), random_);
    for (const int rank : order) did |= step(rank);
  }
}

bool World::is_idle() const {
  for (int rank = 0; rank < setup_.ranks; ++rank) {
    if (network_.runs(rank) && !ranks_[static_cast<std::size_t>(rank)].engine->idle()) return false;
  }
  return true;
}

World::Clock::time_point World::next_event() const {
  auto next = network_.next_event();
  for (int rank = 0; rank < setup_.ranks; ++rank) {
    if (!network_.runs(rank)) continue;
    next = std::min(next, ranks_[static_cast<std::size_t>(rank)].engine->next_event());
  }
  return next;
}

void World::run(const Meanwhile& meanwhile) {
  for (;;) {
    const auto more = meanwhile ? meanwhile() : Clock::time_point::max();
    settle();
    if (is_idle() && more == Clock::time_point::max()) return;
    const auto next = std::min(next_event(), more);
    if (next == Clock::time_point::max()) return note("nothing happens any more");
    network_.advance(std::max(next - network_.now(), Duration(1)));
  }
}

void World::run_for(Duration time) {
  const auto end = network_.now() + time;
  while (network_.now() < end) {
    settle();
    const auto next = std::min(end, next_event());
    network_.advance(std::max(next - network_.now(), Duration(1)));
  }
  settle();
}

std::string World::problem() const {
  for (const Rank& rank : ranks_) {
    if (!rank.failure.is_ok()) return rank.failure.to_string();
  }
  if (!network_.misdeed().empty()) return network_.misdeed();
  return problem_;
}

}  // namespace tutti::test
