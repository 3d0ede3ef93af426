#include "conformance/all_gather/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/units.hpp"
#include "support/check.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kGuard = 1024;

std::byte canary(std::size_t at) { return static_cast<std::byte>((at * 131 + 0x5b) & 0xff); }

std::size_t before_input(const GatherCell& cell) {
  return kGuard + static_cast<std::size_t>(cell.input_offset) * size_of(cell.dtype);
}
std::size_t before_output(const GatherCell& cell) {
  return kGuard + static_cast<std::size_t>(cell.output_offset) * size_of(cell.dtype);
}

}  // namespace

GatherBench::GatherBench(Rank& rank, BufferKind kind, std::size_t bytes)
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

// Any bytes, and now and then a stretch of ones or zeros, which packets must not take for nothing.
Bytes GatherBench::piece(const GatherCell& cell, int rank) const {
  std::mt19937_64 random(cell.seed * 64 + static_cast<std::uint64_t>(rank));
  Bytes bytes(cell.piece_bytes());
  for (std::size_t i = 0; i < bytes.size();) {
    const std::uint64_t word = random();
    const std::uint64_t what = word % 8 == 0 ? 0 : word % 8 == 1 ? ~std::uint64_t{0} : word;
    for (int k = 0; k < 8 && i < bytes.size(); ++k, ++i) {
      bytes[i] = static_cast<std::byte>(what >> 8 * k & 0xff);
    }
  }
  return bytes;
}

void GatherBench::write(std::byte* area, std::size_t before, ByteView payload) {
  Bytes image(before + payload.size() + kGuard);
  require(image.size() <= area_bytes_, "the bench is too small for this cell");
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = canary(i);
  std::copy(payload.begin(), payload.end(), image.begin() + static_cast<std::ptrdiff_t>(before));
  rank_.device.write(area, image.data(), image.size());
}

AllGather GatherBench::prepare(const GatherCell& cell, Stream stream) {
  const Bytes own = piece(cell, rank_.number());
  const std::size_t place = own.size() * static_cast<std::size_t>(rank_.number());
  Bytes poison;
  for (int r = 0; r < cell.ranks; ++r) {
    for (const std::byte b : piece(cell, r)) poison.push_back(~b);
  }
  if (cell.in_place) {
    std::copy(own.begin(), own.end(), poison.begin() + static_cast<std::ptrdiff_t>(place));
  }
  write(input(), before_input(cell), own);
  write(output(), before_output(cell), poison);
  std::byte* const to = output() + before_output(cell);
  return {.input = cell.in_place ? to + place : input() + before_input(cell),
          .output = to,
          .count = cell.count,
          .dtype = cell.dtype,
          .stream = stream,
          .options = {.algorithm = cell.algorithm, .blocks = cell.blocks, .threads = cell.threads}};
}

std::string GatherBench::compare(const std::byte* area, std::size_t before, ByteView expected) {
  Bytes image(before + expected.size() + kGuard);
  rank_.device.read(image.data(), area, image.size());
  for (std::size_t i = 0; i < image.size(); ++i) {
    const bool inside = i >= before && i < before + expected.size();
    if (!inside && image[i] != canary(i)) return fmt::format("byte {} beside it was written", i);
    if (!inside || image[i] == expected[i - before]) continue;
    return fmt::format("byte {} is {}, expected {}", i - before, std::to_integer<int>(image[i]),
                       std::to_integer<int>(expected[i - before]));
  }
  return {};
}

std::string GatherBench::check(const GatherCell& cell) {
  Bytes expected;
  for (int r = 0; r < cell.ranks; ++r) {
    const Bytes one = piece(cell, r);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  const std::string out = compare(output(), before_output(cell), expected);
  if (!out.empty()) return "output: " + out;
  const std::string in = compare(input(), before_input(cell), piece(cell, rank_.number()));
  return in.empty() ? in : "input: " + in;
}

}  // namespace tutti::test
