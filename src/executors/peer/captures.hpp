// Which capture owns which channel, and what a captured graph keeps alive. A graph's destructor
// only queues what it held; it is taken back at the next collective moment, so that ranks whose
// graphs die at different times still agree on what is free.
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
  std::vector<int> late_slots;
  std::vector<std::shared_ptr<SymmetricSegment>> segments;
};

class Captures {
 public:
  Captures(int channels, int late_slots);

  // The area, of packets and rings, of what is captured on `stream`: 1 for the first such stream,
  // and so on.
  int area(Stream stream);

  // The lease of the capture `id`, or null if this capture has none yet.
  CaptureLease* find(std::uint64_t id);

  // This rank's free channels as a bitmap, after taking back what died. Bit c-1 is channel c.
  std::vector<std::uint64_t> free_channels();
  // The lowest bit that is set everywhere; 0 if there is none.
  static int lowest_common(const std::vector<std::vector<std::uint64_t>>& bitmaps);
  CaptureLease& open(std::uint64_t id, int channel);

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

  std::map<std::uint64_t, CaptureLease> leases_;
  std::vector<bool> channel_free_;
  std::map<Stream, int> areas_;
  std::vector<int> free_late_slots_, used_late_slots_;
  std::vector<std::shared_ptr<SymmetricSegment>> dead_segments_;
  std::shared_ptr<Retired> retired_ = std::make_shared<Retired>();
};

}  // namespace tutti
