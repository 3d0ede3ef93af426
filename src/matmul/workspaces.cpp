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
  for (const Lease& each : used_) {
    if (each->user_.capture != 0) continue;
    if (each->ended_ != nullptr) static_cast<void>(cuda_.destroy_event(each->ended_).is_ok());
    static_cast<void>(cuda_.free(each->address_).is_ok());
  }
}

CublasLtWorkspace CublasLtWorkspaces::workspace(const Lease& lease) {
  return {lease->address_, kCublasLtWorkspaceBytes};
}

Result<CublasLtWorkspaces::Lease> CublasLtWorkspaces::of(int device, Stream stream,
                                                         const CudaCapture& capture) {
  const User user{device, stream, thread_of(stream), capture.id};
  const std::lock_guard lock(mutex_);
  take_back();
  const auto found = std::find_if(used_.begin(), used_.end(),
                                  [&](const Lease& each) { return each->user_ == user; });
  if (found != used_.end()) {
    used_.splice(used_.begin(), used_, found);
    return used_.front();
  }
  if (!take_over(user)) TUTTI_TRY(add(user));
  if (user.capture != 0) {
    CudaAddress const address = used_.front()->address_;
    const Status kept = cuda_.retain_on_graph(
        capture.graph, [returned = returned_, address] { returned->add(address); });
    if (!kept.is_ok()) returned_->add(address);
    TUTTI_TRY(kept);
  }
  return used_.front();
}

void CublasLtWorkspaces::take_back() {
  const std::lock_guard lock(returned_->mutex);
  for (CudaAddress const address : std::exchange(returned_->addresses, {})) {
    const auto used = std::find_if(used_.begin(), used_.end(),
                                   [&](const Lease& each) { return each->address_ == address; });
    spare_.emplace_back((*used)->user_.device, address);
    used_.erase(used);
  }
}

// In front of the others.
Status CublasLtWorkspaces::add(const User& user) {
  const auto spare = std::find_if(spare_.begin(), spare_.end(),
                                  [&](const auto& each) { return each.first == user.device; });
  if (spare != spare_.end()) {
    used_.push_front(std::make_shared<Held>(user, spare->second));
    spare_.erase(spare);
    return Status::ok();
  }
  TUTTI_ASSIGN(CudaAddress const address, cuda_.allocate(user.device, kCublasLtWorkspaceBytes));
  used_.push_front(std::make_shared<Held>(user, address));
  return Status::ok();
}

// The one of a stream that was not used for longest, of those whose products have ended.
bool CublasLtWorkspaces::take_over(const User& user) {
  if (user.capture != 0 || count_streams(user.device) < kMostStreams) return false;
  const auto found = std::find_if(used_.rbegin(), used_.rend(), [&](const Lease& each) {
    return each->user_.device == user.device && has_ended(each);
  });
  if (found == used_.rend()) return false;
  (*found)->user_ = user;
  used_.splice(used_.begin(), used_, std::next(found).base());
  return true;
}

std::ptrdiff_t CublasLtWorkspaces::count_streams(int device) const {
  return std::count_if(used_.begin(), used_.end(), [&](const Lease& each) {
    return each->user_.device == device && each->user_.capture == 0;
  });
}

// And nobody holds it, to enqueue another one. The event of a capture's is never recorded.
bool CublasLtWorkspaces::has_ended(const Lease& lease) {
  if (lease.use_count() > 1 || !lease->is_recorded_) return false;
  const auto finished = cuda_.event_finished(lease->ended_);
  return finished.is_ok() && *finished;
}

// A failure means that the workspace stays with its stream.
void CublasLtWorkspaces::used(const Lease& lease) {
  if (lease->user_.capture != 0) return;
  {
    const std::lock_guard lock(mutex_);
    lease->is_recorded_ = false;
    if (count_streams(lease->user_.device) < kMostStreams) return;
    if (lease->ended_ == nullptr) {
      const auto event = cuda_.create_event(false);
      if (!event.is_ok()) return;
      lease->ended_ = *event;
    }
  }
  const bool is_recorded = cuda_.record_event(lease->ended_, lease->user_.stream).is_ok();
  const std::lock_guard lock(mutex_);
  lease->is_recorded_ = is_recorded;
}

}  // namespace tutti
