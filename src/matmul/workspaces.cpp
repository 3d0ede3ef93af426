#include "matmul/workspaces.hpp"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "base/try.hpp"

namespace tutti {
namespace {

std::uint64_t thread_of(Stream stream) {
  if (!is_stream_per_thread(stream)) return 0;
  return std::hash<std::thread::id>{}(std::this_thread::get_id()) | 1U;
}

}  // namespace

// Nothing can be done about a failure here. What a graph keeps stays with it.
CublasLtWorkspaces::~CublasLtWorkspaces() {
  take_back();
  for (const auto& [device, address] : spare_) static_cast<void>(cuda_.free(address).is_ok());
  for (const auto& [user, address] : used_) {
    if (user.capture == 0) static_cast<void>(cuda_.free(address).is_ok());
  }
}

Result<CublasLtWorkspace> CublasLtWorkspaces::of(int device, Stream stream,
                                                 const CudaCapture& capture) {
  const User user{device, stream, thread_of(stream), capture.id};
  const std::lock_guard lock(mutex_);
  take_back();
  auto found = std::find_if(used_.begin(), used_.end(),
                            [&](const auto& each) { return each.first == user; });
  if (found == used_.end()) {
    TUTTI_ASSIGN(CudaAddress const address, take(device));
    used_.emplace_front(user, address);
    found = used_.begin();
    if (user.capture != 0) {
      const Status kept = cuda_.retain_on_graph(
          capture.graph, [returned = returned_, address] { returned->add(address); });
      if (!kept.is_ok()) returned_->add(address);
      TUTTI_TRY(kept);
    }
  }
  used_.splice(used_.begin(), used_, found);
  return CublasLtWorkspace{used_.front().second, kCublasLtWorkspaceBytes};
}

void CublasLtWorkspaces::take_back() {
  const std::lock_guard lock(returned_->mutex);
  for (CudaAddress const address : std::exchange(returned_->addresses, {})) {
    const auto used = std::find_if(used_.begin(), used_.end(),
                                   [&](const auto& each) { return each.second == address; });
    spare_.emplace_back(used->first.device, address);
    used_.erase(used);
  }
}

Result<CudaAddress> CublasLtWorkspaces::take(int device) {
  const auto spare = std::find_if(spare_.begin(), spare_.end(),
                                  [&](const auto& each) { return each.first == device; });
  if (spare != spare_.end()) {
    CudaAddress const address = spare->second;
    spare_.erase(spare);
    return address;
  }
  TUTTI_TRY(make_room());
  return cuda_.allocate(device, kCublasLtWorkspaceBytes);
}

// cudaFree waits for what still uses it.
Status CublasLtWorkspaces::make_room() {
  const auto is_of_stream = [](const auto& each) { return each.first.capture == 0; };
  if (std::count_if(used_.begin(), used_.end(), is_of_stream) < kMostStreams) return Status::ok();
  const auto oldest = std::find_if(used_.rbegin(), used_.rend(), is_of_stream);
  CudaAddress const address = oldest->second;
  used_.erase(std::next(oldest).base());
  return cuda_.free(address);
}

}  // namespace tutti
