// A group of processes of which one, the victim, is killed or stopped at a certain moment, and what
// the others make of it.
#pragma once

#include <chrono>
#include <csignal>
#include <string>
#include <string_view>

#include "tutti/types.hpp"

namespace tutti::test {

enum class Moment {
  kBeforeInit,  // the victim never joins
  kDuringInit,  // at a random moment while the group forms
  kInside,      // the victim is in an operation that another rank has not come to
  kBetween,     // the victim is between two operations, the others wait in the second
  kBusy,        // at a random moment of a series of large operations
};
inline constexpr Moment kAllMoments[] = {Moment::kBeforeInit, Moment::kDuringInit, Moment::kInside,
                                         Moment::kBetween, Moment::kBusy};
std::string_view to_string(Moment moment);

struct Scene {
  Backend backend = Backend::kHost;
  int ranks = 3;
  int victim = 0;
  int signal = SIGKILL;  // or SIGSTOP
  Moment moment = Moment::kInside;
  unsigned seed = 1;           // of the random moments
  std::string algorithm = {};  // of the operations; empty: chosen

  // The group, when the victim meets its fate.
  bool forms() const { return moment == Moment::kBeforeInit || moment == Moment::kDuringInit; }
  std::string name() const;  // "SIGKILL of rank 0 inside an operation"
  // Of the communicators: short where it ends the wait for who does not join. Else it is shortened
  // where it has to end the waits, once it does.
  std::chrono::milliseconds deadline() const;
};

// Empty where every other rank got the error it should, in time and in full, the victim (if it was
// only stopped) got one as well, and nothing is left.
std::string play(const Scene& scene);

}  // namespace tutti::test
