// A group of processes in a random series of operations, and a random fate of one of them, the
// victim, at a random moment.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "tutti/types.hpp"

namespace tutti::test {

enum class Fate {
  kKilled,        // SIGKILL
  kStopped,       // SIGSTOP, until all others have given up
  kPaused,        // SIGSTOP and, well before the deadline, SIGCONT: nothing must come of it
  kExits,         // exit(), the communicator not destroyed
  kLeaves,        // destroys its communicator and lives on
  kAborts,        // abort() from another thread
  kForks,         // forks a child that exits: nothing must come of it
  kForksAndDies,  // its child, with copies of all descriptors, outlives it
};
inline constexpr Fate kAllFates[] = {Fate::kKilled, Fate::kStopped,     Fate::kPaused,
                                     Fate::kExits,  Fate::kLeaves,      Fate::kAborts,
                                     Fate::kForks,  Fate::kForksAndDies};
std::string_view to_string(Fate fate);

struct RandomScene {
  Backend backend = Backend::kHost;
  int ranks = 3;
  int victim = 0;
  Fate fate = Fate::kKilled;
  std::chrono::microseconds after{0};    // the victim's first operation
  unsigned seed = 1;                     // of the operations
  std::chrono::milliseconds pause{150};  // of a victim that goes on
  bool too_long = false;                 // the pause: until others have given up

  std::string name() const;
};

// Everything about it drawn by `seed`. On CUDA with `ranks` ranks, on the host with 2 to 4.
RandomScene draw_scene(Backend backend, int ranks, unsigned seed);

// Empty where every survivor got the error it should, in time and in full (or none, and right
// results, where nothing happened), and nothing is left.
std::string play(const RandomScene& scene);

}  // namespace tutti::test
