// How a host thread waits for another rank's word, and how the wait ends if that rank does not
// come.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/deadline.hpp"
#include "tutti/device/impl/host_wait.hpp"
#include "tutti/status.hpp"

namespace tutti::fused {

struct HostPatience {
  std::function<std::chrono::milliseconds()> timeout;  // it may change meanwhile
  std::function<Status()> group_status = {};           // a failure ends the wait, and is its status
  // A rank writes nothing more, and what it wrote is there. Null: none leaves.
  std::function<bool(int rank)> has_left = {};
  std::function<std::string(int rank)> name_of = {};  // null: "rank 1"
  // For whoever looks at this rank from outside: while a wait is long, the awaited rank, as a bit;
  // 0 when it has come. Null: nobody looks.
  std::uint64_t* waits_for = nullptr;
};

// What a wait that ends saw last.
struct AwaitedWord {
  std::string name;  // "ready[0]"
  std::uint64_t seen = 0, epoch = 0;
};

// One wait of `rank` for a word that `writer` writes.
class HostWaiting {
 public:
  // `patience` outlives this.
  HostWaiting(const HostPatience& patience, int rank, int writer)
      : patience_(patience), rank_(rank), writer_(writer) {}

  // Call it after each poll that fails. False: the wait ends. Then poll a last time, since the
  // writer may have left behind its word; if that fails too, failure() says why.
  bool goes_on();
  // The word has come.
  void arrived() const { tell_awaited(0); }
  // kTimeout, and kPeerFailed if the writer has left, name both ranks, the word, the epoch that it
  // has, and the one awaited. Otherwise it is the group's failure.
  Status failure(const AwaitedWord& word) const;

 private:
  void tell_awaited(std::uint64_t ranks) const;
  std::string text(std::string_view waits) const;

  const HostPatience& patience_;
  const int rank_, writer_;
  device::impl::HostWait wait_;
  const RunningClock::time_point begin_ = RunningClock::now();
  // Why the wait ends.
  Status group_;
  bool left_ = false;
  std::chrono::milliseconds timeout_{0};
};

}  // namespace tutti::fused
