// A sample is a replay of a graph between two events, or a row of calls. Samples are enqueued ahead
// of the device, and around each a kernel reads the clock of every SM. Where the host may need
// longer for calls than the device, a kernel that only lets time pass is in front of the sample, so
// that all of it is enqueued when it begins.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "base/deadline.hpp"
#include "base/try.hpp"
#include "bench/matmul/device.hpp"
#include "bench/overlap/clocks.hpp"
#include "bench/overlap/kernels.hpp"
#include "drivers/nvml.hpp"

namespace tutti::cli {
namespace {

constexpr int kRoundsAtOnce = 4, kRoundsOfCallsAtOnce = 2;
constexpr std::chrono::seconds kPatience{60};  // with a batch, which takes a second at most

// Of one sample. Clocks are read on the device before the first event and after the second.
struct SampleMarks {
  CudaEvent start = nullptr, end = nullptr;
  ClockReading *before = nullptr, *after = nullptr;
};
constexpr std::size_t kBytesOfReading = kMostMultiprocessors * sizeof(ClockReading);

struct CapturedGraph {
  explicit CapturedGraph(CudaDriver& driver) : cuda(driver) {}
  // Nothing can be done about a failure here; one that matters shows in the next call.
  ~CapturedGraph() {
    if (exec != nullptr) static_cast<void>(cuda.destroy_graph_exec(exec).is_ok());
    if (graph != nullptr) static_cast<void>(cuda.destroy_graph(graph).is_ok());
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  CudaDriver& cuda;
  CudaGraph graph = nullptr;
  CudaGraphExec exec = nullptr;
};

// What is in front of a row of calls.
struct CalledOperations {
  std::size_t sets = 1;
  std::uint64_t hold_ns = 0;  // that the device waits for the host
};
constexpr double kLeadUs = 30, kMostLeadUs = 20'000;

double microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

// Of calls that take the host and the device so long; the device's time is at least the host's if
// it had to wait for it.
std::uint64_t hold_ns_for(double host_us, double device_us, int calls) {
  double lead = kLeadUs;
  if (2 * host_us > device_us) lead += 1.25 * host_us * calls;
  return static_cast<std::uint64_t>(1e3 * std::min(lead, kMostLeadUs));
}

class CudaMatmulDevice final : public MatmulDevice {
 public:
  CudaMatmulDevice(CudaDriver& cuda, NvmlDriver* nvml, const MatmulLaunch& launch)
      : cuda_(cuda), nvml_(nvml), launch_(launch) {}
  ~CudaMatmulDevice() override {
    for (const auto& [start, end, before, after] : marks_) {
      static_cast<void>(cuda_.destroy_event(start).is_ok());
      static_cast<void>(cuda_.destroy_event(end).is_ok());
    }
    if (readings_ != nullptr) static_cast<void>(cuda_.free(readings_).is_ok());
    if (stream_ != nullptr) static_cast<void>(cuda_.destroy_stream(stream_).is_ok());
  }
  CudaMatmulDevice(const CudaMatmulDevice&) = delete;
  CudaMatmulDevice& operator=(const CudaMatmulDevice&) = delete;

  Status open() {
    TUTTI_ASSIGN(device_, cuda_.current_device());
    TUTTI_TRY(cuda_.set_device(device_));
    TUTTI_ASSIGN(properties_, cuda_.properties(device_));
    TUTTI_ASSIGN(stream_, cuda_.create_stream(device_));
    for (const void* kernel : {clock_kernel(), hold_kernel()}) {
      if (kernel != nullptr) TUTTI_TRY(cuda_.load_kernel(kernel, 0));
    }
    return Status::ok();
  }

  Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) override {
    TUTTI_ASSIGN(const CudaAddress address, cuda_.allocate(device_, bytes));
    return std::shared_ptr<std::byte>(
        address, [&cuda = cuda_](std::byte* at) { static_cast<void>(cuda.free(at).is_ok()); });
  }

  Status copy(void* to, const void* from, std::size_t bytes) override {
    return cuda_.copy(to, from, bytes);
  }

  Status fill(std::byte* at, std::uint8_t value, std::size_t bytes) override {
    return cuda_.set_async(at, value, bytes, stream_);
  }

  std::size_t rotated_bytes() const override { return 2 * properties_.l2_bytes; }
  int multiprocessors() const override { return properties_.multiprocessors; }
  double operations_per_cycle() const override {
    constexpr int kHopper = 9;
    constexpr double kOfHopper = 4096;  // dense, of an SM
    return properties_.compute_major == kHopper ? kOfHopper * properties_.multiprocessors : 0;
  }

  Result<bool> agreed(bool mine) override {
    return launch_.ranks == nullptr ? mine : agreed_by(*launch_.ranks, mine);
  }

  Status prepare(MatmulArm& arm, std::size_t sets) override {
    TUTTI_TRY(run_in_turn(arm, 1, sets));  // loads its kernels, which a capture may not do
    TUTTI_TRY(wait());
    TUTTI_TRY(make_marks(1));
    const SampleMarks& marks = marks_.front();
    TUTTI_TRY(cuda_.record_event(marks.start, stream_));
    arm.host_us.clear();
    TUTTI_TRY(run_in_turn(arm, 1, sets));
    TUTTI_TRY(cuda_.record_event(marks.end, stream_));
    TUTTI_TRY(wait());
    TUTTI_ASSIGN(const float time, cuda_.elapsed_us(marks.start, marks.end));
    const auto device_us = static_cast<double>(time);
    if (launch_.calls > 0) {
      arm.operations = operations_of_calls(launch_.calls, sets);
      const std::uint64_t hold = hold_ns_for(arm.host_us.front(), device_us, arm.operations);
      arm.prepared =
          std::make_shared<CalledOperations>(CalledOperations{.sets = sets, .hold_ns = hold});
      return Status::ok();
    }
    arm.operations = operations_for(device_us, sets);
    return capture(arm, sets);
  }

  Status sample(std::span<MatmulArm* const> arms, int rounds) override {
    const int at_once = launch_.calls > 0 ? kRoundsOfCallsAtOnce : kRoundsAtOnce;
    for (int first = 0; first < rounds; first += at_once) {
      std::vector<MatmulArm*> order;
      for (int round = first; round < std::min(rounds, first + at_once); ++round) {
        if (round % 2 == 0) order.insert(order.end(), arms.begin(), arms.end());
        if (round % 2 != 0) order.insert(order.end(), arms.rbegin(), arms.rend());
      }
      TUTTI_TRY(sample_in_order(order));
    }
    return Status::ok();
  }

  double watts() override {
    const double mean = power_reads_ == 0 ? 0 : power_sum_ / power_reads_;
    power_sum_ = 0;
    power_reads_ = 0;
    return mean;
  }

 private:
  Status run_in_turn(MatmulArm& arm, int operations, std::size_t sets) {
    if (arm.begin) TUTTI_TRY(arm.begin(stream_));
    for (int k = 0; k < operations; ++k) {
      const auto start = std::chrono::steady_clock::now();
      TUTTI_TRY(arm.run(static_cast<std::size_t>(k) % sets, stream_));
      if (launch_.calls > 0) arm.host_us.push_back(microseconds_since(start));
    }
    return Status::ok();
  }

  Status capture(MatmulArm& arm, std::size_t sets) {
    auto captured = std::make_shared<CapturedGraph>(cuda_);
    TUTTI_TRY(cuda_.begin_capture(stream_));
    const Status enqueued = run_in_turn(arm, arm.operations, sets);
    const auto graph = cuda_.end_capture(stream_);
    TUTTI_TRY(enqueued);
    TUTTI_TRY(graph.status());
    captured->graph = *graph;
    TUTTI_ASSIGN(captured->exec, cuda_.instantiate(captured->graph));
    arm.prepared = std::move(captured);
    return Status::ok();
  }

  // Lets the host come to a sample.
  Status hold_for(const MatmulArm& arm) {
    if (launch_.calls == 0 || hold_kernel() == nullptr) return Status::ok();
    std::uint64_t nanoseconds = static_cast<CalledOperations*>(arm.prepared.get())->hold_ns;
    void* arguments[] = {&nanoseconds};
    return cuda_.launch({.kernel = hold_kernel(), .arguments = arguments, .stream = stream_});
  }

  // Lets the other ranks come to it. No kernel may follow but the operations': theirs may leave no
  // room for it while they wait for this rank.
  Status align() { return launch_.ranks == nullptr ? Status::ok() : launch_.ranks->align(stream_); }

  Status start(MatmulArm& arm) {
    if (launch_.calls == 0) {
      return cuda_.launch_graph(static_cast<CapturedGraph*>(arm.prepared.get())->exec, stream_);
    }
    const auto* called = static_cast<CalledOperations*>(arm.prepared.get());
    return run_in_turn(arm, arm.operations, called->sets);
  }

  Status sample_in_order(const std::vector<MatmulArm*>& order) {
    TUTTI_TRY(make_marks(order.size()));
    TUTTI_TRY(cuda_.set_async(readings_, 0, 2 * order.size() * kBytesOfReading, stream_));
    for (std::size_t k = 0; k < order.size(); ++k) {
      const SampleMarks& marks = marks_[k];
      TUTTI_TRY(hold_for(*order[k]));
      TUTTI_TRY(read_clocks(marks.before));
      TUTTI_TRY(align());
      TUTTI_TRY(cuda_.record_event(marks.start, stream_));
      TUTTI_TRY(start(*order[k]));
      TUTTI_TRY(cuda_.record_event(marks.end, stream_));
      TUTTI_TRY(read_clocks(marks.after));
    }
    read_power();
    TUTTI_TRY(wait());
    std::vector<ClockReading> readings(2 * order.size() * kMostMultiprocessors);
    TUTTI_TRY(cuda_.copy(readings.data(), readings_, 2 * order.size() * kBytesOfReading));
    const std::span<const ClockReading> all(readings);
    for (std::size_t k = 0; k < order.size(); ++k) {
      TUTTI_ASSIGN(const float time, cuda_.elapsed_us(marks_[k].start, marks_[k].end));
      order[k]->samples_us.push_back(static_cast<double>(time) / order[k]->operations);
      const auto sets = all.subspan(2 * k * kMostMultiprocessors, 2 * kMostMultiprocessors);
      const double megahertz =
          mean_megahertz(sets.first(kMostMultiprocessors), sets.last(kMostMultiprocessors));
      if (megahertz > 0) order[k]->megahertz.push_back(megahertz);
    }
    return Status::ok();
  }

  // For so many samples. Places of readings move as they grow in number.
  Status make_marks(std::size_t samples) {
    if (samples <= marks_.size()) return Status::ok();
    if (readings_ != nullptr) TUTTI_TRY(cuda_.free(std::exchange(readings_, nullptr)));
    TUTTI_ASSIGN(readings_, cuda_.allocate(device_, 2 * samples * kBytesOfReading));
    while (marks_.size() < samples) {
      SampleMarks marks;
      TUTTI_ASSIGN(marks.start, cuda_.create_event(true));
      TUTTI_ASSIGN(marks.end, cuda_.create_event(true));
      marks_.push_back(marks);
    }
    auto* at = reinterpret_cast<ClockReading*>(readings_);
    for (SampleMarks& marks : marks_) {
      marks.before = at;
      marks.after = at + kMostMultiprocessors;
      at += 2 * kMostMultiprocessors;
    }
    return Status::ok();
  }

  Status read_clocks(ClockReading* into) {
    if (clock_kernel() == nullptr) return Status::ok();
    void* arguments[] = {&into};
    return cuda_.launch({.kernel = clock_kernel(),
                         .blocks = properties_.multiprocessors,
                         .arguments = arguments,
                         .stream = stream_});
  }

  // While the device is at work.
  void read_power() {
    if (nvml_ == nullptr) return;
    const auto watts = nvml_->watts(properties_.pci_bus_id);
    if (!watts.is_ok()) return;
    power_sum_ += *watts;
    ++power_reads_;
  }

  Status wait() {
    const Deadline late(kPatience);
    while (true) {
      if (launch_.ranks != nullptr) TUTTI_TRY(launch_.ranks->status());
      TUTTI_ASSIGN(const bool finished, cuda_.stream_finished(stream_));
      if (finished) return Status::ok();
      if (late.passed()) return {StatusCode::kTimeout, "a matmul did not end within 60 s"};
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  CudaDriver& cuda_;
  NvmlDriver* nvml_;
  const MatmulLaunch launch_;
  int device_ = 0;
  CudaDeviceProperties properties_;
  Stream stream_ = nullptr;
  std::vector<SampleMarks> marks_;
  CudaAddress readings_ = nullptr;  // two sets of each sample
  double power_sum_ = 0;
  int power_reads_ = 0;
};

}  // namespace

Result<std::unique_ptr<MatmulDevice>> make_cuda_matmul_device(CudaDriver& cuda, NvmlDriver* nvml,
                                                              const MatmulLaunch& launch) {
  auto device = std::make_unique<CudaMatmulDevice>(cuda, nvml, launch);
  TUTTI_TRY(device->open());
  return std::unique_ptr<MatmulDevice>(std::move(device));
}

}  // namespace tutti::cli
