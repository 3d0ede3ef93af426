#include "conformance/movement/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/units.hpp"
#include "conformance/grouped.hpp"
#include "support/check.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kGuard = 1024;

std::byte canary(std::size_t at) { return static_cast<std::byte>((at * 131 + 0x5b) & 0xff); }

std::size_t before_input(const MovementCell& cell) {
  return kGuard + static_cast<std::size_t>(cell.input_offset) * size_of(cell.dtype);
}
std::size_t before_output(const MovementCell& cell) {
  return kGuard + static_cast<std::size_t>(cell.output_offset) * size_of(cell.dtype);
}

// What rank `rank` has for place `place`: any bytes, and now and then a stretch of ones or zeros,
// which packets must not take for nothing.
void append_piece(const MovementCell& cell, int rank, int place, std::size_t bytes, Bytes& to) {
  const auto source = static_cast<std::uint64_t>(rank) * 64 + static_cast<std::uint64_t>(place);
  std::mt19937_64 random(cell.seed * 4096 + source);
  std::size_t at = to.size();
  to.resize(at + bytes);
  while (at < to.size()) {
    const std::uint64_t word = random();
    const std::uint64_t what = word % 8 == 0 ? 0 : word % 8 == 1 ? ~std::uint64_t{0} : word;
    const std::size_t some = std::min(sizeof what, to.size() - at);
    std::memcpy(&to[at], &what, some);
    at += some;
  }
}

Bytes input_of(const MovementCell& cell, int rank) {
  Bytes bytes;
  for (int place = 0; cell.sends(rank) && place < cell.pieces(); ++place) {
    append_piece(cell, rank, place, cell.piece_bytes(rank, place), bytes);
  }
  return bytes;
}

}  // namespace

MovementBench::MovementBench(Rank& rank, BufferKind kind, std::size_t bytes)
    : rank_(rank), area_bytes_(round_up(bytes + 2 * kGuard + 256, 4 * KiB)) {
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

// What this rank is to have in the end.
Bytes MovementBench::expected(const MovementCell& cell) const {
  const int place = cell.pieces() > 1 ? rank_.number() : 0;
  Bytes all;
  for (int r = 0; cell.receives(rank_.number()) && r < cell.ranks; ++r) {
    if (!cell.sends_to(r, rank_.number())) continue;
    append_piece(cell, r, place, cell.piece_bytes(r, rank_.number()), all);
  }
  return all;
}

void MovementBench::write(std::byte* area, std::size_t before, ByteView payload) {
  Bytes image(before + payload.size() + kGuard);
  require(image.size() <= area_bytes_, "the bench is too small for this cell");
  for (std::size_t i = 0; i < before; ++i) image[i] = canary(i);
  for (std::size_t i = before + payload.size(); i < image.size(); ++i) image[i] = canary(i);
  std::copy(payload.begin(), payload.end(), image.begin() + static_cast<std::ptrdiff_t>(before));
  rank_.device.write(area, image.data(), image.size());
}

MovementBench::Buffers MovementBench::prepare(const MovementCell& cell) {
  const Bytes own = input_of(cell, rank_.number());
  const std::size_t place = cell.sides(rank_.number()).place;
  const bool sends = cell.sends(rank_.number()), receives = cell.receives(rank_.number());
  const bool in_place = cell.in_place && sends;
  Bytes poison = expected(cell);
  for (std::byte& each : poison) each = ~each;
  if (in_place) {
    std::copy(own.begin(), own.end(), poison.begin() + static_cast<std::ptrdiff_t>(place));
  }
  write(input(), before_input(cell), own);
  write(output(), before_output(cell), poison);
  std::byte* const to = output() + before_output(cell);
  const std::byte* const from = in_place ? to + place : input() + before_input(cell);
  give_counts(cell);
  // NCCL's copy engines are told on every rank where the root's side lies.
  const bool both = (windows_of(cell.collective, cell.algorithm) & kNeedsNcclCopyEngines) != 0;
  return {sends || both ? from : nullptr, receives || both ? to : nullptr};
}

// What the device finds: the counts that the rank has, and nonsense where others come.
void MovementBench::give_counts(const MovementCell& cell) {
  if (!cell.counts_on_device) return;
  std::vector<std::size_t> counts = cell.counts(rank_.number()).sent;
  rank_.device.write(counts_.get(), reinterpret_cast<const std::byte*>(counts.data()),
                     counts.size() * sizeof(std::size_t));
  counts.assign(counts.size(), ~std::size_t{0});
  rank_.device.write(counts_.get() + kCountsBytes,
                     reinterpret_cast<const std::byte*>(counts.data()),
                     counts.size() * sizeof(std::size_t));
}

DeviceCounts MovementBench::device_counts(const MovementCell& cell) const {
  if (!cell.counts_on_device) return {};
  return {.given = reinterpret_cast<const std::size_t*>(counts_.get()),
          .found = reinterpret_cast<std::size_t*>(counts_.get() + kCountsBytes),
          .max_count = cell.count};
}

std::string MovementBench::check_counts(const MovementCell& cell) {
  if (!cell.counts_on_device) return {};
  std::vector<std::size_t> found(static_cast<std::size_t>(cell.ranks));
  rank_.device.read(reinterpret_cast<std::byte*>(found.data()), counts_.get() + kCountsBytes,
                    found.size() * sizeof(std::size_t));
  return found == cell.counts(rank_.number()).taken ? "" : "other counts were found";
}

std::string MovementBench::compare(const std::byte* area, std::size_t before, ByteView expected) {
  Bytes image(before + expected.size() + kGuard);
  rank_.device.read(image.data(), area, image.size());
  const std::size_t behind = before + expected.size();
  for (std::size_t i = 0; i < image.size(); ++i) {
    if (i == before) i = behind;
    if (image[i] != canary(i)) return fmt::format("byte {} beside it was written", i);
  }
  const ByteView seen = ByteView(image).subspan(before, expected.size());
  if (expected.empty() || std::memcmp(seen.data(), expected.data(), seen.size()) == 0) return {};
  const auto at = static_cast<std::size_t>(
      std::mismatch(seen.begin(), seen.end(), expected.begin()).first - seen.begin());
  return fmt::format("byte {} is {}, expected {}", at, std::to_integer<int>(seen[at]),
                     std::to_integer<int>(expected[at]));
}

std::string MovementBench::check(const MovementCell& cell) {
  const std::string out = compare(output(), before_output(cell), expected(cell));
  if (!out.empty()) return "output: " + out;
  const std::string in = compare(input(), before_input(cell), input_of(cell, rank_.number()));
  return in.empty() ? check_counts(cell) : "input: " + in;
}

}  // namespace tutti::test
