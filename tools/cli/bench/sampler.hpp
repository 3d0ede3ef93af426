// One rank's operations under the clock: its engine, its buffers, and what must come out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/arena.hpp"
#include "bench/engine.hpp"
#include "bench/inputs.hpp"
#include "bench/lengths.hpp"
#include "bench/norm_inputs.hpp"
#include "bench/rank.hpp"
#include "bench/runnable.hpp"

namespace tutti::cli {

// The arrangement of operations and slots that one sample runs.
struct Pattern {
  int operations = 1;
  int inputs = 1, outputs = 1;
  bool chained = false, in_place = false;

  int input(int k) const { return k % inputs; }
  int output(int k) const { return k % outputs; }
  // How often the reduction has been applied to what the last operation leaves.
  int applications() const { return chained || in_place ? operations : 1; }
};

// A configuration at one size, and where its operations copy through staging the same on symmetric
// buffers, which shows what the copies cost.
struct Trial {
  Contender contender;
  std::unique_ptr<Contender> unstaged;
  std::optional<std::uint64_t> wrong = {};  // elements on this rank; empty: not checked
  std::string first_wrong = {};             // for people
};

// Every rank makes the same calls in the same order.
class Sampler {
 public:
  Sampler(Communicator& communicator, const BenchOptions& options, const Reporter& reporter)
      : communicator_(communicator),
        options_(options),
        report_(reporter),
        rows_(communicator, options, reporter) {}

  // Collective. Makes what all sizes need.
  Status open();

  // Once open: whether buffers are plain though the command did not ask for that.
  bool lacks_symmetric() const { return lacks_symmetric_; }

  // Begins a size; trials are of the size that was begun last. Inputs are to be filled then.
  void begin(std::size_t bytes, bool in_place);
  // Those that were asked for and can run at this size.
  Result<std::vector<Runnable>> runnable() { return rows_.all(query({})); }
  // What `algorithm` would run; nothing, which is reported once, where it cannot.
  Result<std::optional<Plan>> plan_or_skip(const std::string& algorithm) {
    return rows_.plan_or_skip(query(algorithm));
  }
  Result<std::unique_ptr<Trial>> prepare(const Configuration& configuration);

  // From now on results are expected of other inputs than before.
  Status fill_inputs(std::uint32_t iteration);
  // Collective. So many samples of each, one after the other (A B A B).
  Status sample(std::span<Contender* const> contenders, int rounds);
  // Collective. One sample into poisoned outputs, its result compared, and one of its unstaged
  // twin, so that both have as many.
  Status sample_checked(Trial& trial);

 private:
  // kUnavailable: the command names buffers that this group cannot have.
  Result<BufferKind> choose_buffers();
  int slots(std::size_t largest) const;
  Communicator::Query query(std::string_view algorithm) const;
  // What an operation reads and writes, in bytes, for a message of so many.
  Sides sides(std::size_t bytes) const;
  Lengths lengths(std::size_t bytes, int rank) const;
  template <class AnyCall>
  void give_length(AnyCall& call, std::size_t bytes) const;
  Operation operation(const Configuration& configuration, std::byte* input,
                      std::byte* output) const;
  Bytes reduced(std::uint32_t iteration) const;
  Bytes split(const Bytes& period) const;
  std::size_t piece_bytes() const;  // where bits are moved, of each rank
  Bytes moved_from(int rank, std::uint32_t iteration) const;
  // What a part of an output repeats, and how many bytes of it there are.
  struct Part {
    Bytes period;
    std::size_t bytes;
  };
  std::vector<Part> expected(std::uint32_t iteration) const;
  bool has_output() const;
  Mismatches count_wrong() const;
  void arrange(Contender& contender, const Arena& arena) const;
  Status prepare(Contender& contender, const Arena& arena, const Configuration& configuration);
  Status check(Trial& trial);

  Communicator& communicator_;
  const BenchOptions& options_;
  const Reporter& report_;
  RunnableRows rows_;
  std::unique_ptr<Engine> engine_;
  bool lacks_symmetric_ = false;
  Arena arena_, symmetric_;  // the second only where the first is staged
  std::vector<std::byte> host_;
  Pattern pattern_;
  std::size_t bytes_ = 0;
  Lengths lengths_;  // of uneven pieces; calls point at them
  std::optional<ExactInputs> inputs_;
  std::optional<NormInputs> norm_inputs_;  // instead, where tokens are normalised
  std::uint32_t iteration_ = 0;
  Bytes input_;                 // a period
  std::vector<Part> expected_;  // of the output, one behind the other
  std::chrono::steady_clock::time_point last_sign_of_life_ = std::chrono::steady_clock::now();
};

}  // namespace tutti::cli
