// All ranks' parts of a symmetric segment behind one address.
#pragma once

#include <cstddef>
#include <memory>

#include "base/deadline.hpp"
#include "bootstrap/bootstrap.hpp"
#include "device/multicast/driver.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {

// Unmaps and unbinds at its end: local, waits for nobody. To be done when this rank's work on the
// memory has ended.
class MulticastBinding {
 public:
  ~MulticastBinding();
  MulticastBinding(const MulticastBinding&) = delete;
  MulticastBinding& operator=(const MulticastBinding&) = delete;

  std::byte* address() const { return address_; }  // of the segment's first byte

 private:
  friend class MulticastBinder;
  MulticastBinding(CudaDriver& cuda, MulticastDriver& multicast, int device)
      : cuda_(cuda), multicast_(multicast), device_(device) {}

  CudaDriver& cuda_;
  MulticastDriver& multicast_;
  const int device_;
  CudaAllocation object_ = 0;
  bool has_object_ = false, is_bound_ = false;
  std::size_t bytes_ = 0;
  CudaAddress mapped_ = nullptr;
  std::byte* address_ = nullptr;
};

// What one rank binds with.
struct MulticastPlace {
  Bootstrap& bootstrap;
  CudaDriver& cuda;
  MulticastDriver& multicast;
  int device;  // of this rank
};

// Collective, for memory of the heap's own. kUnavailable on every rank, with the first rank that
// could not and why, or a binding on every rank.
Result<std::shared_ptr<MulticastBinding>> bind_to_multicast(const MulticastPlace& place,
                                                            const SymmetricSegment& segment,
                                                            Deadline deadline);

}  // namespace tutti
