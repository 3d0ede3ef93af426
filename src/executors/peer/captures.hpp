// Which channel a capture uses, and what a captured graph keeps alive. Graphs that are captured on
// one stream share a channel, since they are most likely replayed one after the other; there may be
// any number of them. A graph's destructor only queues what it held; it is taken back at the next
// collective moment.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/symmetric_heap.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

// Held by one captured graph (and all made from it).
struct CaptureLease {
  int channel = 0;
  Stream stream = nullptr;  // on which the capture's first operation came
  // Of the captures that agreed on a channel, this is so many-th: the same on every rank.
  std::uint64_t number = 0;
  std::vector<int> late_slots;
  std::vector<std::shared_ptr<SymmetricSegment>> segments;
};

class Captures {
 public:
  // At least one channel. Channel 0 is for eager operations.
  Captures(int channels, int late_slots);

  // The lease of the capture `id`, or null if this capture has none yet.
  CaptureLease* find(std::uint64_t id);
  const CaptureLease* find(std::uint64_t id) const;

  // What this rank says before a capture on `stream` has a channel, after taking back what died:
  // the channel of living graphs of that stream, 0 if there are none, then the number of living
  // graphs of each channel.
  std::vector<std::uint64_t> offer(Stream stream);
  // That channel, if all ranks that name one name the same, and the others have no graph on it.
  // Otherwise the one with the fewest graphs.
  static int chosen(const std::vector<std::vector<std::uint64_t>>& offers);
  CaptureLease& open(std::uint64_t id, Stream stream, int channel);

  // What the graph's destructor runs: safe on any thread, also after this object has gone.
  std::function<void()> on_graph_destroyed(std::uint64_t id);

  // A slot whose DeferredBuffers are empty. kResourceExhausted if all are in use.
  Result<int> take_late_slot(CaptureLease& lease);

  // Outside captures: closes what dead graphs had registered, and names their slots, which the
  // caller empties and gives back.
  std::vector<int> sweep();
  void give_late_slots(const std::vector<int>& emptied);

 private:
  struct Retired {
    std::mutex mutex;
    std::vector<std::uint64_t> ids;
  };
  void take_back();

  const int channels_;
  std::uint64_t opened_ = 0;
  std::map<std::uint64_t, CaptureLease> leases_;  // by capture
  std::vector<int> free_late_slots_, used_late_slots_;
  std::vector<std::shared_ptr<SymmetricSegment>> dead_segments_;
  std::shared_ptr<Retired> retired_ = std::make_shared<Retired>();
};

}  // namespace tutti
