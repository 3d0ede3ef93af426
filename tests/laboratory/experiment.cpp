#include "laboratory/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/convert.hpp"
#include "laboratory/rank.hpp"

namespace tutti::laboratory {
namespace {

using simulated::Breach;

// Chunks of one tile: small messages take many.
constexpr std::size_t kChunkBytes = 16;
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

}  // namespace

std::string Setup::name() const {
  return fmt::format("{} ranks={} blocks={} count={} operations={} {} {}{}", row->id, ranks, blocks,
                     count, operations, to_string(buffers), tutti::to_string(op),
                     counts_on_device ? " counts on the device" : "");
}

bool has_device_counts(const Setup& setup) {
  return setup.row->publishes_counts && setup.buffers != Buffers::kInPlace && setup.count > 0;
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
    if (row.host == nullptr || row.sends_messages) continue;
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
        Setup setup{&row, shape.ranks, shape.blocks, count, operations, buffers, shape.op};
        all.push_back(setup);
        setup.counts_on_device = true;
        if (has_device_counts(setup)) all.push_back(setup);
      }
    }
  }
  return all;
}

Experiment::Experiment(const Setup& setup)
    : setup_(setup),
      hidden_(hidden_of(setup)),
      body_(setup.body != nullptr ? setup.body
                                  : simulated_body(setup.row->host, DataType::kFloat32, setup.op)),
      simulation_(setup.ranks, setup.blocks) {
  const std::size_t unit = unit_of(setup);
  setup_.count = (setup_.count + unit - 1) / unit * unit;
  if (only_meets()) setup_.count = 2;
  const std::size_t bytes = packet_use().bytes();
  for (int r = 0; r < setup.ranks; ++r) {
    const Sides most = sides_of(setup_.row->collective, setup_.count, r, setup.ranks);
    ranks_.push_back(std::make_unique<Rank>(most, bytes));
  }
  lay_out();
}

Experiment::~Experiment() = default;

PacketUse Experiment::packet_use() const {
  PacketUse use = tutti::packet_use(
      *setup_.row, {setup_.count * sizeof(float), setup_.ranks, hidden_ * sizeof(float)},
      DataType::kFloat32);
  // Tiles are small here, and so are shares.
  const std::size_t expansion = packet_expansion(*setup_.row, DataType::kFloat32);
  const std::size_t tile = is_uneven() ? 16 : 0;  // how long a piece is, behind it
  const std::size_t whole = (setup_.count * sizeof(float) + tile) * expansion;
  use.slot_bytes = std::min(use.slot_bytes, (whole + 255) / 256 * 256);
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
    memory.add_data(reinterpret_cast<std::byte*>(rank.channel.counts),
                    static_cast<std::size_t>(setup_.blocks) * sizeof rank.channel.counts[0],
                    fmt::format("counts {}", r));
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
  const SimulatedBody then = simulated_body(setup_.row->then.host, DataType::kFloat32, setup_.op);
  if (block == 0) between_operations(rank, index);
  for (int operation = 0; operation < setup_.operations; ++operation) {
    simulation_.wait_for_count(fiber, rank.started, operation + 1);
    KernelArgs work = work_for(index, operation);
    if (options.mismatch && index == 1) work.signature ^= 1;
    const bool traced = index == options.traced && block == 0 && operation == 0;
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
bool Experiment::run_kernel(SimulatedBody body, const KernelArgs& work, int block,
                            const Options& options, simulated::Trace* trace) {
  SimulatedTeam team(work, block, {simulation_, options.mutation, trace});
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

KernelArgs Experiment::work_for(int index, int operation) {
  Rank& rank = *ranks_[static_cast<std::size_t>(index)];
  const bool staged = is_staged(*setup_.row, setup_.buffers);
  KernelArgs work{};
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
  work.input = reads ? reinterpret_cast<std::byte*>(input_of(index, operation)) : nullptr;
  work.output = writes ? reinterpret_cast<std::byte*>(output_of(index, operation)) : nullptr;
  if (is_uneven()) work.counts = &rank.counts;
  work.stage_input = staged && setup_.row->peers_read_input;
  work.stage_output = staged && setup_.row->peers_write_output;
  // Where it has halves, or thirds: room for a tile of every rank in each, or two.
  const bool divided = test::stages_in_halves(*setup_.row) || collective == Collective::kBroadcast;
  work.staging_bytes = divided ? 2 * kStagingBytes : kStagingBytes;
  for (int r = 0; r < setup_.ranks; ++r) {
    Rank& peer = *ranks_[static_cast<std::size_t>(r)];
    Rank& next = *ranks_[static_cast<std::size_t>((index + 1 + r) % setup_.ranks)];
    work.packets.memory.at[r] = reinterpret_cast<std::byte*>(next.packets.data());
    work.channels.at[r] = reinterpret_cast<std::byte*>(&peer.channel);
    work.staging.at[r] = peer.staging.bytes();
    work.inputs.at[r] = reinterpret_cast<std::byte*>(input_of(r, operation));
    work.outputs.at[r] =
        work.stage_output
            ? next.staging.bytes()
            : reinterpret_cast<std::byte*>(output_of((index + 1 + r) % setup_.ranks, operation));
  }
  work.packets.generation_bytes = packet_use().bytes();
  work.packets.slot_bytes = packet_use().slot_bytes;
  work.packets.launches = &rank.launches;
  work.ring = ring_slots(*setup_.row, kRingBytes, setup_.blocks, kChunkBytes);
  work.chunk_bytes = kChunkBytes;
  work.epochs = rank.epochs.data();
  work.control = &rank.control;
  work.failure = &rank.failure;
  work.notices = &rank.notices;
  work.scalar = accumulator_bits(DataType::kFloat32, index + 1);
  work.scaled_by_peers = setup_.op == OpKind::kPreMulSum;
  work.divisor = setup_.op == OpKind::kAvg ? setup_.ranks : 1;
  work.norm.hidden =
      static_cast<std::uint32_t>(test::row_length(*setup_.row, setup_.count, setup_.ranks));
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

}  // namespace tutti::laboratory
