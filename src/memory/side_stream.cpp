#include "memory/side_stream.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "memory/device_scope.hpp"

namespace tutti {
namespace {

struct SideStreams {
  std::mutex mutex;
  std::map<std::pair<const CudaDriver*, int>, std::weak_ptr<SideStream>> known;
  std::vector<std::shared_ptr<SideStream>> left_behind;

  static SideStreams& of_process() {
    static SideStreams& streams = *new SideStreams;  // for threads that end after main()
    return streams;
  }
};

}  // namespace

Result<std::shared_ptr<SideStream>> SideStream::of(CudaDriver& cuda, int device) {
  SideStreams& all = SideStreams::of_process();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<SideStream>& place = all.known[{&cuda, device}];
  if (auto living = place.lock(); living != nullptr) return living;
  TUTTI_ASSIGN(const Stream stream, cuda.create_stream(device));
  auto made = std::make_shared<SideStream>(cuda, device, stream);
  place = made;
  return made;
}

void SideStream::leave_behind(std::shared_ptr<SideStream> side) {
  SideStreams& all = SideStreams::of_process();
  const std::lock_guard lock(all.mutex);
  const auto place = all.known.find({&side->cuda_, side->device_});
  if (place != all.known.end() && place->second.lock() == side) all.known.erase(place);
  all.left_behind.push_back(std::move(side));
}

SideStream::~SideStream() {
  const DeviceScope scope(cuda_, device_);
  (void)cuda_.destroy_stream(stream_);
}

}  // namespace tutti
