// Operations that are counted together, in the order in which this rank began them: those of the
// group, or those that move data from one rank to another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "executors/network/running_operation.hpp"

namespace tutti {

class NetworkDomain {
 public:
  // `ranks`: those of the group; 1 where there is only one peer.
  NetworkDomain(NetworkMessage::Domain said_as, std::size_t ranks)
      : kind(said_as), begun_(ranks), told_(ranks) {}

  const NetworkMessage::Domain kind;  // as messages of this rank say it

  std::uint64_t next() const { return first_ + active_.size(); }  // sequence numbers count from 1
  void add(RunningOperation* operation) { active_.push_back(operation); }
  RunningOperation* find(std::uint64_t sequence) const {
    if (sequence < first_ || sequence >= next()) return nullptr;
    return active_[static_cast<std::size_t>(sequence - first_)];
  }
  RunningOperation* oldest() const { return active_.empty() ? nullptr : active_.front(); }
  void remove(std::uint64_t sequence) {
    active_[static_cast<std::size_t>(sequence - first_)] = nullptr;
    while (!active_.empty() && active_.front() == nullptr) {
      active_.pop_front();
      ++first_;
    }
  }

  // The last operation that this rank has opened, that the peer is known to have opened, and that
  // the peer knows this rank to have opened.
  std::uint64_t opened = 0;
  std::uint64_t& begun(int peer) { return begun_[index(peer, begun_)]; }
  std::uint64_t& told(int peer) { return told_[index(peer, told_)]; }

  // Messages that arrived for operations that this rank has not begun yet, by sequence number.
  struct Early {
    std::vector<RunningOperation::Held> held;
    std::map<int, std::size_t> bytes;  // by peer
  };
  std::map<std::uint64_t, Early> early;

 private:
  static std::size_t index(int peer, const std::vector<std::uint64_t>& of) {
    return of.size() == 1 ? 0 : static_cast<std::size_t>(peer);
  }

  std::uint64_t first_ = 1;
  std::deque<RunningOperation*> active_;
  std::vector<std::uint64_t> begun_, told_;
};

}  // namespace tutti
