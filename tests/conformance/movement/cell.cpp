#include "conformance/movement/cell.hpp"

#include <fmt/format.h>

namespace tutti::test {
namespace {

// One of each size: what the bits mean does not matter.
constexpr DataType kDtypes[] = {DataType::kUint8, DataType::kBfloat16, DataType::kFloat32,
                                DataType::kInt64};
// Around tiles, blocks of them, and passes through staging.
constexpr std::size_t kCounts[] = {0,   1,   7,    15,   16,   17,    255,
                                   256, 257, 4095, 4096, 4097, 65537, 1024 * 1024 + 3};
constexpr int kInputOffsets[] = {0, 1, 2, 8};
constexpr int kOutputOffsets[] = {0, 1, 4, 16};
struct Grid {
  int blocks, threads;
};
constexpr Grid kGrids[] = {{0, 0}, {1, 64}, {3, 512}, {7, 96}, {16, 160}};

enum Dimension : std::size_t {
  kAlgorithm,
  kKind,
  kRanks,
  kBuffer,
  kMode,
  kDtype,
  kCount,
  kInputOffset,
  kOutputOffset,
  kInPlace,
  kRoot,
  kGrid,
  kSource
};
enum Root : int { kFirst, kMiddle, kLast, kRoots };

// In place the root's two sides are one where they are equally long.
bool has_in_place(Collective collective) {
  return runs_in_place(collective) || collective == Collective::kBroadcast;
}
// Null where none is named.
const Algorithm* row_of(Collective collective, std::string_view name) {
  const auto row = find_algorithm(collective, name);
  return row.is_ok() ? *row : nullptr;
}
int root_at(int choice, int ranks) {
  return choice == kFirst ? 0 : choice == kMiddle ? ranks / 2 : ranks - 1;
}

bool buffers_fit(Backend backend, const Combination& chosen) {
  const int buffer = chosen[kBuffer], mode = chosen[kMode];
  if (backend == Backend::kHost) {
    const bool is_virtual =
        buffer != kAny && kAllBufferKinds[buffer] == BufferKind::kRegisteredVirtual;
    return !is_virtual && (mode == kAny || kAllModes[mode] == Mode::kEager);
  }
  const bool late = mode != kAny && kAllModes[mode] == Mode::kGraphRegistered;
  return !late || buffer == kAny || kAllBufferKinds[buffer] == BufferKind::kPlain;
}

}  // namespace

std::size_t MovementCell::larger() const {
  return has_pieces(collective) ? count * static_cast<std::size_t>(ranks) : count;
}

bool MovementCell::sends(int rank) const {
  return root_side(collective) != RootSide::kInput || rank == root;
}

bool MovementCell::receives(int rank) const {
  return root_side(collective) != RootSide::kOutput || rank == root;
}

bool MovementCell::sends_to(int rank, int other) const {
  return is_pairwise(collective) ? (rank + 1) % ranks == other : sends(rank);
}

int MovementCell::pieces() const {
  const bool each = collective == Collective::kAllToAll || collective == Collective::kAllToAllV;
  return each || collective == Collective::kScatter ? ranks : 1;
}

Sides MovementCell::sides(int rank) const {
  Sides sides = is_uneven(collective) ? counts(rank).sides(collective, rank)
                                      : sides_of(collective, larger(), rank, ranks);
  for (std::size_t* each : {&sides.input, &sides.output, &sides.place}) *each *= size_of(dtype);
  return sides;
}

std::string MovementCell::to_string() const {
  return fmt::format(
      "{} {} {} {} buffers={} {} dtype={} count={} offsets={},{}{} root={} blocks={} threads={} "
      "counts={} seed={}",
      tutti::to_string(collective), algorithm.empty() ? "auto" : algorithm, ranks,
      tutti::test::to_string(kind), tutti::test::to_string(buffers), tutti::test::to_string(mode),
      tutti::to_string(dtype), count, input_offset, output_offset, in_place ? " in place" : "",
      root, blocks, threads, counts_on_device ? "device" : "host", seed);
}

std::vector<MovementCell> MovementSpace::selection() const {
  const auto size = [](const auto& values) { return static_cast<int>(std::size(values)); };
  const std::vector<int> sizes = {size(algorithms),
                                  size(kinds),
                                  size(ranks),
                                  size(kAllBufferKinds),
                                  size(kAllModes),
                                  size(kDtypes),
                                  size(kCounts),
                                  size(kInputOffsets),
                                  size(kOutputOffsets),
                                  2,
                                  kRoots,
                                  size(kGrids),
                                  2};
  const auto has_no_device_counts = [&](const Combination& c) {
    const auto row = c[kAlgorithm] == kAny
                         ? nullptr
                         : row_of(collective, algorithms[static_cast<std::size_t>(c[kAlgorithm])]);
    return c[kCount] != kAny && kCounts[c[kCount]] == 0 ? true
                                                        : row != nullptr && row->counts_on_host;
  };
  const auto allowed = [&](const Combination& c) {
    if (!buffers_fit(backend, c)) return false;
    if (c[kInPlace] == 1 && (!has_in_place(collective) || c[kSource] == 1)) return false;
    if (c[kSource] == 1 && (!is_uneven(collective) || has_no_device_counts(c))) return false;
    if (c[kRoot] > kFirst && !has_root(collective)) return false;
    const std::size_t least = c[kDtype] == kAny ? 1 : size_of(kDtypes[c[kDtype]]);
    const int rank_count = c[kRanks] == kAny ? 1 : ranks[static_cast<std::size_t>(c[kRanks])];
    const std::size_t count = c[kCount] == kAny ? 0 : kCounts[c[kCount]];
    return count * least * static_cast<std::size_t>(rank_count) <= kMostBytes;
  };
  std::vector<MovementCell> cells;
  for (const Combination& c : pairwise(sizes, allowed, seed)) {
    const auto at = [&](Dimension d) { return static_cast<std::size_t>(c[d]); };
    cells.push_back({.collective = collective,
                     .algorithm = algorithms[at(kAlgorithm)],
                     .kind = kinds[at(kKind)],
                     .ranks = ranks[at(kRanks)],
                     .buffers = kAllBufferKinds[at(kBuffer)],
                     .mode = kAllModes[at(kMode)],
                     .dtype = kDtypes[at(kDtype)],
                     .count = kCounts[at(kCount)],
                     .input_offset = kInputOffsets[at(kInputOffset)],
                     .output_offset = kOutputOffsets[at(kOutputOffset)],
                     .in_place = c[kInPlace] == 1,
                     .root = root_at(c[kRoot], ranks[at(kRanks)]),
                     .blocks = kGrids[at(kGrid)].blocks,
                     .threads = kGrids[at(kGrid)].threads,
                     .seed = seed * 1000 + cells.size(),
                     .counts_on_device = c[kSource] == 1,
                     .counts_seed = seed * 1000 + cells.size()});
  }
  return cells;
}

}  // namespace tutti::test
