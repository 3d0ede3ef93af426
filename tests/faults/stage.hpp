// Where a group of processes plays and its parent looks on: what each rank says, how it ends, and
// what is left of it all.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/ending.hpp"
#include "faults/traces.hpp"
#include "support/children.hpp"
#include "tutti/communicator.hpp"

namespace tutti::test {

class Stage {
 public:
  using Clock = Ending::Clock;
  using Part = std::function<void(const UniqueId& id, int number, Wire& parent)>;

  // Starts `ranks` processes, each of which plays its part.
  Stage(int ranks, const Part& part);

  Children& children() { return children_; }
  const Children::Child& child(int rank) const {
    return children_.all()[static_cast<std::size_t>(rank)];
  }

  // The victim meets its fate, and times begin.
  void mark() { marked_at_ = Clock::now(); }
  // What all others may know.
  void tell_of_the_fate(int victim) {
    for (int rank = 0; rank < static_cast<int>(children_.all().size()); ++rank) {
      if (rank != victim && !child(rank).ended) children_.signal(rank, SIGUSR1);
    }
  }

  void complain(int rank, std::string_view what);
  // The error came in time, with what slack() allows, where times_count.
  void expect_within(int rank, const Ending& ending, std::chrono::milliseconds limit);
  void expect_parts(int rank, const Ending& ending, const std::vector<std::string>& parts);
  // Who was stopped is woken, finds its group failed and says so.
  void expect_late_failure(int rank, Clock::duration limit);
  void expect_nothing_left();

  const std::string& complaints() const { return complaints_; }

 private:
  static UniqueId make_id(const Traces& traces);

  Traces traces_;
  UniqueId id_;
  Children children_;
  Clock::time_point marked_at_;
  std::string complaints_;
};

// What an error of an operation that ran out of time has to say (rule 5); NCCL does not know as
// much.
std::vector<std::string> parts_of_a_timeout(std::string_view algorithm = {});

}  // namespace tutti::test
