// A row of the catalogue under the simulation: a few operations in a row on a few ranks, every
// access judged, every result checked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/bodies.hpp"
#include "support/buffer_passing.hpp"
#include "support/uneven.hpp"

namespace tutti::laboratory {

using test::Buffers;
using test::kAllBuffers;

struct Setup {
  const Algorithm* row = nullptr;
  int ranks = 2;
  int blocks = 1;
  std::size_t count = 0;  // of floats, of the larger side; at least: up to whole tokens, or pieces
  int operations = 2;
  Buffers buffers = Buffers::kDirect;
  OpKind op = OpKind::kSum;
  bool counts_on_device = false;  // of uneven pieces
  SimulatedBody body = nullptr;   // null: the one of `row`

  // "all_reduce/one_shot ranks=2 blocks=1 count=5 operations=2 staged premulsum"
  std::string name() const;
};

// What one operation stages at a time, in bytes: small, so that small messages take several passes.
inline constexpr std::size_t kStagingBytes = 256;

// Whether its counts can be the device's.
bool has_device_counts(const Setup& setup);

// Every row that has a host body and is not between pairs of ranks (messages_test.cpp), with every
// way of passing buffers, by ranks, blocks and counts.
std::vector<Setup> all_setups();

// A rank that stops before its `steps`-th step, and goes on when all others have given up: the
// group is poisoned then, as the others' notices do it, unless it is not told in time.
struct Stop {
  int rank = -1;
  int steps = 0;
  bool told = true;
};

class Experiment {
 public:
  explicit Experiment(const Setup& setup);
  ~Experiment();

  struct Options {
    const simulated::Mutation* mutation = nullptr;
    Stop stop;
    // Rank 1 runs another operation than the others.
    bool mismatch = false;
    // What every block has counted to before the first operation.
    std::uint64_t first_epoch = 0;
    int traced = 0;  // rank
    std::vector<std::string>* story = nullptr;
  };
  // False if the schedule gave up. What was found is in violation().
  bool run(simulated::Schedule& schedule, const Options& options);
  bool run(simulated::Schedule& schedule) { return run(schedule, Options{}); }
  const simulated::Violation& violation() const { return simulation_.violation(); }

  const Setup& setup() const { return setup_; }
  // What the first operation of the traced rank's first block did.
  const simulated::Trace& trace() const { return trace_; }
  const FailureRecord& failure(int rank) const;
  // Whether what other ranks own changed after the stopped one was woken. One that was not told may
  // still say that it came: flags are the group's, and are not used for anything else.
  bool changed_after_wake(Stop stop) const;

 private:
  struct Rank;

  PacketUse packet_use() const;
  void lay_out();
  KernelArgs work_for(int rank, int operation);
  void run_block(int rank, int block, const Options& options);
  bool run_kernel(SimulatedBody body, const KernelArgs& work, int block, const Options& options,
                  simulated::Trace* trace);
  // By the last block of a rank to end a kernel: what the stream does between two of them.
  void between_kernels(Rank& rank, int index);
  void between_operations(Rank& rank, int index);
  void write_input(Rank& rank, int index, int operation);
  void check_output(Rank& rank, int index, int operation);
  // Of a barrier: what a rank wrote before it, others read behind it.
  bool only_meets() const { return setup_.row->collective == Collective::kBarrier; }
  void check_meeting(int index, int operation);
  float* word_of(int rank, int operation) const;
  void check_canaries();
  void remember_all();
  void poison_group();
  float input_value(int rank, int operation, std::size_t i) const;
  // Of element `i` of the message, which is the larger side.
  float expected(int rank, int operation, std::size_t i) const;
  float moved(int rank, int operation, std::size_t i) const;
  float moved_unevenly(int rank, int operation, std::size_t i) const;
  void give_counts(Rank& rank, int index, int operation);
  void check_found(const Rank& rank, int index, int operation);
  int root(int operation) const {
    return test::root_of(setup_.row->collective, operation, setup_.ranks);
  }
  // Uneven pieces are others in each operation.
  bool is_uneven() const { return tutti::is_uneven(setup_.row->collective); }
  test::UnevenCounts counts(int rank, int operation) const {
    return {setup_.row->collective, piece(), static_cast<std::uint64_t>(operation) + 3, rank,
            setup_.ranks};
  }
  Sides sides(int rank, int operation) const {
    const Collective collective = setup_.row->collective;
    return is_uneven() ? counts(rank, operation).sides(collective, rank)
                       : sides_of(collective, setup_.count, rank, setup_.ranks);
  }
  // Of each rank, or the longest one.
  std::size_t piece() const { return setup_.count / static_cast<std::size_t>(setup_.ranks); }
  // Where a rank's input and output lie. In place, the smaller one lies in the larger one.
  float* input_of(int rank, int operation) const;
  float* output_of(int rank, int operation) const;
  bool in_one_buffer() const;
  // Where in the message a rank's output begins.
  std::size_t first_of_output(int rank, int operation) const;
  // Where tokens are normalised behind the sum.
  bool normalises() const { return hidden_ > 0; }
  float* residual_of(Rank& rank) const;
  float* normalised_of(Rank& rank) const;
  void check_normalised(Rank& rank, int index, int operation);
  float load(int index, const float* from);
  void store(int index, float* to, float value);
  void write_tokens(Rank& rank, int index, int operation);

  Setup setup_;
  std::size_t hidden_;
  SimulatedBody body_;
  simulated::Simulation simulation_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  simulated::Trace trace_;
};

}  // namespace tutti::laboratory
