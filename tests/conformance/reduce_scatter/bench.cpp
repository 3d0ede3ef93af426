#include "conformance/reduce_scatter/bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "support/check.hpp"
#include "support/compare.hpp"

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

std::size_t piece_bytes(const Cell& cell) { return cell.count * size_of(cell.dtype); }

// What the library plans, and grids that it would not.
int blocks_of(const Cell& cell) {
  constexpr int kBlocks[] = {0, 1, 3, 7, 16};
  const auto sum = cell.count + static_cast<std::size_t>(cell.offset + cell.ranks);
  return kBlocks[sum % std::size(kBlocks)];
}

}  // namespace

ScatterBench::ScatterBench(Rank& rank, BufferKind kind, std::size_t elements)
    : rank_(rank),
      oracle_(rank.number()),
      area_bytes_(round_up((elements + kMostOffset) * 8 + 2 * kGuard, 4 * KiB)) {
  const std::size_t total = 2 * area_bytes_;
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
const Answer& ScatterBench::answer(const Cell& cell) {
  const InputSpec spec{.dtype = cell.dtype,
                       .op = cell.op,
                       .kind = cell.inputs,
                       .ranks = cell.ranks,
                       .seed = cell.seed};
  return oracle_.answer(spec, cell.count * static_cast<std::size_t>(cell.ranks));
}

void ScatterBench::write(std::byte* area, std::size_t before, ByteView payload) {
  Bytes image(before + payload.size() + kGuard);
  require(image.size() <= area_bytes_, "the bench is too small for this cell");
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = canary(i);
  std::copy(payload.begin(), payload.end(), image.begin() + static_cast<std::ptrdiff_t>(before));
  rank_.device.write(area, image.data(), image.size());
}

ReduceScatter ScatterBench::prepare(const Cell& cell, Stream stream) {
  const Answer& known = answer(cell);
  const std::size_t piece = piece_bytes(cell);
  const std::size_t place = piece * static_cast<std::size_t>(rank_.number());
  Bytes poison(piece);
  for (std::size_t i = 0; i < piece; ++i) poison[i] = ~known.expected[place + i];
  write(input(), before_input(cell),
        ByteView(known.input).first(piece * static_cast<std::size_t>(cell.ranks)));
  write(output(), before_output(cell), poison);
  std::byte* const from = input() + before_input(cell);
  return {.input = from,
          .output = cell.in_place ? from + place : output() + before_output(cell),
          .count = cell.count,
          .dtype = cell.dtype,
          .op = {cell.op, known.scalar},
          .stream = stream,
          .options = {.algorithm = cell.algorithm, .blocks = blocks_of(cell)}};
}

// Says which canary is gone.
std::string ScatterBench::read(const std::byte* area, std::size_t before, Bytes& payload) {
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

std::string ScatterBench::check(const Cell& cell) {
  const Answer& known = answer(cell);
  const std::size_t piece = piece_bytes(cell);
  const std::size_t place = piece * static_cast<std::size_t>(rank_.number());
  const ByteView expected = ByteView(known.expected).subspan(place, piece);
  Bytes in(piece * static_cast<std::size_t>(cell.ranks)), out(piece);
  std::string text = read(input(), before_input(cell), in);
  if (!text.empty()) return "input: " + text;
  text = read(output(), before_output(cell), out);
  if (!text.empty()) return "output: " + text;

  if (cell.in_place) {
    std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(place), piece, out.begin());
    std::copy_n(known.input.begin() + static_cast<std::ptrdiff_t>(place), piece,
                in.begin() + static_cast<std::ptrdiff_t>(place));
  }
  text = difference(cell.dtype, expected, out);
  if (!text.empty()) return text;
  const bool same = std::equal(in.begin(), in.end(), known.input.begin());
  return same ? "" : "the input was changed";
}

}  // namespace tutti::test
