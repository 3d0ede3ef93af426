// Who goes next: the one source of all that may happen differently from run to run.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tutti::simulated {

// Packets are numbered from here on, flags below.
inline constexpr std::int32_t kFirstPacket = 1 << 24;

// One thing that may happen now.
struct Action {
  enum class Kind : std::uint8_t { kRun, kDeliver };
  Kind kind = Kind::kRun;
  std::uint8_t fiber = 0;
  std::uint8_t rank = 0;
  // kRun: the flag or packet it waits for; kDeliver: the one that changes; or -1
  std::int32_t flag = -1;
  std::uint64_t epoch = 0;    // the flag's, as waited for or as delivered
  std::uint32_t store = 0;    // kDeliver: which of the fiber's stores; kRun: how many it has made
  std::uint32_t release = 0;  // kDeliver: how many releases came before the store

  bool is_same_as(const Action& other) const {
    return kind == other.kind && fiber == other.fiber && store == other.store;
  }
};

// Do two actions that are possible at once lead to the same state in either order?
bool independent(const Action& a, const Action& b);

class Schedule {
 public:
  virtual ~Schedule() = default;
  // The index of one of `possible` (not empty), or nothing: this run leads nowhere new.
  virtual std::optional<std::size_t> choose(std::span<const Action> possible) = 0;
  // Whether a fiber is interrupted before an ordinary access.
  virtual bool interrupts() { return false; }
  // Whether only flags are delivered by choice, and data at the last legal moment. That is all one
  // has to tell apart where every access is judged: what is not a violation has one value.
  virtual bool is_coarse() const = 0;
};

// Everything at random, by a seed. Each seed also draws a temper: how often stores are delivered
// before somebody needs them, how often fibers take turns, and a rank that lags behind.
class RandomSchedule : public Schedule {
 public:
  RandomSchedule(std::uint64_t seed, int ranks);
  std::optional<std::size_t> choose(std::span<const Action> possible) override;
  bool interrupts() override { return coin(interruption_); }
  bool is_coarse() const override { return false; }

 private:
  std::uint64_t draw();
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(draw() % limit); }
  bool coin(unsigned of_256) { return (draw() & 255u) < of_256; }

  std::uint64_t state_;
  unsigned eagerness_, turns_, interruption_;
  int slow_rank_;
  int last_fiber_ = -1;
  std::vector<std::size_t> runs_, deliveries_;
};

// All schedules, one after the other: a depth-first search that replays from the start. Of
// schedules that differ only in the order of independent actions it runs one: where two actions of
// a run could have come in the other order, and that makes a difference, it comes back and tries
// (Flanagan and Godefroid, "Dynamic Partial-Order Reduction for Model Checking Software", 2005,
// with sleep sets).
class ExhaustiveSchedule : public Schedule {
 public:
  std::optional<std::size_t> choose(std::span<const Action> possible) override;
  bool is_coarse() const override { return true; }
  // After a run: is there another one?
  bool advance();

 private:
  static constexpr std::size_t kMaxSteps = 512;
  using StepSet = std::bitset<kMaxSteps>;
  struct Step {
    std::vector<Action> possible;
    std::vector<Action> asleep;  // lead only to what was seen; grows as alternatives are done
    std::vector<bool> worth_it;  // of `possible`: to be tried
    std::size_t taken = 0;
    StepSet before;  // the steps that must come before this one
    const Action& action() const { return possible[taken]; }
  };
  static bool contains(const std::vector<Action>& actions, const Action& action);
  static std::optional<std::size_t> first_awake(const Step& step, bool only_worth_it);
  // Step `early` has to come before step `late`: one made the other possible, or saw its effect.
  bool ordered(std::size_t early, std::size_t late) const;
  // They came in this order, but the other would have been possible.
  static bool reversible(const Action& early, const Action& late);
  void look_back(std::size_t depth);
  void try_earlier(std::size_t early, std::size_t late);

  std::vector<Step> steps_;
  std::size_t depth_ = 0;
};

}  // namespace tutti::simulated
