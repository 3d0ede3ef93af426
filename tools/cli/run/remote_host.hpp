// One host of a job, and the connection to its agent.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/fd.hpp"
#include "bench/child_process.hpp"
#include "bench/frame.hpp"
#include "run/hosts.hpp"
#include "run/pipes.hpp"
#include "run/rank_group.hpp"
#include "run/wire.hpp"

namespace tutti::cli {

class RemoteHost {
 public:
  struct Setup {
    HostRanks host;
    int first_rank = 0;
    std::vector<std::string> ssh;  // its path, then options
    std::string tutti;             // path there
  };
  static Result<RemoteHost> start(Setup setup);

  const HostRanks& host() const { return setup_.host; }
  int first_rank() const { return setup_.first_rank; }
  const std::set<int>& running() const { return running_; }
  const std::optional<AgentReady>& ready() const { return ready_; }
  bool was_told() const { return was_told_; }  // to start its ranks
  bool wants_input() const { return wants_input_; }

  void add_descriptors(std::vector<pollfd>& descriptors) const;
  // As RankGroup has it.
  Status look(RankEvents& events);
  void start_ranks(const StartRanks& order);
  void signal(int number);
  void give_input(std::string bytes);

 private:
  explicit RemoteHost(Setup setup);
  void send(const ToAgent& message);
  Status read_output(RankEvents& events);
  // Whatever the login prints is dropped.
  Status look_for_hello();
  Status read_frames(RankEvents& events);
  Status take(const FromAgent& message, RankEvents& events);
  bool is_running(int rank) const { return running_.contains(rank); }
  // Ends it without a word.
  void drop();
  Status lose(const std::string& why);
  std::string what_ssh_said() const;

  Setup setup_;
  std::optional<ChildProcess> ssh_;
  Fd ended_, in_, out_, err_;
  Outbox outbox_;
  FrameReader reader_;
  std::string login_output_, said_;  // the ends of what came before the hello, and of ssh's errors
  bool said_hello_ = false, was_told_ = false, wants_input_ = false;
  std::optional<AgentReady> ready_;
  std::optional<Deadline> deadline_;  // to start, and to end once ranks are killed
  std::set<int> running_;
};

}  // namespace tutti::cli
