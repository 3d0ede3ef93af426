#include "laboratory/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tutti::laboratory {
namespace {

using simulated::Breach;

// Chunks of one tile: small messages take many.
constexpr std::size_t kChunkBytes = 16, kRingBytes = 2 * kStagingBytes;
constexpr std::size_t kCanaryWords = 8;  // before and behind each buffer
constexpr float kCanary = 12345.5f;
constexpr float kPoison = -98765.5f;
constexpr float kEpsilon = 0.5F;
constexpr std::uint64_t kManyLaunches = std::uint64_t{1} << 47;  // nearly all that a word can count

// Tokens of one, two or three tiles; 0 where the collective knows none.
std::size_t hidden_of(const Setup& setup) {
  if (setup.row->collective != Collective::kAllReduceResidualRmsNorm) return 0;
  return 4 + 4 * (setup.count % 3);
}

// What counts are whole multiples of.
std::size_t unit_of(const Setup& setup) {
  if (const std::size_t hidden = hidden_of(setup); hidden > 0) return hidden;
  return has_pieces(setup.row->collective) ? static_cast<std::size_t>(setup.ranks) : 1;
}

// Weights repeat from token to token, and differ.
float weight_at(std::size_t i) { return 0.5F + static_cast<float>(i % 5); }
float residual_at(int operation, std::size_t i) {
  return static_cast<float>((static_cast<std::size_t>(operation) * 11 + 3 * i) % 17) - 8;
}

// A buffer between two canaries.
class Guarded {
 public:
  explicit Guarded(std::size_t words) : words_(words), all_(words + 2 * kCanaryWords) { clear(); }
  void clear() {
    std::fill(all_.begin(), all_.end(), kCanary);
    std::fill_n(data(), words_, kPoison);
  }
  float* data() { return all_.data() + kCanaryWords; }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(data()); }
  std::size_t words() const { return words_; }
  std::size_t size_bytes() const { return words_ * sizeof(float); }
  bool intact() const {
    const auto is_canary = [](float x) { return x == kCanary; };
    const auto tail = static_cast<std::ptrdiff_t>(kCanaryWords + words_);
    return std::all_of(all_.begin(), all_.begin() + kCanaryWords, is_canary) &&
           std::all_of(all_.begin() + tail, all_.end(), is_canary);
  }

 private:
  std::size_t words_;
  std::vector<float> all_;
};

}  // namespace

struct Experiment::Rank {
  Rank(const Sides& sides, std::size_t generation_bytes)
      : input(sides.input),
        output(sides.output),
        residual(sides.output),
        normalised(sides.output),
        weight(kMostHidden),
        staging(kRingBytes / sizeof(float)),
        packets((sizeof(PacketMemory) + kPacketGenerations * generation_bytes) / 8) {}

  static constexpr std::size_t kMostHidden = 12;

  Guarded input, output, residual, normalised, weight, staging;
  std::vector<std::uint64_t> packets;  // PacketMemory, and slots
  std::uint64_t launches = 0;
  ChannelMemory channel{};
  std::array<std::uint64_t, kMaxBlocks> epochs{};
  Control control{};
  FailureRecord failure{};
  std::uint32_t abort = 0;
  int ended = 0;     // blocks that have ended the current operation
  int started = 0;   // operations
  int followed = 0;  // of these, those whose second kernel may begin
  // When the stopped rank was woken.
  std::vector<float> output_then, staging_then;
  std::vector<std::uint64_t> epochs_then, packets_then;

  std::vector<float> output_now() { return {output.data(), output.data() + output.words()}; }
  std::vector<float> staging_now() { return {staging.data(), staging.data() + staging.words()}; }
  // What its flags say of every peer.
  std::vector<std::uint64_t> epochs_now(int blocks) const {
    std::vector<std::uint64_t> told;
    for (int b = 0; b < blocks; ++b) {
      for (const Flag& flag : channel.flags[b]) told.push_back(flag.epoch);
    }
    return told;
  }
};

std::string Setup::name() const {
  return fmt::format("{} ranks={} blocks={} count={} operations={} {} {}", row->id, ranks, blocks,
                     count, operations, to_string(buffers), tutti::to_string(op));
}

std::vector<Setup> all_setups() {
  struct Shape {
    int ranks, blocks;
    std::size_t count;
    OpKind op;
  };
  // Staging holds 64 floats, a tile 4: counts below and above both, none a multiple of anything.
  constexpr Shape kShapes[] = {
      {2, 1, 5, OpKind::kSum},  {2, 2, 21, OpKind::kSum},        {2, 1, 75, OpKind::kSum},
      {3, 1, 14, OpKind::kSum}, {3, 2, 131, OpKind::kPreMulSum}, {4, 2, 37, OpKind::kSum},
      {5, 1, 23, OpKind::kSum}, {2, 1, 0, OpKind::kSum},         {1, 2, 9, OpKind::kPreMulSum},
      {3, 3, 26, OpKind::kAvg}, {8, 1, 33, OpKind::kSum},        {2, 3, 70, OpKind::kPreMulSum},
  };
  std::vector<Setup> all;
  for (const Algorithm& row : catalogue()) {
    if (row.host == nullptr) continue;
    for (const Shape& shape : kShapes) {
      for (const Buffers buffers : kAllBuffers) {
        if (shape.ranks > row.max_ranks_host) continue;
        if (!runs(row, buffers) || !row.takes(DataType::kFloat32, shape.op)) continue;
        if (row.ring_directions > 1 && shape.ranks < 3) continue;  // the same as one way
        // What is longer only takes more passes through staging.
        constexpr std::size_t kLongest = 26;
        const std::size_t count =
            row.packets == nullptr ? shape.count : std::min(shape.count, kLongest);
        // Two operations around a ring take as many steps as many others do.
        const int operations = row.ring_directions > 0 ? 2 : 3;
        all.push_back({&row, shape.ranks, shape.blocks, count, operations, buffers, shape.op});
      }
    }
  }
  return all;
}

Experiment::Experiment(const Setup& setup)
    : setup_(setup),
      hidden_(hidden_of(setup)),
      body_(setup.row->host(DataType::kFloat32, setup.op)),
      simulation_(setup.ranks, setup.blocks) {
  const std::size_t unit = unit_of(setup);
  setup_.count = (setup_.count + unit - 1) / unit * unit;
  if (only_meets()) setup_.count = 2;
  const std::size_t bytes = packet_use().bytes();
  for (int r = 0; r < setup.ranks; ++r) {
    ranks_.push_back(std::make_unique<Rank>(sides(r), bytes));
  }
  lay_out();
}

Experiment::~Experiment() = default;

PacketUse Experiment::packet_use() const {
  PacketUse use = tutti::packet_use(
      *setup_.row, {setup_.count * sizeof(float), setup_.ranks, hidden_ * sizeof(float)},
      DataType::kFloat32);
  // Tiles are small here, and so are shares.
  use.slot_bytes = std::min(use.slot_bytes, (setup_.count * sizeof(float) + 255) / 256 * 256);
  return use;
}

void Experiment::lay_out() {
  simulated::WeakMemory& memory = simulation_.memory();
  for (int r = 0; r < setup_.ranks; ++r) {
    Rank& rank = *ranks_[static_cast<std::size_t>(r)];
    memory.add_data(rank.input.bytes(), rank.input.size_bytes(), fmt::format("input {}", r));
    memory.add_data(rank.output.bytes(), rank.output.size_bytes(), fmt::format("output {}", r));
    for (auto* each : {&rank.residual, &rank.normalised, &rank.weight}) {
      memory.add_data(each->bytes(), each->size_bytes(), fmt::format("matrix {}", r));
    }
    memory.add_data(rank.staging.bytes(), rank.staging.size_bytes(), fmt::format("staging {}", r));
    memory.add_data(reinterpret_cast<std::byte*>(rank.channel.scalars),
                    static_cast<std::size_t>(setup_.blocks) * sizeof(double),
                    fmt::format("scalars {}", r));
    const std::size_t flags = static_cast<std::size_t>(setup_.blocks) * kMaxRanks;
    memory.add_flags(&rank.channel.flags[0][0], flags);
    constexpr std::size_t kPerRing = sizeof(RingFlags) / sizeof(Flag);
    memory.add_flags(rank.channel.rings[0].chunks,
                     static_cast<std::size_t>(setup_.blocks) * kPerRing);
    memory.add_flags(reinterpret_cast<Flag*>(rank.packets.data()), flags);
    constexpr std::size_t kFirst = sizeof(PacketMemory) / sizeof(std::uint64_t);
    memory.add_packets(rank.packets.data() + kFirst, rank.packets.size() - kFirst);
  }
}

const FailureRecord& Experiment::failure(int rank) const {
  return ranks_[static_cast<std::size_t>(rank)]->failure;
}

bool Experiment::run(simulated::Schedule& schedule, const Options& options) {
  for (auto& rank : ranks_) {
    rank->input.clear();
    rank->output.clear();
    rank->staging.clear();
    rank->residual.clear();
    rank->normalised.clear();
    rank->weight.clear();
    rank->epochs.fill(options.first_epoch);
    rank->launches = LaunchWord::at(options.first_epoch % kManyLaunches);
    rank->control = {};
    rank->failure = {};
    rank->ended = rank->started = rank->followed = 0;
  }
  trace_ = {};
  simulation_.tell(options.story);
  simulation_.stop(options.stop.rank, options.stop.steps, [this, told = options.stop.told] {
    remember_all();
    if (told) poison_group();
  });
  const bool whole =
      simulation_.run(schedule, [&](int rank, int block) { run_block(rank, block, options); });
  if (whole) check_canaries();
  return whole;
}

void Experiment::remember_all() {
  for (auto& rank : ranks_) {
    rank->output_then = rank->output_now();
    rank->staging_then = rank->staging_now();
    rank->epochs_then = rank->epochs_now(setup_.blocks);
    rank->packets_then = rank->packets;
  }
}

// What a failure does to a group: each rank is told, and knows it before it launches anything more.
void Experiment::poison_group() {
  for (auto& rank : ranks_) rank->control.poison |= Control::kTold;
}

bool Experiment::changed_after_wake(Stop stop) const {
  const Rank* const own = ranks_[static_cast<std::size_t>(stop.rank)].get();
  return std::any_of(ranks_.begin(), ranks_.end(), [&](const std::unique_ptr<Rank>& rank) {
    if (rank.get() == own) return false;
    return rank->output_then != rank->output_now() || rank->staging_then != rank->staging_now() ||
           (stop.told && (rank->epochs_then != rank->epochs_now(setup_.blocks) ||
                          rank->packets_then != rank->packets));
  });
}

// --- what a block does ---

void Experiment::run_block(int index, int block, const Options& options) {
  Rank& rank = *ranks_[static_cast<std::size_t>(index)];
  const int fiber = simulation_.fiber_of(index, block);
  const HostBody then = setup_.row->then.host == nullptr
                            ? nullptr
                            : setup_.row->then.host(DataType::kFloat32, setup_.op);
  if (block == 0) between_operations(rank, index);
  for (int operation = 0; operation < setup_.operations; ++operation) {
    simulation_.wait_for_count(fiber, rank.started, operation + 1);
    Work work = work_for(index, operation);
    if (options.mismatch && index == 1) work.signature ^= 1;
    const bool traced = index == 0 && block == 0 && operation == 0;
    if (!run_kernel(body_, work, block, options, traced ? &trace_ : nullptr)) return;
    if (then != nullptr) {
      if (++rank.ended == setup_.blocks) between_kernels(rank, index);
      simulation_.wait_for_count(fiber, rank.followed, operation + 1);
      const bool begins = rank.control.poison == 0;
      if (begins && !run_kernel(then, work, block, options, nullptr)) return;
    }
    if (++rank.ended == setup_.blocks) between_operations(rank, index);
  }
}

// False where a block failed that should not have.
bool Experiment::run_kernel(HostBody body, const Work& work, int block, const Options& options,
                            simulated::Trace* trace) {
  HostTeam team(work, block, {simulation_, options.mutation, trace});
  const Outcome outcome = body(team, work);
  simulation_.wait_until_delivered(simulation_.fiber_of(work.rank, block));
  if (outcome == Outcome::kDone || options.stop.rank >= 0 || options.mismatch) return true;
  simulation_.report(Breach::kOutcome, fmt::format("rank {} failed", work.rank));
  return false;
}

void Experiment::between_kernels(Rank& rank, int index) {
  simulation_.memory().end_kernel(simulation_.fiber_of(index, 0), setup_.blocks);
  rank.ended = 0;
  ++rank.followed;
}

Work Experiment::work_for(int index, int operation) {
  Rank& rank = *ranks_[static_cast<std::size_t>(index)];
  const bool staged = is_staged(*setup_.row, setup_.buffers);
  Work work{};
  work.count =
      setup_.count * sizeof(float) / size_of(moved_as(setup_.row->collective, DataType::kFloat32));
  work.rank = index;
  work.ranks = setup_.ranks;
  work.root = root(operation);
  work.blocks = setup_.blocks;
  work.signature = 0x1234;
  work.sequence = static_cast<std::uint64_t>(operation) + 1;
  const Collective collective = setup_.row->collective;
  const bool reads = test::has_input(collective, index, work.root);
  const bool writes = test::has_output(collective, index, work.root);
  work.input = reads ? reinterpret_cast<std::byte*>(input_of(index)) : nullptr;
  work.output = writes ? reinterpret_cast<std::byte*>(output_of(index)) : nullptr;
  work.stage_input = staged && setup_.row->peers_read_input;
  work.stage_output = staged && setup_.row->peers_write_output;
  // Where it has halves, or thirds: room for a tile of every rank in each, or two.
  const bool divided = setup_.row->pushes_through_staging || collective == Collective::kBroadcast;
  work.staging_bytes = divided ? 2 * kStagingBytes : kStagingBytes;
  for (int r = 0; r < setup_.ranks; ++r) {
    Rank& peer = *ranks_[static_cast<std::size_t>(r)];
    Rank& next = *ranks_[static_cast<std::size_t>((index + 1 + r) % setup_.ranks)];
    work.packets.memory.at[r] = reinterpret_cast<std::byte*>(next.packets.data());
    work.channels.at[r] = reinterpret_cast<std::byte*>(&peer.channel);
    work.staging.at[r] = peer.staging.bytes();
    work.inputs.at[r] = reinterpret_cast<std::byte*>(input_of(r));
    work.outputs.at[r] =
        work.stage_output ? next.staging.bytes()
                          : reinterpret_cast<std::byte*>(output_of((index + 1 + r) % setup_.ranks));
  }
  work.packets.generation_bytes = packet_use().bytes();
  work.packets.slot_bytes = packet_use().slot_bytes;
  work.packets.launches = &rank.launches;
  work.ring = ring_slots(*setup_.row, kRingBytes, setup_.blocks, kChunkBytes);
  work.chunk_bytes = kChunkBytes;
  work.epochs = rank.epochs.data();
  work.control = &rank.control;
  work.failure = &rank.failure;
  work.abort = &rank.abort;
  work.scalar = setup_.op == OpKind::kPreMulSum ? index + 1 : 1;
  work.scaled_by_peers = setup_.op == OpKind::kPreMulSum;
  work.divisor = setup_.op == OpKind::kAvg ? setup_.ranks : 1;
  if (normalises()) {
    work.norm = {.residual = reinterpret_cast<const std::byte*>(residual_of(rank)),
                 .weight = rank.weight.bytes(),
                 .output = reinterpret_cast<std::byte*>(normalised_of(rank)),
                 .tokens = static_cast<std::uint32_t>(setup_.count / hidden_),
                 .hidden = static_cast<std::uint32_t>(hidden_),
                 .epsilon = kEpsilon,
                 .output_dtype = DataType::kFloat32,
                 .scale = 1};
  }
  return work;
}

// --- between operations ---

void Experiment::between_operations(Rank& rank, int index) {
  simulation_.memory().end_kernel(simulation_.fiber_of(index, 0), setup_.blocks);
  if (rank.control.poison == 0) {
    if (rank.started > 0) check_output(rank, index, rank.started - 1);
    if (rank.started < setup_.operations) write_input(rank, index, rank.started);
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

float Experiment::moved(int rank, int operation, std::size_t i) const {
  const Collective collective = setup_.row->collective;
  if (root_side(collective) == RootSide::kInput) return input_value(root(operation), operation, i);
  // Of all_to_all each rank gets its own pieces, else everybody's are the same.
  const bool own = collective == Collective::kAllToAll;
  const std::size_t place = own ? static_cast<std::size_t>(rank) * piece() : 0;
  return input_value(static_cast<int>(i / piece()), operation, place + i % piece());
}

bool Experiment::in_one_buffer() const {
  return setup_.buffers == Buffers::kInPlace && !normalises();
}

float* Experiment::input_of(int rank) const {
  Rank& own = *ranks_[static_cast<std::size_t>(rank)];
  const Sides sides = this->sides(rank);
  const bool within = in_one_buffer() && sides.input <= sides.output;
  return within ? own.output.data() + sides.place : own.input.data();
}

float* Experiment::output_of(int rank) const {
  Rank& own = *ranks_[static_cast<std::size_t>(rank)];
  const Sides sides = this->sides(rank);
  const bool within = in_one_buffer() && sides.input > sides.output;
  return within ? own.input.data() + sides.place : own.output.data();
}

std::size_t Experiment::first_of_output(int rank) const {
  const Sides sides = this->sides(rank);
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
  float* const input = input_of(index);
  const std::size_t count = sides(index).input;
  for (std::size_t i = 0; i < sides(index).output; ++i) {
    float* const to = output_of(index) + i;
    if (to < input || to >= input + count) store(index, to, kPoison);
  }
  for (std::size_t i = 0; i < count; ++i) {
    store(index, input + i, input_value(index, operation, i));
  }
}

// Of two, by turns: a rank may be ahead by one operation.
float* Experiment::word_of(int rank, int operation) const { return input_of(rank) + operation % 2; }

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
  for (std::size_t i = 0; i < sides(index).output; ++i) {
    const float seen = load(index, output_of(index) + i);
    const float right = expected(index, operation, first_of_output(index) + i);
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
