// Events of a simulation in the order of their times. Of events at one time those come first that
// no other event of that time has caused; then those that the caller puts first.
//
// So ranks that behave alike see their events in one order, whichever ranks are simulated with
// them: an event never changes what another rank does at that time, since whatever it causes there
// comes a turn later.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace tutti::model {

using Picoseconds = std::int64_t;

struct Event {
  enum class Kind : std::uint32_t {
    kStart,
    kFirstBit,
    kReceived,
    kProcessed,
    kSent,
    kCredit,
    kEnd
  };

  Picoseconds at = 0;
  std::uint32_t turn = 0;   // among the events of a time: one more than that of its cause
  std::uint32_t place = 0;  // of the rank on its node
  std::uint32_t partition = 0;
  std::uint32_t chunk = 0;  // of kCredit: the number of the peer
  Kind kind = Kind::kStart;
  std::uint32_t rank = 0;       // that it happens to, among the simulated ones
  Picoseconds last_bit_at = 0;  // of kFirstBit

  friend bool operator<(const Event& a, const Event& b) {
    if (a.at != b.at) return a.at < b.at;
    return std::tie(a.turn, a.place, a.partition, a.chunk, a.kind, a.rank) <
           std::tie(b.turn, b.place, b.partition, b.chunk, b.kind, b.rank);
  }
};

// A heap whose nodes have four children: half as deep as one of two.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

  void push(const Event& event) {
    std::size_t at = heap_.size();
    heap_.push_back(event);
    while (at > 0) {
      const std::size_t parent = (at - 1) / kChildren;
      if (!(event < heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = event;
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

 private:
  static constexpr std::size_t kChildren = 4;

  void sink(const Event& event) {
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = at * kChildren + 1;
      if (first >= heap_.size()) break;
      const std::size_t end = std::min(first + kChildren, heap_.size());
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child] < heap_[least]) least = child;
      }
      if (!(heap_[least] < event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<Event> heap_;
};

}  // namespace tutti::model
