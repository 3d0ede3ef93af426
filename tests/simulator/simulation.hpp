// Ranks as fibers over weak memory, driven by a schedule: one operation after the other, each block
// of each rank a fiber. The same schedule gives the same run.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "simulator/fiber.hpp"
#include "simulator/schedule.hpp"
#include "simulator/weak_memory.hpp"

namespace tutti::simulated {

// How a wait for a flag ended.
enum class Waited : std::uint8_t { kArrived, kCalledOff, kTimeIsOver };

class Simulation {
 public:
  Simulation(int ranks, int blocks);

  int ranks() const { return ranks_; }
  int blocks() const { return blocks_; }
  int fiber_of(int rank, int block) const { return rank * blocks_ + block; }
  WeakMemory& memory() { return memory_; }

  // `body(rank, block)` runs as a fiber for each block of each rank, until all have returned, or a
  // violation is found, or the schedule gives up (false).
  bool run(Schedule& schedule, const std::function<void(int rank, int block)>& body);

  // What a body calls. Each of them may let others go first.
  void interrupt(int fiber);  // before an ordinary access
  // `poison`, if given, calls the wait off once it is not 0.
  Waited wait_for_flag(int fiber, const Flag* flag, std::uint64_t epoch,
                       const std::uint32_t* poison = nullptr);
  Waited wait_for_packet(int fiber, const std::uint64_t* packet, std::uint64_t epoch,
                         const std::uint32_t* poison = nullptr);
  // Until `come()`, which looks at flags and packets.
  Waited wait_until(int fiber, const std::function<bool()>& come,
                    const std::uint32_t* poison = nullptr);
  void wait_until_delivered(int fiber);
  void wait_for_count(int fiber, const int& count, int at_least);
  void report(Breach breach, std::string text);
  const Violation& violation() const;

  // The rank stops before its `steps`-th step. Whenever nothing else can happen, the deadlines of
  // those who wait pass; when nobody waits any more, `on_wake` is called and it goes on.
  void stop(int rank, int steps, std::function<void()> on_wake);
  // What happens, in words, from now on.
  void tell(std::vector<std::string>* story) { story_ = story; }

 private:
  struct Condition {
    const Flag* flag = nullptr;
    const std::uint64_t* packet = nullptr;
    const std::function<bool()>* come = nullptr;
    std::uint64_t epoch = 0;
    const std::uint32_t* poison = nullptr;
    bool delivered = false;
    const int* count = nullptr;
    int at_least = 0;
  };
  struct Place {
    std::unique_ptr<Fiber> fiber;
    Condition condition;
    std::int32_t flag = -1;
    bool expired = false;  // its deadline passed in this wait
    bool acted = true;     // since its deliveries were collected
    std::vector<Action> deliveries;
  };

  void pause(int fiber, const Condition& condition);
  bool met(int fiber) const;
  void collect(bool coarse);
  void collect_deliveries(int fiber, bool coarse);
  void take(const Action& action, bool coarse);
  bool all_finished() const;
  void end_without_progress();
  bool expire_waits();
  std::string who_waits() const;
  std::string in_words(const Action& action) const;

  int ranks_, blocks_;
  WeakMemory memory_;
  std::vector<Place> places_;
  std::vector<Action> possible_;
  std::vector<bool> may_be_delivered_;
  Schedule* schedule_ = nullptr;
  Violation violation_;
  int stopped_rank_ = -1, steps_left_ = 0;
  std::function<void()> on_wake_;
  std::vector<std::string>* story_ = nullptr;
};

}  // namespace tutti::simulated
