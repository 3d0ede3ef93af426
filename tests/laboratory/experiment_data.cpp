// What an experiment's ranks put in, between operations, and what must have come out.
#include <fmt/format.h>

#include <cmath>

#include "laboratory/experiment.hpp"
#include "laboratory/rank.hpp"

namespace tutti::laboratory {

using simulated::Breach;

void Experiment::between_operations(Rank& rank, int index) {
  simulation_.memory().end_kernel(simulation_.fiber_of(index, 0), setup_.blocks);
  if (rank.control.poison == 0) {
    if (rank.started > 0) check_output(rank, index, rank.started - 1);
    if (rank.started < setup_.operations) {
      if (is_uneven()) give_counts(rank, index, rank.started);
      write_input(rank, index, rank.started);
    }
    simulation_.memory().end_kernel(simulation_.fiber_of(index, 0), setup_.blocks);
  }
  rank.ended = 0;
  ++rank.started;
}

// Small whole numbers: their sums are exact. And once 8 bytes of ones, which are NaNs, in what
// travels whatever the collective is: to rank 0.
float Experiment::input_value(int rank, int operation, std::size_t i) const {
  if (rank == 1 && operation == 1 && i < 2) return __builtin_bit_cast(float, ~std::uint32_t{0});
  return static_cast<float>((static_cast<std::size_t>(rank * 7 + operation * 3) + i) % 50);
}

float Experiment::expected(int rank, int operation, std::size_t i) const {
  const Collective collective = setup_.row->collective;
  if (!test::has_output(collective, rank, root(operation))) return kPoison;
  if (!reduces(collective)) return moved(rank, operation, i);
  float sum = 0;
  for (int r = 0; r < setup_.ranks; ++r) {
    const float scalar = setup_.op == OpKind::kPreMulSum ? static_cast<float>(r + 1) : 1;
    sum += scalar * input_value(r, operation, i);
  }
  if (normalises()) sum += residual_at(operation, i);
  return setup_.op == OpKind::kAvg ? sum / static_cast<float>(setup_.ranks) : sum;
}

void Experiment::give_counts(Rank& rank, int index, int operation) {
  const test::UnevenCounts all = counts(index, operation);
  Lengths lengths{.sent = all.sent, .taken = all.taken};
  if (setup_.counts_on_device) {
    std::copy(all.sent.begin(), all.sent.end(), rank.given.begin());
    rank.found.fill(~std::size_t{0});
    lengths = {.on_device = {rank.given.data(), rank.found.data(), piece()}};
  }
  rank.counts = lengths.counts(setup_.row->collective, DataType::kFloat32);
}

void Experiment::check_found(const Rank& rank, int index, int operation) {
  const test::UnevenCounts all = counts(index, operation);
  if (reduces(setup_.row->collective) || !setup_.counts_on_device) return;
  if (std::equal(all.taken.begin(), all.taken.end(), rank.found.begin())) return;
  simulation_.report(Breach::kWrongResult,
                     fmt::format("operation {} of rank {}: other counts found", operation, index));
}

float Experiment::moved_unevenly(int rank, int operation, std::size_t i) const {
  const bool own = setup_.row->collective == Collective::kAllToAllV;
  for (int r = 0; r < setup_.ranks; ++r) {
    const std::vector<std::size_t> sent = counts(r, operation).sent;
    const std::size_t count = sent[static_cast<std::size_t>(rank)];
    const std::size_t first = own ? test::UnevenCounts::before(sent, rank) : 0;
    if (i < count) return input_value(r, operation, first + i);
    i -= count;
  }
  return kPoison;
}

float Experiment::moved(int rank, int operation, std::size_t i) const {
  const Collective collective = setup_.row->collective;
  if (is_uneven()) return moved_unevenly(rank, operation, i);
  if (root_side(collective) == RootSide::kInput) return input_value(root(operation), operation, i);
  // Of all_to_all each rank gets its own pieces, else everybody's are the same.
  const bool own = collective == Collective::kAllToAll;
  const std::size_t place = own ? static_cast<std::size_t>(rank) * piece() : 0;
  return input_value(static_cast<int>(i / piece()), operation, place + i % piece());
}

bool Experiment::in_one_buffer() const {
  return setup_.buffers == Buffers::kInPlace && !normalises();
}

float* Experiment::input_of(int rank, int operation) const {
  Rank& own = *ranks_[static_cast<std::size_t>(rank)];
  const Sides sides = this->sides(rank, operation);
  const bool within = in_one_buffer() && sides.input <= sides.output;
  return within ? own.output.data() + sides.place : own.input.data();
}

float* Experiment::output_of(int rank, int operation) const {
  Rank& own = *ranks_[static_cast<std::size_t>(rank)];
  const Sides sides = this->sides(rank, operation);
  const bool within = in_one_buffer() && sides.input > sides.output;
  return within ? own.input.data() + sides.place : own.output.data();
}

std::size_t Experiment::first_of_output(int rank, int operation) const {
  const Sides sides = this->sides(rank, operation);
  return sides.input > sides.output ? sides.place : 0;
}

// In place is both at once: the residual's sum where the residual was, the result where the input
// was.
float* Experiment::residual_of(Rank& rank) const {
  return setup_.buffers == Buffers::kInPlace ? rank.output.data() : rank.residual.data();
}
float* Experiment::normalised_of(Rank& rank) const {
  return setup_.buffers == Buffers::kInPlace ? rank.input.data() : rank.normalised.data();
}

float Experiment::load(int index, const float* from) {
  float value = 0;
  simulation_.memory().load_now(simulation_.fiber_of(index, 0),
                                reinterpret_cast<std::byte*>(&value),
                                reinterpret_cast<const std::byte*>(from), sizeof value);
  return value;
}

void Experiment::store(int index, float* to, float value) {
  simulation_.memory().store_now(simulation_.fiber_of(index, 0), reinterpret_cast<std::byte*>(to),
                                 reinterpret_cast<const std::byte*>(&value), sizeof value);
}

void Experiment::write_tokens(Rank& rank, int index, int operation) {
  const bool in_place = setup_.buffers == Buffers::kInPlace;
  for (std::size_t i = 0; i < setup_.count; ++i) {
    store(index, rank.input.data() + i, input_value(index, operation, i));
    store(index, rank.output.data() + i, kPoison);
    if (!in_place) store(index, rank.normalised.data() + i, kPoison);
    store(index, residual_of(rank) + i, residual_at(operation, i));
  }
  for (std::size_t i = 0; i < hidden_; ++i) store(index, rank.weight.data() + i, weight_at(i));
}

void Experiment::write_input(Rank& rank, int index, int operation) {
  if (normalises()) return write_tokens(rank, index, operation);
  if (only_meets())
    return store(index, word_of(index, operation), input_value(index, operation, 0));
  float* const input = input_of(index, operation);
  const std::size_t count = sides(index, operation).input;
  for (std::size_t i = 0; i < sides(index, operation).output; ++i) {
    float* const to = output_of(index, operation) + i;
    if (to < input || to >= input + count) store(index, to, kPoison);
  }
  for (std::size_t i = 0; i < count; ++i) {
    store(index, input + i, input_value(index, operation, i));
  }
}

// Of two, by turns: a rank may be ahead by one operation.
float* Experiment::word_of(int rank, int operation) const {
  return input_of(rank, operation) + operation % 2;
}

void Experiment::check_meeting(int index, int operation) {
  for (int r = 0; r < setup_.ranks; ++r) {
    const float seen = load(index, word_of(r, operation));
    const float right = input_value(r, operation, 0);
    if (seen == right || (std::isnan(seen) && std::isnan(right))) continue;
    return simulation_.report(
        Breach::kWrongResult,
        fmt::format("operation {}: rank {} does not see what rank {} wrote", operation, index, r));
  }
}

void Experiment::check_output(Rank& rank, int index, int operation) {
  if (only_meets()) return check_meeting(index, operation);
  if (is_uneven()) check_found(rank, index, operation);
  for (std::size_t i = 0; i < sides(index, operation).output; ++i) {
    const float seen = load(index, output_of(index, operation) + i);
    const std::size_t at = test::in_message(*setup_.row, setup_.count, index, setup_.ranks,
                                            first_of_output(index, operation), i);
    const float right = expected(index, operation, at);
    if (seen == right || (std::isnan(seen) && std::isnan(right))) continue;
    return simulation_.report(Breach::kWrongResult,
                              fmt::format("operation {} of rank {}: element {} is {}, expected {}",
                                          operation, index, i, seen, right));
  }
  if (normalises()) check_normalised(rank, index, operation);
}

void Experiment::check_normalised(Rank& rank, int index, int operation) {
  for (std::size_t i = 0; i < setup_.count; ++i) {
    const std::size_t first = i / hidden_ * hidden_;
    double squares = 0;
    for (std::size_t k = first; k < first + hidden_; ++k) {
      squares += std::pow(double{expected(index, operation, k)}, 2);
    }
    const double right = expected(index, operation, i) * weight_at(i - first) /
                         std::sqrt(squares / static_cast<double>(hidden_) + kEpsilon);
    const float seen = load(index, normalised_of(rank) + i);
    if (std::abs(seen - right) <= 1e-5 * std::abs(right) || (std::isnan(seen) && std::isnan(right)))
      continue;
    return simulation_.report(
        Breach::kWrongResult,
        fmt::format("operation {} of rank {}: element {} is normalised to {}, expected {}",
                    operation, index, i, seen, right));
  }
}

void Experiment::check_canaries() {
  for (int r = 0; r < setup_.ranks; ++r) {
    const Rank& rank = *ranks_[static_cast<std::size_t>(r)];
    const bool matrices =
        rank.residual.intact() && rank.normalised.intact() && rank.weight.intact();
    if (matrices && rank.input.intact() && rank.output.intact() && rank.staging.intact()) continue;
    simulation_.report(Breach::kCanary, fmt::format("bytes beside a buffer of rank {}", r));
  }
}

}  // namespace tutti::laboratory
