// The hosts of a job, as --hosts names them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tutti/status.hpp"

namespace tutti::cli {

inline constexpr int kMostRanks = 1024;

struct HostRanks {
  std::string login;    // what ssh is given: "a", "user@a", "::1"
  std::string address;  // the same without a user
  int ranks = 1;
  friend bool operator==(const HostRanks&, const HostRanks&) = default;
};

// "a:4,user@b:2,[::1]:2,c": a host without a number has one rank. kInvalidArgument where one is
// empty, named twice or has no valid number of ranks.
Result<std::vector<HostRanks>> parse_hosts(std::string_view text);

int count_ranks(const std::vector<HostRanks>& hosts);

// Where rank 0 listens for ranks of other hosts.
struct RootAddress {
  std::string address;
  int port = 0;  // 0: one that is free
  friend bool operator==(const RootAddress&, const RootAddress&) = default;
};
// "node0", "10.0.0.1:4455", "[::1]:4455", "::1".
Result<RootAddress> parse_root(std::string_view text);
// "10.0.0.1:4455", "[::1]:4455"
std::string to_text(const RootAddress& root);

}  // namespace tutti::cli
