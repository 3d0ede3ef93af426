#include "memory/side_stream.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "base/try.hpp"
#include "memory/device_scope.hpp"

namespace tutti {

Result<std::shared_ptr<SideStream>> SideStream::of(CudaDriver& cuda, int device) {
  using Known = std::map<std::pair<const CudaDriver*, int>, std::weak_ptr<SideStream>>;
  static std::mutex& mutex = *new std::mutex;  // for threads that end after main()
  static Known& known = *new Known;
  const std::lock_guard lock(mutex);
  std::weak_ptr<SideStream>& place = known[{&cuda, device}];
  if (auto living = place.lock(); living != nullptr) return living;
  TUTTI_ASSIGN(const Stream stream, cuda.create_stream(device));
  auto made = std::make_shared<SideStream>(cuda, device, stream);
  place = made;
  return made;
}

SideStream::~SideStream() {
  const DeviceScope scope(cuda_, device_);
  (void)cuda_.destroy_stream(stream_);
}

}  // namespace tutti
