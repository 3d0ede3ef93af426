#include "bench/calibration.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/bytes.hpp"
#include "base/deadline.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti::cli {
namespace {

// What is made here is given back when the object goes; a failure to do so changes no figure.
class Lane {
 public:
  static Result<Lane> open(CudaDriver& cuda, int device, int peer) {
    Lane lane(cuda);
    TUTTI_TRY(cuda.set_device(device));
    if (peer >= 0) TUTTI_TRY(cuda.enable_peer_access(device, peer));
    TUTTI_ASSIGN(lane.stream, cuda.create_stream(device));
    TUTTI_ASSIGN(lane.memory, cuda.allocate(device, 4 * KiB));
    TUTTI_TRY(cuda.set_async(lane.memory, 0, 4 * KiB, lane.stream));
    TUTTI_TRY(cuda.synchronize(lane.stream));
    lane.device = device;
    return lane;
  }
  Lane(Lane&& other) noexcept
      : device(other.device), stream(other.stream), memory(other.memory), cuda_(other.cuda_) {
    other.stream = nullptr;
    other.memory = nullptr;
  }
  Lane& operator=(Lane&&) = delete;
  ~Lane() {
    if (memory != nullptr) static_cast<void>(cuda_.free(memory).is_ok());
    if (stream != nullptr) static_cast<void>(cuda_.destroy_stream(stream).is_ok());
  }

  int device = -1;
  Stream stream = nullptr;
  CudaAddress memory = nullptr;

 private:
  explicit Lane(CudaDriver& cuda) : cuda_(cuda) {}
  CudaDriver& cuda_;
};

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

struct Timing {
  CudaEvent start = nullptr, end = nullptr;
  CudaGraph graph = nullptr;
  CudaGraphExec exec = nullptr;
};

Status measure_gap(CudaDriver& cuda, const Lane& lane, Timing& timing, double& gap_us) {
  constexpr int kKernels = 100, kReplays = 21;
  TUTTI_ASSIGN(timing.start, cuda.create_event(true));
  TUTTI_ASSIGN(timing.end, cuda.create_event(true));
  TUTTI_TRY(cuda.begin_capture(lane.stream));
  Status launched;
  for (int k = 0; k < kKernels && launched.is_ok(); ++k) {
    launched = cuda.launch({.kernel = empty_kernel(), .stream = lane.stream});
  }
  TUTTI_ASSIGN(timing.graph, cuda.end_capture(lane.stream));
  TUTTI_TRY(launched);
  TUTTI_ASSIGN(timing.exec, cuda.instantiate(timing.graph));
  std::vector<double> samples;
  for (int replay = 0; replay < kReplays; ++replay) {
    TUTTI_TRY(cuda.record_event(timing.start, lane.stream));
    TUTTI_TRY(cuda.launch_graph(timing.exec, lane.stream));
    TUTTI_TRY(cuda.record_event(timing.end, lane.stream));
    TUTTI_TRY(cuda.synchronize(lane.stream));  // empty kernels end by themselves
    TUTTI_ASSIGN(const float time, cuda.elapsed_us(timing.start, timing.end));
    samples.push_back(static_cast<double>(time) / kKernels);
  }
  gap_us = median(std::move(samples));
  return Status::ok();
}

Result<double> kernel_gap(CudaDriver& cuda) {
  TUTTI_ASSIGN(const Lane lane, Lane::open(cuda, 0, -1));
  TUTTI_TRY(cuda.load_kernel(empty_kernel(), 0));
  Timing timing;
  double gap_us = 0;
  const Status status = measure_gap(cuda, lane, timing, gap_us);
  if (timing.exec != nullptr) TUTTI_TRY(cuda.destroy_graph_exec(timing.exec));
  if (timing.graph != nullptr) TUTTI_TRY(cuda.destroy_graph(timing.graph));
  if (timing.start != nullptr) TUTTI_TRY(cuda.destroy_event(timing.start));
  if (timing.end != nullptr) TUTTI_TRY(cuda.destroy_event(timing.end));
  TUTTI_TRY(status);
  return gap_us;
}

Status launch_ping(CudaDriver& cuda, const Lane& lane, const Lane& peer, std::uint32_t rounds) {
  Ping side{.mine = reinterpret_cast<std::uint32_t*>(lane.memory),
            .theirs = reinterpret_cast<std::uint32_t*>(peer.memory),
            .result = reinterpret_cast<std::uint64_t*>(lane.memory + 256),
            .rounds = rounds,
            .begins = lane.device == 0,
            .limit_ns = 1'000'000'000};
  std::array<void*, 1> arguments = {&side};
  TUTTI_TRY(cuda.set_device(lane.device));
  return cuda.launch(
      {.kernel = ping_kernel(), .arguments = arguments.data(), .stream = lane.stream});
}

// Zero where there is no pair of GPUs that reach each other.
Result<double> one_way_hop(CudaDriver& cuda) {
  constexpr std::uint32_t kRounds = 1000;
  TUTTI_ASSIGN(const int devices, cuda.device_count());
  if (devices < 2) return 0.0;
  TUTTI_ASSIGN(const bool there, cuda.can_access_peer(0, 1));
  TUTTI_ASSIGN(const bool back, cuda.can_access_peer(1, 0));
  if (!there || !back) return 0.0;
  TUTTI_ASSIGN(const Lane first, Lane::open(cuda, 0, 1));
  TUTTI_ASSIGN(const Lane second, Lane::open(cuda, 1, 0));
  for (const Lane* lane : {&first, &second}) {  // now, not behind a kernel that spins
    TUTTI_TRY(cuda.set_device(lane->device));
    TUTTI_TRY(cuda.load_kernel(ping_kernel(), 0));
  }
  TUTTI_TRY(launch_ping(cuda, first, second, kRounds));
  TUTTI_TRY(launch_ping(cuda, second, first, kRounds));
  TUTTI_TRY(cuda.synchronize(first.stream));  // ends by the kernel's own limit
  TUTTI_TRY(cuda.synchronize(second.stream));
  std::uint64_t nanoseconds = 0;
  TUTTI_TRY(cuda.copy(&nanoseconds, first.memory + 256, sizeof nanoseconds));
  if (nanoseconds == 0) {
    return Status(StatusCode::kTimeout,
                  "flags between GPUs 0 and 1 did not arrive; `tutti doctor` "
                  "checks each pair");
  }
  return static_cast<double>(nanoseconds) / 1e3 / (kRounds - 1) / 2;
}

}  // namespace

Result<Calibration> calibrate(CudaDriver& cuda) {
  if (empty_kernel() == nullptr) {
    return Status(StatusCode::kUnavailable, "this build has no CUDA kernels");
  }
  Calibration result;
  TUTTI_ASSIGN(result.kernel_gap_us, kernel_gap(cuda));
  TUTTI_ASSIGN(result.hop_us, one_way_hop(cuda));
  return result;
}

Calibration calibrate_host(std::size_t bytes) {
  constexpr int kWarmUp = 3, kMost = 200;
  const Bytes from(bytes, std::byte{1});
  Bytes to(bytes);
  std::vector<double> times;
  const Deadline enough(std::chrono::milliseconds(500));
  for (int k = 0; k < kWarmUp + kMost && (k <= kWarmUp || !enough.passed()); ++k) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    // The compiler must not leave out a copy that nobody looks at.
    __asm__ volatile("" : : "r"(to.data()) : "memory");
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (k >= kWarmUp) times.push_back(time.count());
  }
  return {.copy_gbps = algorithm_bandwidth(bytes, summarize(std::move(times)).p50),
          .copy_bytes = bytes};
}

}  // namespace tutti::cli
