// Ranks on several hosts, by ssh.
#pragma once

#include <string>
#include <vector>

#include "run/options.hpp"
#include "run/rank_group.hpp"
#include "run/remote_host.hpp"

namespace tutti::cli {

class RemoteRanks final : public RankGroup {
 public:
  // `options` must outlive it. The ranks start once the first host is reached.
  static Result<RemoteRanks> start(const RunOptions& options);

  std::vector<int> running() const override;
  void add_descriptors(std::vector<pollfd>& descriptors) const override;
  Status look(RankEvents& events) override;
  void signal(int number) override;
  std::string place_of(int rank) const override;

 private:
  RemoteRanks(const RunOptions& options, std::string secret);
  // On the hosts that are ready, once it is known where rank 0 listens.
  void start_ranks();
  StartRanks order_for(const RemoteHost& host) const;
  void pass_input();

  const RunOptions* options_;
  std::string secret_;
  bool input_;  // whether there is some for rank 0
  std::vector<RemoteHost> hosts_;
};

// The exit code, as run_job() has it. A failure here is one to start at all.
Result<int> run_on_hosts(const RunOptions& options);

}  // namespace tutti::cli
