// tutti_weakened [--all]: controls of ThreadSanitizer. One body for each way to synchronise
// (barriers alone, packets, rings in one and in both directions), with --all every body of the
// catalogue, runs with each barrier left out, each release and each acquire made relaxed, each poll
// for packets and each clear of them left out, one at a time. Each time ThreadSanitizer or the
// check of the result must complain; with nothing taken away neither may.
//
// The schedule explorer (tests/laboratory) shows that every part of every protocol is needed. This
// shows that ThreadSanitizer would see it in the product's own code.
//
// The parent runs each case in a child: a process ends with its first race.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "executors/peer/host.hpp"
#include "operation/lengths.hpp"
#include "support/buffer_passing.hpp"
#include "support/children.hpp"
#include "support/host_world.hpp"
#include "support/ranks.hpp"
#include "support/uneven.hpp"

#if !defined(__SANITIZE_THREAD__)
#error "this program needs -fsanitize=thread"
#endif

namespace tutti::test {
namespace {

constexpr int kRanks = 3, kRounds = 4;  // of ranks, as many as the row takes
constexpr std::size_t kStagingBytes = 4096;
// Of floats: two passes through staging, or where that has halves, 4, and 7 where sums are staged:
// an odd number, so that the first pass of the next operation meets the half of the last one.
constexpr std::size_t kCount = 1700;
constexpr std::size_t kPushedCount = 1401;  // likewise, of three pieces
constexpr std::size_t kDealtCount = 2100;   // likewise: 7 passes in three slots, or 5 in halves
constexpr std::size_t kHidden = 340;        // five tokens; a pass ends within one
constexpr std::size_t kCopiedBytes = 1024;  // chunks of copy engines
constexpr int kRaceExitCode = 66;           // ThreadSanitizer's exit code
constexpr int kWrongExitCode = 40;
constexpr int kAttempts = 5;  // at schedules in which what is missing shows

struct Case {
  const Algorithm* row;
  Buffers buffers;
  ProtocolMutation weakening;
  std::string name;
};

bool normalises(const Algorithm& row) {
  return row.collective == Collective::kAllReduceResidualRmsNorm;
}
// Whole pieces of all ranks, where it moves those; where they are pushed through staging, in 3
// passes.
std::size_t count_of(const Algorithm& row) {
  if (has_root(row.collective) && !has_pieces(row.collective)) return kDealtCount;
  if (has_pieces(row.collective) && stages_in_halves(row)) return kPushedCount;
  return has_pieces(row.collective) ? kCount - kCount % ranks_for(row, kRanks) : kCount;
}
// Uneven pieces are others in each round.
UnevenCounts counts_of(const Algorithm& row, int rank, int round) {
  const int ranks = ranks_for(row, kRanks);
  return {row.collective, count_of(row) / static_cast<std::size_t>(ranks),
          static_cast<std::uint64_t>(round) + 3, rank, ranks};
}
Sides sides_of(const Algorithm& row, int rank, int round) {
  if (is_uneven(row.collective)) return counts_of(row, rank, round).sides(row.collective, rank);
  return sides_of(row.collective, count_of(row), rank, ranks_for(row, kRanks));
}
Extent extent_of(const Algorithm& row) {
  const std::size_t token = normalises(row) ? kHidden * sizeof(float) : 0;
  return {count_of(row) * sizeof(float), ranks_for(row, kRanks), token};
}

// What a normalisation works with besides; unused by others. In place, the residual's sum is stored
// where the residual was, and the result where the input was.
class Matrices {
 public:
  void prepare(const Case& test, KernelArgs& work) {
    if (!normalises(*test.row)) return;
    const bool in_place = test.buffers == Buffers::kInPlace;
    auto* const residual = in_place ? reinterpret_cast<float*>(work.output) : residual_.data();
    result_ = in_place ? reinterpret_cast<float*>(const_cast<std::byte*>(work.input))
                       : normalised_.data();
    for (std::size_t i = 0; i < kCount; ++i) residual[i] = residual_at(i);
    work.packets.slot_bytes =
        packet_use(*test.row, extent_of(*test.row), DataType::kFloat32).slot_bytes;
    work.norm = {.residual = reinterpret_cast<const std::byte*>(residual),
                 .weight = reinterpret_cast<const std::byte*>(weight_.data()),
                 .output = reinterpret_cast<std::byte*>(result_),
                 .tokens = static_cast<std::uint32_t>(kCount / kHidden),
                 .hidden = kHidden,
                 .epsilon = 0,
                 .output_dtype = DataType::kFloat32,
                 .scale = 1};
  }
  static float residual_at(std::size_t i) { return static_cast<float>(i % 13) + 1; }

  // Of residual_output, which is right.
  bool is_normalised(const float* added) const {
    bool right = true;
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t first = i / kHidden * kHidden;
      double squares = 0;
      for (std::size_t k = first; k < first + kHidden; ++k) squares += double{added[k]} * added[k];
      const double wanted = added[i] * weight_[i - first] / std::sqrt(squares / kHidden);
      right = right && std::abs(result_[i] - wanted) <= 1e-5 * wanted;
    }
    return right;
  }

 private:
  std::vector<float> residual_ = std::vector<float>(kCount);
  std::vector<float> normalised_ = std::vector<float>(kCount);
  std::vector<float> weight_ = std::vector<float>(kHidden, 1.5F);
  float* result_ = nullptr;
};

// Where ranks tell each other counts, those of every other round lie on the device.
class Counts {
 public:
  void prepare(const Case& test, int round, KernelArgs& work) {
    const Algorithm& row = *test.row;
    if (!is_uneven(row.collective)) return;
    UnevenCounts all = counts_of(row, work.rank, round);
    given_ = all.sent;
    Lengths lengths{.sent = std::move(all.sent), .taken = std::move(all.taken)};
    const bool may_be = row.publishes_counts && test.buffers != Buffers::kInPlace;
    if (may_be && round % 2 == 1) lengths = {.on_device = {given_.data(), nullptr, kCount}};
    counts_ = lengths.counts(row.collective, DataType::kFloat32);
    work.counts = &counts_;
  }

 private:
  std::vector<std::size_t> given_;
  PieceCounts counts_{};
};

// What pushes through staging stages its sums in every other round: the first barrier of a round is
// there for those who still copy sums of the one before.
KernelArgs work_for(HostWorld& world, int rank, const Case& test, int round) {
  const auto& [row, buffers, weakening, name] = test;
  const bool turns = row->pushes_through_staging && round % 2 == 1;
  const std::size_t moved = size_of(moved_as(row->collective, DataType::kFloat32));
  const std::size_t count = count_of(*row) * sizeof(float) / moved;
  KernelArgs work = world.work(rank, count, is_staged(*row, buffers) != turns);
  work.ring = ring_slots(*row, kStagingBytes, work.blocks, 0);
  work.chunk_bytes = kCopiedBytes;
  work.norm.hidden = static_cast<std::uint32_t>(row_length(*row, count_of(*row), world.ranks()));
  const bool own_slots = has_root(row->collective) || is_uneven(row->collective);
  if (own_slots && row->packets != nullptr) {
    work.packets.slot_bytes = packet_use(*row, extent_of(*row), DataType::kFloat32).slot_bytes;
  }
  work.root = root_of(row->collective, round, world.ranks());
  if (!has_input(row->collective, rank, work.root)) work.input = nullptr;
  if (!has_output(row->collective, rank, work.root)) work.output = nullptr;
  if (buffers != Buffers::kInPlace || normalises(*row)) return work;
  const Sides sides = sides_of(*row, rank, round);
  if (sides.input > sides.output || row->collective == Collective::kReduceScatterV) {
    work.output = world.input<std::byte>(rank) + sides.place * sizeof(float);
    return work;
  }
  for (int r = 0; r < world.ranks(); ++r) {
    work.inputs.at[r] =
        reinterpret_cast<std::byte*>(world.output<float>(r) + sides_of(*row, r, round).place);
  }
  work.input = work.inputs.at[rank];
  return work;
}

// What comes to place i of rank `rank`'s output.
template <class Value>
float moved(const Case& test, int rank, int root, int round, std::size_t i, const Value& value) {
  for (int r = 0; is_uneven(test.row->collective) && r < kRanks; ++r) {
    const std::vector<std::size_t> sent = counts_of(*test.row, r, round).sent;
    const std::size_t count = sent[static_cast<std::size_t>(rank)];
    const bool each = test.row->collective == Collective::kAllToAllV;
    if (i < count) return value(r, (each ? UnevenCounts::before(sent, rank) : 0) + i);
    i -= count;
  }
  if (root_side(test.row->collective) == RootSide::kInput) return value(root, i);
  const std::size_t piece = count_of(*test.row) / ranks_for(*test.row, kRanks);
  const bool own = test.row->collective == Collective::kAllToAll;  // else everybody's is the same
  return value(static_cast<int>(i / piece), (own ? rank * piece : 0) + i % piece);
}

// What a rank wrote before a barrier, others read behind it: of two words by turns, since a rank
// may be ahead by one.
bool meet(HostWorld& world, int rank, const Case& test) {
  const HostBody body = test.row->host(DataType::kFloat32, OpKind::kSum);
  bool right = true;
  for (int round = 0; round < kRounds; ++round) {
    const auto value = [&](int r) { return round * 5 + r + 1; };
    world.input<int>(rank)[round % 2] = value(rank);
    const KernelArgs work = work_for(world, rank, test, round);
    if (run_on_host(body, work, &test.weakening) != Outcome::kDone) return false;
    for (int r = 0; r < world.ranks(); ++r) {
      right = right && world.input<int>(r)[round % 2] == value(r);
    }
  }
  return right;
}

// Where there is a root, who sends comes late, to the operation and to each barrier: the others
// look at what lies there from before. And nobody is at the next barrier before the others have
// seen the last one: what that releases would make up for what this one did not.
thread_local bool sends = false;

void wait_to_send(const Case& test, const KernelArgs& work) {
  if (!has_root(test.row->collective)) return;
  const bool from_root = root_side(test.row->collective) == RootSide::kInput;
  sends = from_root == (work.rank == work.root);
  std::this_thread::sleep_for(std::chrono::milliseconds(sends ? 10 : 5));
}

void wait_to_arrive(int, int) {
  if (sends) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

// A few operations in a row, with fresh data each. False where a result is wrong.
bool run_rank(HostWorld& world, int rank, const Case& test) {
  if (test.row->collective == Collective::kBarrier) return meet(world, rank, test);
  const HostBody body = test.row->host(DataType::kFloat32, OpKind::kSum);
  const bool normalised = normalises(*test.row);
  Matrices matrices;
  Counts counts;
  bool right = true;
  for (int round = 0; round < kRounds; ++round) {
    KernelArgs work = work_for(world, rank, test, round);
    matrices.prepare(test, work);
    counts.prepare(test, round, work);
    const Sides sides = sides_of(*test.row, rank, round);
    auto* const input = reinterpret_cast<float*>(const_cast<std::byte*>(work.input));
    const auto* const output = reinterpret_cast<const float*>(work.output);
    const auto value = [&](int r, std::size_t i) {
      return static_cast<float>((static_cast<std::size_t>(round * 5 + r) + i) % 100);
    };
    for (std::size_t i = 0; input != nullptr && i < sides.input; ++i) input[i] = value(rank, i);
    wait_to_send(test, work);
    if (run_on_host(body, work, &test.weakening) != Outcome::kDone) return false;
    if (test.row->then.host != nullptr) {
      const HostBody then = test.row->then.host(DataType::kFloat32, OpKind::kSum);
      if (run_on_host(then, work) != Outcome::kDone) return false;
    }
    for (std::size_t i = 0; output != nullptr && i < sides.output; ++i) {
      float expected = normalised ? Matrices::residual_at(i) : 0;
      const std::size_t first = sides.input > sides.output ? sides.place : 0;
      const std::size_t at =
          in_message(*test.row, count_of(*test.row), rank, world.ranks(), first, i);
      for (int r = 0; r < world.ranks(); ++r) expected += value(r, at);
      if (!reduces(test.row->collective))
        expected = moved(test, rank, work.root, round, first + i, value);
      right = right && output[i] == expected;
    }
    if (normalised) right = right && matrices.is_normalised(output);
  }
  return right;
}

void run_case(const Case& test) {
  const std::size_t longest = std::max(kCount, kDealtCount);
  HostWorld world(ranks_for(*test.row, kRanks), longest * sizeof(float), kStagingBytes);
  std::atomic<bool> right = true;
  on_all_ranks(world.ranks(), [&](int rank) {
    if (!run_rank(world, rank, test)) right = false;
  });
  if (!right) ::_exit(kWrongExitCode);
}

// How many barriers one operation passes.
int count_barriers(const Algorithm& row, Buffers buffers) {
  static std::atomic<int> highest;
  highest = -1;
  Case test{&row, buffers, {}, {}};
  test.weakening.before_barrier = [](int, int barrier) {
    int seen = highest.load();
    while (barrier > seen && !highest.compare_exchange_weak(seen, barrier)) {
    }
  };
  run_case(test);
  return highest + 1;
}

// Of an operation whose data travels in packets.
int parts_of(const Algorithm& row) {
  return packet_use(row, extent_of(row), DataType::kFloat32).slots / (ranks_for(row, kRanks) - 1);
}

std::vector<Case> cases_of(const Algorithm& row, Buffers buffers, int barriers) {
  std::vector<Case> cases;
  const auto add = [&](ProtocolMutation weakening, std::string what) {
    weakening.before_barrier = wait_to_arrive;
    cases.push_back(
        {&row, buffers, weakening, fmt::format("{}, {}: {}", row.id, to_string(buffers), what)});
  };
  add({}, "nothing taken away");
  for (int k = 0; k < barriers; ++k) {
    add({.skip_barrier = 1u << k}, fmt::format("without barrier {} of {}", k, barriers));
    add({.no_release = 1u << k}, fmt::format("without the release of barrier {}", k));
    add({.no_acquire = 1u << k}, fmt::format("without the acquire of barrier {}", k));
  }
  for (int k = 0; k < parts_of(row); ++k) {
    add({.no_poll = 1u << k}, fmt::format("without the polls of part {}", k));
    add({.no_clear = 1u << k}, fmt::format("without the clears of part {}", k));
  }
  // Through slots what nobody adds to goes one way.
  const bool one_way = row.collective == Collective::kAllGather && is_staged(row, buffers);
  const int ways = std::min(row.ring_directions, one_way ? 1 : 2);
  for (int way = 0; way < ways; ++way) {
    const unsigned bit = 1u << way;
    add({.no_chunk_wait = bit}, fmt::format("without waits for chunks, direction {}", way));
    add({.no_chunk_release = bit}, fmt::format("without releases of chunks, direction {}", way));
    add({.no_chunk_acquire = bit}, fmt::format("without acquires of chunks, direction {}", way));
  }
  const bool in_slots = is_staged(row, buffers) || !row.peers_write_output;
  if (row.ring_directions > 0 && in_slots) {
    add({.no_credit_wait = 1}, "without waits for credits");
    add({.no_credit_release = 1}, "without releases of credits");
    add({.no_credit_acquire = 1}, "without acquires of credits");
  }
  return cases;
}

// What the parent needs from a child is a number or an end.
Children::Child run_child(const std::function<void(Wire&)>& function, bool quiet) {
  Children children(1, [&](int, Wire& parent) {
    if (quiet && std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(kChildFailed);
    function(parent);
  });
  Children::Child child;
  for (const auto& ended : children.finish(std::chrono::seconds(120))) {
    child.ended = ended.ended;
    child.wait_status = ended.wait_status;
    child.took_too_long = ended.took_too_long;
    child.lines = ended.lines;
  }
  return child;
}

enum class Verdict { kNoComplaint, kRace, kWrongResult };

Verdict verdict_of(const Children::Child& child) {
  if (!WIFEXITED(child.wait_status)) return Verdict::kNoComplaint;
  switch (WEXITSTATUS(child.wait_status)) {
    case kRaceExitCode:
      return Verdict::kRace;
    case kWrongExitCode:
      return Verdict::kWrongResult;
    default:
      return Verdict::kNoComplaint;
  }
}

bool takes_something_away(const ProtocolMutation& taken) {
  return (taken.skip_barrier | taken.no_release | taken.no_acquire | taken.no_poll |
          taken.no_clear | taken.no_chunk_wait | taken.no_chunk_release | taken.no_chunk_acquire |
          taken.no_credit_wait | taken.no_credit_release | taken.no_credit_acquire) != 0;
}

// That something is missing can be seen in some schedules only: a machine that is busy may run one
// in which all is in order by luck. What is whole must be in order the first time.
bool run_and_judge(const Case& test) {
  const bool weakened = takes_something_away(test.weakening);
  const int attempts = weakened ? kAttempts : 1;
  Children::Child child;
  Verdict verdict = Verdict::kNoComplaint;
  for (int i = 0; i < attempts && verdict == Verdict::kNoComplaint; ++i) {
    child = run_child([&](Wire&) { run_case(test); }, weakened);
    verdict = verdict_of(child);
  }
  const bool as_it_should = weakened ? verdict != Verdict::kNoComplaint : child.succeeded();
  fmt::print("{} {}: {}\n", as_it_should ? "passed" : "FAILED", test.name,
             verdict == Verdict::kRace ? "a race was reported"
             : verdict == Verdict::kWrongResult
                 ? "a result was wrong"
                 : "no complaint, the process " + child.describe_end());
  std::fflush(stdout);
  return as_it_should;
}

int barriers_in_child(const Algorithm& row, Buffers buffers) {
  const Children::Child child = run_child(
      [&](Wire& parent) { parent.say(std::to_string(count_barriers(row, buffers))); }, false);
  return child.succeeded() && !child.lines.empty() ? std::atoi(child.lines.back().c_str()) : 0;
}

// Every row that has a body, or the first one of each way to synchronise.
std::vector<const Algorithm*> rows_to_run(bool all) {
  std::vector<const Algorithm*> rows;
  std::set<std::tuple<bool, bool, int>> seen;
  for (const Algorithm& row : catalogue()) {
    if (row.host == nullptr || row.sends_messages) continue;
    const bool is_new =
        seen.emplace(only_meets(row), row.packets != nullptr, row.ring_directions).second;
    if (is_new || all) rows.push_back(&row);
  }
  return rows;
}

// All that the row takes, or those with most to take away: with staging, where it has any.
std::vector<Buffers> buffers_to_run(const Algorithm& row, bool all) {
  if (!all && runs(row, Buffers::kStaged)) return {Buffers::kStaged};
  std::vector<Buffers> taken;
  for (const Buffers buffers : kAllBuffers) {
    if (runs(row, buffers)) taken.push_back(buffers);
  }
  return taken;
}

int run(bool all) {
  int passed = 0, failed = 0;
  for (const Algorithm* const each : rows_to_run(all)) {
    const Algorithm& row = *each;
    for (const Buffers buffers : buffers_to_run(row, all)) {
      const int barriers = barriers_in_child(row, buffers);
      if (barriers == 0 && parts_of(row) == 0) {
        ++failed;
        fmt::print("FAILED {}, {}: no barriers were counted\n", row.id, to_string(buffers));
      }
      for (const Case& test : cases_of(row, buffers, barriers)) {
        ++(run_and_judge(test) ? passed : failed);
      }
    }
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed > 0 || passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  const bool all = argc == 2 && std::string_view(argv[1]) == "--all";
  if (argc > 1 && !all) {
    std::fprintf(stderr, "usage: tutti_weakened [--all]\n");
    return 2;
  }
  return tutti::test::run(all);
}
