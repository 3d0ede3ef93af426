#include "conformance/huge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.hpp"
#include "support/check.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kPiece = 64 * MiB;

// Differs between places that are 2^31 or 2^32 elements apart.
std::uint8_t value_at(std::size_t i, int rank) {
  return static_cast<std::uint8_t>(i * 7 + (i >> 31) * 31 + static_cast<std::size_t>(rank) * 5);
}

std::uint8_t sum_at(std::size_t i, int ranks) {
  unsigned sum = 0;
  for (int r = 0; r < ranks; ++r) sum += value_at(i, r);
  return static_cast<std::uint8_t>(sum);
}

template <class F>
void for_each_piece(F&& f) {
  for (std::size_t at = 0; at < kHugeCount; at += kPiece) f(at, std::min(kPiece, kHugeCount - at));
}

void fill(Rank& rank, std::byte* data) {
  std::vector<std::uint8_t> piece(kPiece);
  for_each_piece([&](std::size_t at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) piece[i] = value_at(at + i, rank.number());
    rank.device.write(data + at, reinterpret_cast<const std::byte*>(piece.data()), count);
  });
}

void check(Rank& rank, const std::byte* data) {
  std::vector<std::uint8_t> piece(kPiece);
  for_each_piece([&](std::size_t at, std::size_t count) {
    rank.device.read(reinterpret_cast<std::byte*>(piece.data()), data + at, count);
    for (std::size_t i = 0; i < count; ++i) {
      if (piece[i] == sum_at(at + i, rank.size())) continue;
      fail(fmt::format("element {} is {}, expected {}", at + i, piece[i],
                       sum_at(at + i, rank.size())));
    }
  });
}

}  // namespace

std::string run_huge(const GroupSpec& spec, std::string_view algorithm) {
  return run_group(spec, [&](Rank& rank) {
    const SymmetricMemory memory = take(rank.group.allocate(kHugeCount));
    auto* const data = static_cast<std::byte*>(memory.data());
    fill(rank, data);
    const OwnedStream stream(rank.device);
    require_ok(all_reduce(rank.group, {.input = data,
                                       .output = data,
                                       .count = kHugeCount,
                                       .dtype = DataType::kUint8,
                                       .stream = stream.get(),
                                       .options = {.algorithm = algorithm}}));
    stream.wait();
    require_ok(rank.group.status());
    check(rank, data);
  });
}

}  // namespace tutti::test
