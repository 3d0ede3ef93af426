// What ranks get from the launcher.
#pragma once

#include <string>
#include <vector>

namespace tutti::cli {

struct RankPlace {
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;  // on its host
  std::string master = "127.0.0.1";     // address of rank 0's host
  int port = 0;                         // free on it
};

// The environment of a rank, "NAME=value": this process's with `settings` on top, and with what
// torchrun would set in place of what another launcher has set.
std::vector<std::string> environment_of_rank(const RankPlace& place,
                                             const std::vector<std::string>& settings = {});

// Of `environment`, what ranks on another host get: the settings of tutti, without those that
// launchers make, and what `names` adds: "NAME", or "NAME=value".
std::vector<std::string> settings_to_pass(const std::vector<std::string>& environment,
                                          const std::vector<std::string>& names);

}  // namespace tutti::cli
