#include "doctor/transfer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "bench/statistics.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kCheckedBytes = 1 * MiB, kTimedBytes = 64 * MiB;
constexpr int kCopies = 8;

// Device memory, a stream and two events; given back when the object goes.
class Workspace {
 public:
  explicit Workspace(CudaDriver& cuda) : cuda_(cuda) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() {
    for (CudaAddress address : memory) {
      if (address != nullptr) static_cast<void>(cuda_.free(address).is_ok());
    }
    for (CudaEvent event : events) {
      if (event != nullptr) static_cast<void>(cuda_.destroy_event(event).is_ok());
    }
    if (stream != nullptr) static_cast<void>(cuda_.destroy_stream(stream).is_ok());
  }

  Status open(int from, int to) {
    TUTTI_ASSIGN(memory[1], cuda_.allocate(to, kTimedBytes));
    TUTTI_ASSIGN(memory[0], cuda_.allocate(from, kTimedBytes));
    TUTTI_TRY(cuda_.set_device(from));
    TUTTI_TRY(cuda_.enable_peer_access(from, to));
    TUTTI_ASSIGN(stream, cuda_.create_stream(from));
    for (CudaEvent& event : events) {
      TUTTI_ASSIGN(event, cuda_.create_event(true));
    }
    return Status::ok();
  }

  std::array<CudaAddress, 2> memory{};
  std::array<CudaEvent, 2> events{};
  Stream stream = nullptr;

 private:
  CudaDriver& cuda_;
};

// A pattern of the pair's own: what another pair left behind is not taken for it.
Bytes pattern(int from, int to) {
  Bytes bytes(kCheckedBytes);
  auto state = static_cast<std::uint32_t>(from * 64 + to + 1);
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

Status check(CudaDriver& cuda, const Workspace& space, const Bytes& sent) {
  TUTTI_TRY(cuda.copy(space.memory[0], sent.data(), sent.size()));
  TUTTI_TRY(cuda.copy_async(space.memory[1], space.memory[0], sent.size(), space.stream));
  TUTTI_TRY(cuda.synchronize(space.stream));
  Bytes received(sent.size());
  TUTTI_TRY(cuda.copy(received.data(), space.memory[1], received.size()));
  const auto differ = std::mismatch(sent.begin(), sent.end(), received.begin()).first;
  if (differ == sent.end()) return Status::ok();
  return {StatusCode::kUnavailable,
          fmt::format("data is lost without an error, first at byte {}", differ - sent.begin())};
}

Result<double> time_copies(CudaDriver& cuda, const Workspace& space) {
  TUTTI_TRY(cuda.record_event(space.events[0], space.stream));
  for (int k = 0; k < kCopies; ++k) {
    TUTTI_TRY(cuda.copy_async(space.memory[1], space.memory[0], kTimedBytes, space.stream));
  }
  TUTTI_TRY(cuda.record_event(space.events[1], space.stream));
  TUTTI_TRY(cuda.synchronize(space.stream));
  TUTTI_ASSIGN(const float time, cuda.elapsed_us(space.events[0], space.events[1]));
  return algorithm_bandwidth(kTimedBytes * kCopies, static_cast<double>(time));
}

Status try_pair(CudaDriver& cuda, PeerTransfer& transfer) {
  TUTTI_ASSIGN(transfer.allowed, cuda.can_access_peer(transfer.from, transfer.to));
  if (!transfer.allowed) return {StatusCode::kUnavailable, "the driver allows no peer access"};
  Workspace space(cuda);
  TUTTI_TRY(space.open(transfer.from, transfer.to));
  TUTTI_TRY(check(cuda, space, pattern(transfer.from, transfer.to)));
  transfer.intact = true;
  TUTTI_ASSIGN(transfer.gbps, time_copies(cuda, space));
  return Status::ok();
}

}  // namespace

std::vector<PeerTransfer> try_transfers(CudaDriver& cuda, int gpus) {
  std::vector<PeerTransfer> transfers;
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      if (from == to) continue;
      PeerTransfer transfer{.from = from, .to = to};
      if (const Status status = try_pair(cuda, transfer); !status.is_ok()) {
        transfer.why = status.message();
      }
      transfers.push_back(std::move(transfer));
    }
  }
  return transfers;
}

}  // namespace tutti::cli
