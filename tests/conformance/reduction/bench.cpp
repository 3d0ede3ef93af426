#include "conformance/reduction/bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "base/units.hpp"
#include "support/check.hpp"
#include "support/compare.hpp"
#include "support/device_scalar.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kGuard = 1024, kMostOffset = 16;

std::byte canary(std::size_t at) { return static_cast<std::byte>((at * 131 + 0x5b) & 0xff); }

// The two sides lie differently, in all cells but those of one offset.
std::size_t before_input(const Cell& cell) {
  return kGuard + static_cast<std::size_t>(cell.offset) * size_of(cell.dtype);
}
std::size_t before_output(const Cell& cell) {
  return kGuard + (kMostOffset - static_cast<std::size_t>(cell.offset)) * size_of(cell.dtype);
}

// What the library plans, and grids that it would not.
int blocks_of(const Cell& cell) {
  constexpr int kBlocks[] = {0, 1, 3, 7, 16};
  const auto sum = cell.count + static_cast<std::size_t>(cell.offset + cell.ranks);
  return kBlocks[sum % std::size(kBlocks)];
}

int root_of(const Cell& cell) {
  const auto any = cell.count + static_cast<std::size_t>(cell.offset) + cell.seed % 97;
  return static_cast<int>(any % static_cast<std::size_t>(cell.ranks));
}

}  // namespace

ReductionBench::ReductionBench(Rank& rank, Collective collective, BufferKind kind,
                               std::size_t elements)
    : rank_(rank),
      collective_(collective),
      oracle_(rank.number()),
      area_bytes_(round_up((elements + kMostOffset) * 8 + 2 * kGuard, 4 * KiB)) {
  const std::size_t total = 2 * area_bytes_ + kScalarRoom;
  if (kind == BufferKind::kSymmetric) {
    shared_ = take(rank.group.allocate(total));
    memory_ = static_cast<std::byte*>(shared_.data());
    return;
  }
  const bool is_virtual = kind == BufferKind::kRegisteredVirtual;
  own_.emplace(rank.device, total, is_virtual ? MemoryKind::kVirtual : MemoryKind::kOrdinary);
  memory_ = own_->get();
  if (kind != BufferKind::kPlain) shared_ = take(rank.group.register_memory(memory_, total));
}

// Of whole messages: of what is expected, a rank gets its piece.
const Answer& ReductionBench::answer(const Cell& cell) {
  const InputSpec spec{.dtype = cell.dtype,
                       .op = cell.op,
                       .kind = cell.inputs,
                       .ranks = cell.ranks,
                       .seed = cell.seed};
  return oracle_.answer(spec, input_bytes(cell) / size_of(cell.dtype));
}

std::size_t ReductionBench::input_bytes(const Cell& cell) const {
  return sides(cell).input * size_of(cell.dtype);
}

std::size_t ReductionBench::part_bytes(const Cell& cell) const {
  const bool gets = !has_root(collective_) || rank_.number() == root_of(cell);
  return gets ? sides(cell).output * size_of(cell.dtype) : 0;
}

std::size_t ReductionBench::place(const Cell& cell) const {
  return sides(cell).place * size_of(cell.dtype);
}

Sides ReductionBench::sides(const Cell& cell) const {
  if (is_uneven(collective_)) return counts(cell).sides(collective_, rank_.number());
  const auto pieces = has_pieces(collective_) ? static_cast<std::size_t>(cell.ranks) : 1;
  return sides_of(collective_, cell.count * pieces, rank_.number(), cell.ranks);
}

// Replays, whose seeds differ by thousands, have the counts of the capture.
UnevenCounts ReductionBench::counts(const Cell& cell) const {
  return {collective_, cell.count, cell.seed % 97'000, rank_.number(), cell.ranks};
}

bool ReductionBench::is_for_rows(Collective collective, const Cell& cell) {
  const auto row = find_algorithm(collective, cell.algorithm);
  return row.is_ok() && (*row)->splits_rows;
}

// Of the row that is for them, and now and then where one is chosen.
std::size_t ReductionBench::rows(Collective collective, const Cell& cell) {
  const bool named = is_for_rows(collective, cell);
  const bool chosen = cell.algorithm.empty() && cell.offset % 2 == 1;
  const bool may_be = collective == Collective::kReduceScatter && !cell.in_place && cell.count > 0;
  if (!may_be || !(named || chosen)) return 1;
  for (const std::size_t rows : {16, 5, 4, 3, 2}) {
    if (cell.count % rows == 0) return rows;
  }
  return cell.count;
}

// Of what is expected, the part that this rank gets.
Bytes ReductionBench::part_of(const Cell& cell, const Bytes& expected) const {
  const std::size_t part = part_bytes(cell), rows = ReductionBench::rows(collective_, cell);
  const std::size_t columns = part / rows;
  const auto at = [&](std::size_t row) {
    const std::size_t before = rows == 1 ? 0 : row * columns * static_cast<std::size_t>(cell.ranks);
    const std::size_t own =
        rows == 1 ? place(cell) : columns * static_cast<std::size_t>(rank_.number());
    return expected.begin() + static_cast<std::ptrdiff_t>(before + own);
  };
  Bytes all;
  for (std::size_t row = 0; row < rows; ++row) {
    all.insert(all.end(), at(row), at(row) + static_cast<std::ptrdiff_t>(columns));
  }
  return all;
}

// Of every third cell that may have them there.
bool ReductionBench::are_on_device(const Cell& cell) {
  const auto row = find_algorithm(Collective::kReduceScatterV, cell.algorithm);
  const bool may_be = cell.count > 0 && !cell.in_place && !(row.is_ok() && (*row)->counts_on_host);
  const auto any = cell.count + static_cast<std::size_t>(cell.offset + cell.ranks);
  return may_be && (any + cell.seed % 97'000) % 3 == 0;
}

DeviceCounts ReductionBench::give_counts(const Cell& cell) {
  if (!is_uneven(collective_) || !are_on_device(cell)) return {};
  const std::vector<std::size_t> all = counts(cell).sent;
  rank_.device.write(counts_.get(), reinterpret_cast<const std::byte*>(all.data()),
                     all.size() * sizeof(std::size_t));
  return {.given = reinterpret_cast<const std::size_t*>(counts_.get()), .max_count = cell.count};
}

// With the multiplier in memory in every second cell that can have it there.
ReduceOp ReductionBench::give_op(const Cell& cell, Scalar scalar) {
  const ReduceOp op{cell.op, scalar};
  if ((cell.count + static_cast<std::size_t>(cell.offset)) % 2 == 0) return op;
  return in_memory(rank_.device, memory_ + 2 * area_bytes_, cell.dtype, op);
}

void ReductionBench::write(std::byte* area, std::size_t before, ByteView payload) {
  Bytes image(before + payload.size() + kGuard);
  require(image.size() <= area_bytes_, "the bench is too small for this cell");
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = canary(i);
  std::copy(payload.begin(), payload.end(), image.begin() + static_cast<std::ptrdiff_t>(before));
  rank_.device.write(area, image.data(), image.size());
}

ReductionBench::Call ReductionBench::prepare(const Cell& cell) {
  const Answer& known = answer(cell);
  const std::size_t first = place(cell);
  Bytes poison = part_of(cell, known.expected);
  for (std::byte& each : poison) each = ~each;
  write(input(), before_input(cell), ByteView(known.input).first(input_bytes(cell)));
  write(output(), before_output(cell), poison);
  std::byte* const from = input() + before_input(cell);
  std::byte* const to = cell.in_place ? from + first : output() + before_output(cell);
  const bool gets = !has_root(collective_) || rank_.number() == root_of(cell);
  return {.input = from,
          .output = gets ? to : nullptr,
          .op = give_op(cell, known.scalar),
          .root = root_of(cell),
          .blocks = blocks_of(cell),
          .device_counts = give_counts(cell)};
}

// Says which canary is gone.
std::string ReductionBench::read(const std::byte* area, std::size_t before, Bytes& payload) {
  Bytes image(before + payload.size() + kGuard);
  rank_.device.read(image.data(), area, image.size());
  for (std::size_t i = 0; i < image.size(); ++i) {
    const bool inside = i >= before && i < before + payload.size();
    if (inside) payload[i - before] = image[i];
    if (!inside && image[i] != canary(i)) {
      return fmt::format("byte {} beside it was written", static_cast<std::ptrdiff_t>(i - before));
    }
  }
  return {};
}

std::string ReductionBench::check(const Cell& cell) {
  const Answer& known = answer(cell);
  const std::size_t part = part_bytes(cell);
  const auto first = static_cast<std::ptrdiff_t>(place(cell));
  const Bytes expected = part_of(cell, known.expected);
  Bytes in(input_bytes(cell)), out(part);
  std::string text = read(input(), before_input(cell), in);
  if (!text.empty()) return "input: " + text;
  text = read(output(), before_output(cell), out);
  if (!text.empty()) return "output: " + text;

  if (cell.in_place) {
    std::copy_n(in.begin() + first, part, out.begin());
    std::copy_n(known.input.begin() + first, part, in.begin() + first);
  }
  text = difference(cell.dtype, expected, out);
  if (!text.empty()) return text;
  const bool same = std::equal(in.begin(), in.end(), known.input.begin());
  return same ? "" : "the input was changed";
}

}  // namespace tutti::test
