// Ranks that are processes of this one.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "bench/child_process.hpp"
#include "run/environment.hpp"
#include "run/rank_group.hpp"

namespace tutti::cli {

struct LocalRanksOptions {
  RankPlace first;  // of the first of them; there are `first.local_ranks`
  std::vector<std::string> settings = {};
  std::string program = {};
  std::vector<std::string> arguments = {};
  int input = -1;       // what rank 0 reads; the others, and -1: nothing
  bool bind = true;     // each to cores of its own
  bool capture = true;  // tells what they print; else they print where this process does
};

class LocalRanks final : public RankGroup {
 public:
  // Where one cannot be started, none is left.
  static Result<LocalRanks> start(const LocalRanksOptions& options);

  std::vector<int> running() const override;
  void add_descriptors(std::vector<pollfd>& descriptors) const override;
  Status look(RankEvents& events) override;
  void signal(int number) override;
  std::string place_of(int rank) const override;

 private:
  struct Rank {
    int number;
    ChildProcess process;
    Fd ended;                            // readable once it has; not open if the kernel cannot say
    std::array<Fd, kRankStreams> pipes;  // not open if it writes to ours
    bool done = false;
  };

  Status start_rank(const LocalRanksOptions& options, int local_rank, const cpu_set_t& usable);

  std::vector<Rank> ranks_;
};

}  // namespace tutti::cli
