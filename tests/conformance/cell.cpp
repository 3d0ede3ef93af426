#include "conformance/cell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "algorithms/catalogue.hpp"

namespace tutti::test {
namespace {

enum Dimension : std::size_t {
  kAlgorithm,
  kKind,
  kRanks,
  kBuffers,
  kMode,
  kDtype,
  kOp,
  kInputs,
  kCount,
  kOffset,
  kInPlace,
  kDimensions
};

// The value of a dimension, if it is chosen already.
template <class T>
std::optional<T> chosen_of(const std::vector<T>& values, const Combination& chosen, Dimension d) {
  if (chosen[d] == kAny) return std::nullopt;
  return values[static_cast<std::size_t>(chosen[d])];
}

const Algorithm* row_of(std::string_view id) {
  const auto all = catalogue();
  const auto found =
      std::find_if(all.begin(), all.end(), [id](const auto& row) { return row.id == id; });
  return found == all.end() ? nullptr : &*found;
}

bool is_large(const std::optional<std::size_t>& count) { return count && *count > Space::kLarge; }

// What a choice of the library's may be checked for is what every row it may take can be.
Order order_of(const Algorithm* row, const Space& space) {
  if (row != nullptr) return row->order;
  const bool by_host = space.backend == Backend::kHost && !space.over_network;
  return by_host ? Order::kRankOrder : Order::kNone;
}

bool row_takes(const Algorithm& row, Backend backend, std::optional<int> ranks,
               std::optional<DataType> dtype, std::optional<OpKind> op) {
  const int most = backend == Backend::kHost ? row.max_ranks_host : row.max_ranks_cuda;
  if (most == 0 || (ranks && *ranks > most)) return false;
  return !dtype || !op || row.takes == nullptr || row.takes(*dtype, *op);
}

// Without a fixed order only exact inputs have one right answer; and averages only where the
// division is exact whenever it is done.
bool has_one_answer(Order order, std::optional<InputKind> inputs, std::optional<OpKind> op,
                    std::optional<int> ranks) {
  if (order == Order::kRankOrder) return true;
  if (inputs && *inputs != InputKind::kExact) return false;
  const bool average = op && *op == OpKind::kAvg;
  return !average || !ranks || std::has_single_bit(static_cast<unsigned>(*ranks));
}

bool buffers_fit(Backend backend, std::optional<BufferKind> buffers, std::optional<Mode> mode) {
  if (backend == Backend::kHost) {
    if (mode && *mode != Mode::kEager) return false;
    return !buffers || *buffers != BufferKind::kRegisteredVirtual;
  }
  const bool registers_late = mode && *mode == Mode::kGraphRegistered;
  return !registers_late || !buffers || *buffers == BufferKind::kPlain;
}

}  // namespace

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::kEager:
      return "eager";
    case Mode::kGraph:
      return "graph";
    case Mode::kGraphRegistered:
      break;
  }
  return "graph_registered";
}

Trial Cell::trial() const {
  return {.dtype = dtype,
          .op = op,
          .count = count,
          .offset = offset,
          .in_place = in_place,
          .inputs = inputs,
          .seed = seed,
          .algorithm = algorithm};
}

std::string Cell::to_string() const {
  return fmt::format(
      "--kind {} --ranks {} --rows {} --buffers {} --mode {} --dtype {} --op {} --inputs {} "
      "--count {} --offset {} --in-place {} --seed {}",
      tutti::test::to_string(kind), ranks, algorithm.empty() ? "auto" : algorithm,
      tutti::test::to_string(buffers), tutti::test::to_string(mode), tutti::to_string(dtype),
      tutti::to_string(op), tutti::test::to_string(inputs), count, offset, in_place ? "yes" : "no",
      seed);
}

std::string to_arguments(const Cell& cell, Backend backend) {
  return fmt::format("--backend {} {} --full", to_string(backend), cell.to_string());
}

std::vector<int> Space::sizes() const {
  std::vector<int> sizes;
  for (const std::size_t size :
       {algorithms.size(), kinds.size(), ranks.size(), buffers.size(), modes.size(), dtypes.size(),
        ops.size(), inputs.size(), counts.size(), offsets.size(), in_place.size()}) {
    sizes.push_back(static_cast<int>(size));
  }
  return sizes;
}

bool Space::allows(const Combination& chosen) const {
  const auto dtype = chosen_of(dtypes, chosen, kDtype);
  const auto op = chosen_of(ops, chosen, kOp);
  const auto input = chosen_of(inputs, chosen, kInputs);
  const auto rank_count = chosen_of(ranks, chosen, kRanks);
  if (input && dtype && *input == InputKind::kSpecial && !is_floating(*dtype)) return false;
  if (is_large(chosen_of(counts, chosen, kCount)) && !large_for_all_dtypes && dtype &&
      *dtype != DataType::kFloat32 && *dtype != DataType::kBfloat16) {
    return false;
  }
  if (!buffers_fit(backend, chosen_of(buffers, chosen, kBuffers),
                   chosen_of(modes, chosen, kMode))) {
    return false;
  }
  const auto count = chosen_of(counts, chosen, kCount);
  if (count && rank_count && *count * static_cast<std::size_t>(*rank_count) > most_elements) {
    return false;
  }
  const auto id = chosen_of(algorithms, chosen, kAlgorithm);
  if (!id) return true;
  const Algorithm* row = row_of(*id);
  // What is chosen over a network, is one of those that all take the same.
  const Algorithm* takes =
      row == nullptr && over_network ? row_of("all_reduce/network_direct") : row;
  if (takes != nullptr && !row_takes(*takes, backend, rank_count, dtype, op)) return false;
  return has_one_answer(order_of(row, *this), input, op, rank_count);
}

Cell Space::at(const Combination& chosen) const {
  const auto pick = [&](const auto& values, Dimension d) {
    return values[static_cast<std::size_t>(chosen[d])];
  };
  return {.algorithm = pick(algorithms, kAlgorithm),
          .kind = pick(kinds, kKind),
          .ranks = pick(ranks, kRanks),
          .buffers = pick(buffers, kBuffers),
          .mode = pick(modes, kMode),
          .dtype = pick(dtypes, kDtype),
          .op = pick(ops, kOp),
          .inputs = pick(inputs, kInputs),
          .count = pick(counts, kCount),
          .offset = pick(offsets, kOffset),
          .in_place = pick(in_place, kInPlace),
          .seed = seed};
}

std::vector<Cell> Space::selection() const {
  std::vector<Cell> cells;
  const auto allowed = [this](const Combination& chosen) { return allows(chosen); };
  for (const Combination& chosen : pairwise(sizes(), allowed, seed)) cells.push_back(at(chosen));
  return cells;
}

std::vector<Cell> Space::everything() const {
  std::vector<Cell> cells;
  const auto allowed = [this](const Combination& chosen) { return allows(chosen); };
  for (const Combination& chosen : product(sizes(), allowed)) cells.push_back(at(chosen));
  return cells;
}

}  // namespace tutti::test
