// Negative controls of the protocols on GPUs: with any barrier of any row left out, packets taken
// unseen or left where they were, and ranks delayed at random, data must come out wrong; with all
// in place it must not. Whether the absence of a release or an acquire shows depends on the
// hardware: that is printed, and no test.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "base/bytes.hpp"
#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "conformance/gpu/weakened.hpp"
#include "device/kernel_args.hpp"
#include "drivers/cuda.hpp"
#include "executors/copy_engine/cuda_stages.hpp"
#include "support/check.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kCount = 64 * 1024;  // one pass through staging
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr int kBlocks = 16, kThreads = 256, kBarriersOfARow = 2;
// Operations. What must not go wrong is tried `kTries` times, what must go wrong more often: most
// of it does within the first few.
constexpr int kTriesTogether = 10, kTries = 60, kTriesOfWeakened = 300;
constexpr std::size_t kRingChunk = 1024;
using Clock = std::chrono::steady_clock;

// Where the barriers begin that these operations need. The first one of what pushes through staging
// is there for operations of other kinds before.
int first_barrier_of(const Algorithm& row) { return row.pushes_through_staging ? 1 : 0; }

// One rank's memory for kernels that no communicator starts.
class Bare {
 public:
  explicit Bare(Rank& rank)
      : rank_(rank),
        cuda_(*rank.device.cuda()),
        stream_(rank.device),
        shared_(take(rank.group.allocate(offset_of_part(3) + packet_bytes(rank)))),
        private_(rank.device, kPrivateBytes),
        host_(take(cuda_.allocate_mapped_host(kHostBytes))) {
    std::memset(host_, 0, kHostBytes);
    Bytes zeros(kPrivateBytes);
    rank.device.write(private_.get(), zeros.data(), zeros.size());
    const Control control{.poison = 0, .claimed = 0, .timeout_ns = 5'000'000'000};
    rank.device.write(private_.get(), reinterpret_cast<const std::byte*>(&control), sizeof control);
    zeros.resize(packet_bytes(rank));  // no packet is there yet
    rank.device.write(part(rank.number(), 3), zeros.data(), zeros.size());
  }
  ~Bare() { (void)cuda_.free_mapped_host(host_); }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  Stream stream() const { return stream_.get(); }
  std::byte* input() { return part(rank_.number(), 1); }
  std::byte* output() { return part(rank_.number(), 2); }

  KernelArgs work(const Algorithm& row, bool staged) {
    KernelArgs work{};
    work.count = kCount;
    work.rank = rank_.number();
    work.ranks = rank_.size();
    work.blocks = kBlocks;
    work.signature = 0x600d;
    work.input = input();
    work.output = output();
    work.stage_input = work.stage_output = staged;
    work.staging_bytes = kBytes;
    for (int r = 0; r < rank_.size(); ++r) {
      const int next = (rank_.number() + 1 + r) % rank_.size();
      work.channels.at[r] = static_cast<std::byte*>(shared_.peer(r));
      work.staging.at[r] = part(r, 0);
      work.inputs.at[r] = part(r, 1);
      work.outputs.at[r] = part(next, staged ? 0 : 2);
      work.packets.memory.at[r] = part(next, 3);
    }
    work.packets.generation_bytes = generation_bytes(rank_);
    work.packets.slot_bytes =
        packet_use(row, {kCount * sizeof(float), rank_.size()}, DataType::kFloat32).slot_bytes;
    work.ring = ring_slots(row, kBytes, kBlocks, kRingChunk);
    work.packets.launches = reinterpret_cast<std::uint64_t*>(private_.get() + 128);
    work.control = reinterpret_cast<Control*>(private_.get());
    work.epochs = reinterpret_cast<std::uint64_t*>(private_.get() + 256);
    work.failure = reinterpret_cast<FailureRecord*>(host_);
    work.notices = reinterpret_cast<std::uint32_t*>(host_ + kHostBytes / 2);
    work.divisor = 1;
    return work;
  }

  bool failed() const { return reinterpret_cast<const FailureRecord*>(host_)->state != 0; }
  std::uint32_t reason() const { return reinterpret_cast<const FailureRecord*>(host_)->reason; }

 private:
  static constexpr std::size_t kHostBytes = 4096;
  static constexpr std::size_t kPrivateBytes = 256 + kMaxBlocks * sizeof(std::uint64_t);

  // Staging, input, output, packets.
  std::byte* part(int rank, std::size_t index) {
    return static_cast<std::byte*>(shared_.peer(rank)) + offset_of_part(index);
  }
  static std::size_t offset_of_part(std::size_t index) {
    return round_up(sizeof(ChannelMemory), 256) + index * kBytes;
  }
  // For a slot per rank that holds all, and as many again.
  static std::size_t generation_bytes(const Rank& rank) {
    return 2 * kBytes * static_cast<std::size_t>(rank.size());
  }
  static std::size_t packet_bytes(const Rank& rank) {
    return sizeof(PacketMemory) + kPacketGenerations * generation_bytes(rank);
  }

  Rank& rank_;
  CudaDriver& cuda_;
  OwnedStream stream_;
  SymmetricMemory shared_;
  OwnedMemory private_;
  std::byte* host_;
};

// Over all ranks, which have ended what they did before.
int sum_over_ranks(Rank& rank, int mine) {
  const OwnedMemory memory(rank.device, sizeof mine);
  const OwnedStream stream(rank.device);
  rank.device.write(memory.get(), reinterpret_cast<const std::byte*>(&mine), sizeof mine);
  require_ok(all_reduce(rank.group, {.input = memory.get(),
                                     .output = memory.get(),
                                     .count = 1,
                                     .dtype = DataType::kInt32,
                                     .stream = stream.get()}));
  stream.wait();
  rank.device.read(reinterpret_cast<std::byte*>(&mine), memory.get(), sizeof mine);
  return mine;
}

// Operations of one row with fresh data, some ranks delayed at random.
class Trials {
 public:
  Trials(Rank& rank, const Algorithm& row, bool staged)
      : rank_(rank), row_(row), staged_(staged), bare_(rank), lanes_(*rank.device.cuda()) {
    require_ok(rank.device.cuda()->load_kernel(weakened_kernel(row), row.shared_bytes));
    if (row.program != nullptr) require_ok(lanes_.create(rank.group.device()));
  }

  // Whether one of `tries` operations came out wrong on some rank. The same on every rank.
  bool go_wrong(const CudaWeakening& weakening, int tries) {
    for (int done = 0; done < tries; done += kTriesTogether) {
      if (sum_over_ranks(rank_, count_wrong(weakening)) > 0) return true;
    }
    return false;
  }

 private:
  int count_wrong(CudaWeakening weakening) {
    int wrong = 0;
    (void)take(rank_.group.allocate(256));  // the ranks begin together
    for (int attempt = 0; attempt < kTriesTogether; ++attempt) {
      ++round_;
      delay_at_random(weakening);
      run_once(weakening);
      wrong += is_wrong();
    }
    return wrong;
  }

  // One place of each operation is slow on this rank, or none.
  void delay_at_random(CudaWeakening& weakening) {
    std::fill(std::begin(weakening.before_arrival_ns), std::end(weakening.before_arrival_ns), 0u);
    std::fill(std::begin(weakening.before_wait_ns), std::end(weakening.before_wait_ns), 0u);
    // Also about a barrier that is not taken away: behind it begins what the next one is there for.
    const int barriers = first_barrier_of(row_) + kBarriersOfARow;
    const auto ns = static_cast<std::uint32_t>(delay_ns_ + random_() % (3 * delay_ns_));
    const int pick = static_cast<int>(random_() % (2 * static_cast<unsigned>(barriers) + 2));
    if (pick < barriers) {
      weakening.before_arrival_ns[pick] = ns;
    } else if (pick < 2 * barriers) {
      weakening.before_wait_ns[pick - barriers] = ns;
    } else if (pick == 2 * barriers) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    }
  }

  float value(int rank, std::size_t i) const {
    return static_cast<float>((round_ * 7 + static_cast<std::uint64_t>(rank) * 3 + i) % 1024);
  }

  // Copies go through the rank's own stream: the one that all ranks of a process share may wait for
  // another rank's kernel.
  void run_once(const CudaWeakening& weakening) {
    const Clock::time_point start = Clock::now();
    require(set_weakening(rank_.number(), weakening, bare_.stream()),
            "the weakening could not be set");
    for (std::size_t i = 0; i < kCount; ++i) values_[i] = value(rank_.number(), i);
    CudaDriver& cuda = *rank_.device.cuda();
    require_ok(cuda.copy_async(bare_.input(), values_.data(), kBytes, bare_.stream()));
    const CudaBody body{
        .kernel = weakened_kernel(row_), .threads = kThreads, .shared_bytes = row_.shared_bytes};
    launch(body, bare_.work(row_, staged_));
    busy_ += Clock::now() - start;
    delay_ns_ = std::clamp<std::uint64_t>(busy_.count(), delay_ns_, kLongestDelayNs);
    rank_.device.wait(bare_.stream());
    busy_ = {};
    require(!bare_.failed(), fmt::format("{} failed, for reason {}", row_.id, bare_.reason()));
  }

  void launch(const CudaBody& body, const KernelArgs& work) {
    CudaDriver& cuda = *rank_.device.cuda();
    if (row_.program == nullptr) {
      return require_ok(launch_on_cuda(cuda, body, work, bare_.stream()));
    }
    CudaStages stages(cuda, body, *take(lanes_.lane_for(bare_.stream())), bare_.stream());
    row_.program(stages, work, sizeof(float));
    require_ok(stages.finish());
  }

  bool is_wrong() {
    const Clock::time_point start = Clock::now();
    require_ok(
        rank_.device.cuda()->copy_async(values_.data(), bare_.output(), kBytes, bare_.stream()));
    rank_.device.wait(bare_.stream());
    bool wrong = false;
    for (std::size_t i = 0; i < kCount; ++i) {
      float expected = 0;
      for (int r = 0; r < rank_.size(); ++r) expected += value(r, i);
      wrong = wrong || values_[i] != expected;
    }
    busy_ += Clock::now() - start;
    return wrong;
  }

  Rank& rank_;
  const Algorithm& row_;
  bool staged_;
  Bare bare_;
  CopyLanes lanes_;
  std::vector<float> values_ = std::vector<float>(kCount);
  // A rank must be delayed for longer than another one needs from one operation to the next: else
  // that one comes too late to do harm.
  static constexpr std::uint64_t kLongestDelayNs = 2'000'000;
  std::uint64_t delay_ns_ = 500'000;  // at least
  std::chrono::nanoseconds busy_{};   // this rank, since its last operation ended
  std::uint64_t round_ = 0;
  std::mt19937_64 random_{static_cast<std::uint64_t>(rank_.number()) + 17};
};

// Prints whether the absence of a release or an acquire shows. Ranks that share a GPU see each
// other's memory through one cache, which says nothing of GPUs that do not: they skip this.
void observe(Rank& rank, Trials& trials, const std::string& what, const CudaWeakening& weakening) {
  if (rank.shares_gpu()) return;
  const bool shows = trials.go_wrong(weakening, kTries);
  if (rank.number() != 0) return;
  fmt::print("   {}: {}\n", what, shows ? "shows" : "not observable on this hardware");
}

std::string name_of(const Algorithm& row, bool staged) {
  return fmt::format("{}, {}", row.id, staged ? "staged" : "direct");
}

void control_row(Rank& rank, const Algorithm& row, bool staged) {
  Trials trials(rank, row, staged);
  const std::string name = name_of(row, staged);
  require(!trials.go_wrong({}, kTries), name + ": wrong data with every barrier in place");
  const int first = first_barrier_of(row);
  for (int barrier = first; barrier < first + kBarriersOfARow; ++barrier) {
    const std::uint32_t bit = 1u << barrier;
    require(trials.go_wrong({.skip_barrier = bit}, kTriesOfWeakened),
            fmt::format("{}: nothing is wrong without barrier {}", name, barrier));
    observe(rank, trials, fmt::format("{}, without the release of barrier {}", name, barrier),
            {.no_release = bit});
    observe(rank, trials, fmt::format("{}, without the acquire of barrier {}", name, barrier),
            {.no_acquire = bit});
  }
  require(!trials.go_wrong({}, kTries), name + ": wrong data after the controls");
}

// Each kernel between copies has one barrier at most. That copies and kernels wait for each other
// is tested where there is no GPU (tests/unit/algorithms/copy_engine_test.cpp).
void control_copies(Rank& rank, const Algorithm& row, bool staged) {
  Trials trials(rank, row, staged);
  const std::string name = name_of(row, staged);
  require(!trials.go_wrong({}, kTries), name + ": wrong data where kernels meet");
  require(trials.go_wrong({.skip_barrier = 1}, kTriesOfWeakened),
          name + ": nothing is wrong where not");
  observe(rank, trials, name + ", without releases", {.no_release = 1});
  observe(rank, trials, name + ", without acquires", {.no_acquire = 1});
  require(!trials.go_wrong({}, kTries), name + ": wrong data after the controls");
}

// Each weakening leaves packets behind, so each has memory of its own.
void control_packets(Rank& rank, const Algorithm& row) {
  const auto go_wrong = [&](const CudaWeakening& weakening, int tries) {
    return Trials(rank, row, false).go_wrong(weakening, tries);
  };
  require(!go_wrong({}, kTries), fmt::format("{}: wrong data with every poll in place", row.id));
  require(go_wrong({.no_polls = true}, kTriesOfWeakened),
          fmt::format("{}: nothing is wrong unseen", row.id));
  require(go_wrong({.no_emptying = true}, kTriesOfWeakened),
          fmt::format("{}: nothing is wrong of old", row.id));
}

// With two ranks there is no need of credits: whoever sends has what was sent two steps before.
void control_ring(Rank& rank, const Algorithm& row, bool staged) {
  const auto go_wrong = [&](const CudaWeakening& weakening, int tries) {
    return Trials(rank, row, staged).go_wrong(weakening, tries);
  };
  const std::string name = name_of(row, staged);
  require(!go_wrong({}, kTries), name + ": wrong data with every wait in place");
  require(go_wrong({.no_polls = true}, kTriesOfWeakened), name + ": nothing is wrong unseen");
  Trials trials(rank, row, staged);
  observe(rank, trials, name + ", without the release of chunks", {.no_release = 2});
}

void every_protocol_is_needed(Rank& rank) {
  if (rank.shares_gpu() && rank.spec.kind == RankKind::kProcesses) {
    // Who writes too early does so when the other's kernel has ended or has not begun.
    return fmt::print("skipped: processes that share a GPU do not run at the same time\n");
  }
  for (const Algorithm& row : rows_of(Collective::kAllReduce)) {
    if (row.cuda == nullptr) continue;
    require(weakened_kernel(row) != nullptr,
            fmt::format("{} has no weakened kernel: add it to weakened.cu", row.id));
    if (row.packets != nullptr) {
      control_packets(rank, row);
      continue;
    }
    for (const bool staged : {false, true}) {
      if (row.ring_directions > 0) {
        control_ring(rank, row, staged);
      } else if (row.program != nullptr) {
        control_copies(rank, row, staged);
      } else {
        control_row(rank, row, staged);
      }
    }
  }
}

constexpr Scenario kControls[] = {
    {"every_protocol_is_needed", 2, std::chrono::milliseconds(10000), every_protocol_is_needed},
};

}  // namespace

std::span<const Scenario> protocol_controls() { return kControls; }

}  // namespace tutti::test
