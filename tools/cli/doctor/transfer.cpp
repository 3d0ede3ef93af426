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

constexpr std::size_t kCheckedBytes = 1 * MiB, kTimedBytes = 64 * MiB, kSmallBytes = 4;
constexpr int kCopies = 8, kSmallCopies = 100;

// Memory at both ends, a stream, events and a graph; given back when the object goes.
class Workspace {
 public:
  explicit Workspace(CudaDriver& cuda) : cuda_(cuda) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() {
    if (exec != nullptr) static_cast<void>(cuda_.destroy_graph_exec(exec).is_ok());
    if (graph != nullptr) static_cast<void>(cuda_.destroy_graph(graph).is_ok());
    for (CudaAddress address : device_memory_) {
      if (address != nullptr) static_cast<void>(cuda_.free(address).is_ok());
    }
    if (host_memory_ != nullptr) static_cast<void>(cuda_.free_mapped_host(host_memory_).is_ok());
    for (CudaEvent event : events) {
      if (event != nullptr) static_cast<void>(cuda_.destroy_event(event).is_ok());
    }
    if (stream != nullptr) static_cast<void>(cuda_.destroy_stream(stream).is_ok());
  }

  Status open(const Transfer& transfer) {
    const int runs_on = transfer.from == kHostEnd ? transfer.to : transfer.from;
    TUTTI_TRY(cuda_.set_device(runs_on));
    TUTTI_ASSIGN(to, allocate(transfer.to, 1));
    TUTTI_ASSIGN(from, allocate(transfer.from, 0));
    if (transfer.between_gpus()) {
      TUTTI_TRY(cuda_.enable_peer_access(transfer.from, transfer.to));
    }
    TUTTI_ASSIGN(stream, cuda_.create_stream(runs_on));
    for (CudaEvent& event : events) {
      TUTTI_ASSIGN(event, cuda_.create_event(true));
    }
    return Status::ok();
  }

  std::byte *from = nullptr, *to = nullptr;
  std::array<CudaEvent, 2> events{};
  Stream stream = nullptr;
  CudaGraph graph = nullptr;
  CudaGraphExec exec = nullptr;

 private:
  Result<std::byte*> allocate(int end, std::size_t index) {
    if (end == kHostEnd) {
      TUTTI_ASSIGN(host_memory_, cuda_.allocate_mapped_host(kTimedBytes));
      return host_memory_;
    }
    TUTTI_ASSIGN(device_memory_[index], cuda_.allocate(end, kTimedBytes));
    return device_memory_[index];
  }

  CudaDriver& cuda_;
  std::array<CudaAddress, 2> device_memory_{};
  std::byte* host_memory_ = nullptr;
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
  TUTTI_TRY(cuda.copy(space.from, sent.data(), sent.size()));
  TUTTI_TRY(cuda.copy_async(space.to, space.from, sent.size(), space.stream));
  TUTTI_TRY(cuda.synchronize(space.stream));
  Bytes received(sent.size());
  TUTTI_TRY(cuda.copy(received.data(), space.to, received.size()));
  const auto differ = std::mismatch(sent.begin(), sent.end(), received.begin()).first;
  if (differ == sent.end()) return Status::ok();
  return {StatusCode::kUnavailable,
          fmt::format("data is lost without an error, first at byte {}", differ - sent.begin())};
}

Status enqueue_copies(CudaDriver& cuda, const Workspace& space, std::size_t bytes, int copies) {
  for (int k = 0; k < copies; ++k) {
    TUTTI_TRY(cuda.copy_async(space.to, space.from, bytes, space.stream));
  }
  return Status::ok();
}

// Of what `enqueue` enqueues, in microseconds.
template <class Enqueue>
Result<double> time_of(CudaDriver& cuda, const Workspace& space, const Enqueue& enqueue) {
  TUTTI_TRY(cuda.record_event(space.events[0], space.stream));
  TUTTI_TRY(enqueue());
  TUTTI_TRY(cuda.record_event(space.events[1], space.stream));
  TUTTI_TRY(cuda.synchronize(space.stream));
  TUTTI_ASSIGN(const float time, cuda.elapsed_us(space.events[0], space.events[1]));
  return static_cast<double>(time);
}

// In a graph, so that what the host needs for a call does not count.
Result<double> time_small_copy(CudaDriver& cuda, Workspace& space) {
  TUTTI_TRY(cuda.begin_capture(space.stream));
  TUTTI_TRY(enqueue_copies(cuda, space, kSmallBytes, kSmallCopies));
  TUTTI_ASSIGN(space.graph, cuda.end_capture(space.stream));
  TUTTI_ASSIGN(space.exec, cuda.instantiate(space.graph));
  const auto launch = [&] { return cuda.launch_graph(space.exec, space.stream); };
  TUTTI_TRY(launch());  // the first launch uploads it
  TUTTI_ASSIGN(const double time, time_of(cuda, space, launch));
  return time / kSmallCopies;
}

Status try_one(CudaDriver& cuda, Transfer& transfer) {
  transfer.allowed = true;
  if (transfer.between_gpus()) {
    TUTTI_ASSIGN(transfer.allowed, cuda.can_access_peer(transfer.from, transfer.to));
  }
  if (!transfer.allowed) return {StatusCode::kUnavailable, "the driver allows no peer access"};
  Workspace space(cuda);
  TUTTI_TRY(space.open(transfer));
  TUTTI_TRY(check(cuda, space, pattern(transfer.from, transfer.to)));
  transfer.intact = true;
  const auto enqueue = [&] { return enqueue_copies(cuda, space, kTimedBytes, kCopies); };
  TUTTI_ASSIGN(const double time, time_of(cuda, space, enqueue));
  transfer.gbps = algorithm_bandwidth(kTimedBytes * kCopies, time);
  TUTTI_ASSIGN(transfer.latency_us, time_small_copy(cuda, space));
  return Status::ok();
}

std::vector<Transfer> all_transfers(int gpus) {
  std::vector<Transfer> all;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    all.push_back({.from = kHostEnd, .to = gpu});
    all.push_back({.from = gpu, .to = kHostEnd});
  }
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      if (from != to) all.push_back({.from = from, .to = to});
    }
  }
  return all;
}

std::string cell_of(const Transfer& transfer, double value, int decimals) {
  if (transfer.skipped) return "skipped";
  if (!transfer.intact) return "failed";
  return value > 0 ? fmt::format("{:.{}f}", value, decimals) : "n/a";
}

struct Matrix {
  std::string title;
  double Transfer::*value;
  int decimals;
};

std::string print_matrix(const Matrix& matrix, const std::vector<Transfer>& transfers) {
  int gpus = 0;
  for (const Transfer& transfer : transfers) gpus = std::max(gpus, transfer.to + 1);
  const auto cell = [&](int from, int to) -> std::string {
    const auto found = std::find_if(transfers.begin(), transfers.end(), [&](const Transfer& each) {
      return each.from == from && each.to == to;
    });
    return found == transfers.end() ? "-"
                                    : cell_of(*found, (*found).*matrix.value, matrix.decimals);
  };
  std::string text = fmt::format("{}\n{:12}", matrix.title, "from \\ to");
  for (int to = 0; to < gpus; ++to) text += fmt::format("{:>9}", fmt::format("GPU {}", to));
  text += fmt::format("{:>9}\n", "host");
  for (int from = 0; from <= gpus; ++from) {
    const bool host = from == gpus;
    text += fmt::format("{:12}", host ? "host" : fmt::format("GPU {}", from));
    for (int to = 0; to <= gpus; ++to) {
      text += fmt::format("{:>9}", cell(host ? kHostEnd : from, to == gpus ? kHostEnd : to));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<Transfer> try_transfers(CudaDriver& cuda, int gpus, std::chrono::milliseconds budget) {
  const auto end = std::chrono::steady_clock::now() + budget;
  std::vector<Transfer> transfers = all_transfers(gpus);
  for (Transfer& transfer : transfers) {
    transfer.skipped = std::chrono::steady_clock::now() >= end;
    if (transfer.skipped) continue;
    if (const Status status = try_one(cuda, transfer); !status.is_ok()) {
      transfer.why = status.message();
    }
  }
  return transfers;
}

std::string print_transfers(const std::vector<Transfer>& transfers) {
  if (transfers.empty()) return {};
  const std::string bytes = format_bytes(kTimedBytes);
  return print_matrix({fmt::format("bandwidth of copies of {}, one copy engine, GB/s", bytes),
                       &Transfer::gbps, 1},
                      transfers) +
         "\n" +
         print_matrix(
             {fmt::format("latency of a copy of {} bytes in a CUDA graph, us", kSmallBytes),
              &Transfer::latency_us, 2},
             transfers);
}

}  // namespace tutti::cli
