// On a GPU a lane is a stream. Both begin at one event behind a small all-reduce that lets the
// ranks start together, and both end in the main one. Samples are enqueued ahead of the device, so
// that the host's launches are not part of what the events see.
//
// What is to overlap begins in the gather's stream: the matmul, which waits there for the event, is
// a microsecond later then. A matmul that had taken all multiprocessors would leave no room for the
// kernels of the gather, which the copies of a copy engine have as well.
#include <algorithm>
#include <chrono>
#include <thread>

#include "base/try.hpp"
#include "bench/cuda_wait.hpp"
#include "bench/overlap/clocks.hpp"
#include "bench/overlap/kernels.hpp"
#include "bench/overlap/lanes.hpp"

namespace tutti::cli {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kMostRoundsAtOnce = 16;
constexpr int kRunAhead = 3;  // untimed products that give the host a lead
constexpr Clock::duration kBatch = 1s;
constexpr std::chrono::nanoseconds kLead = 300us;  // likewise, behind a pause

// Of one sample. `begun` is where the matmul begins that overlaps. Clocks are read on the device
// before the matmul and behind it, if at all.
struct Marks {
  CudaEvent start = nullptr, begun = nullptr, multiplied = nullptr, gathered = nullptr,
            end = nullptr;
  ClockReading *before = nullptr, *after = nullptr;
};
constexpr std::size_t kMarks = 5;
constexpr std::size_t kReadingBytes = kMostMultiprocessors * sizeof(ClockReading);  // of one set

class CudaLanes final : public Lanes {
 public:
  CudaLanes(CudaDriver& cuda, Communicator& communicator, const OverlapOptions& options,
            const Operands& operands, std::unique_ptr<LibraryMatmul> matmul)
      : cuda_(cuda),
        communicator_(communicator),
        operands_(operands),
        matmul_(std::move(matmul)),
        dependent_(options.dependent),
        clocks_(options.clocks),
        pause_(options.pause_ms),
        patience_(2 * options.bench.timeout + 10s) {}

  // Nothing can be done about a failure here; one that matters has shown before.
  ~CudaLanes() override {
    if (ready_ != nullptr) events_.push_back(ready_);
    if (readings_ != nullptr) static_cast<void>(cuda_.free(readings_).is_ok());
    for (const CudaEvent event : events_) static_cast<void>(cuda_.destroy_event(event).is_ok());
    for (const Stream stream : {side_, main_}) {
      if (stream != nullptr) static_cast<void>(cuda_.destroy_stream(stream).is_ok());
    }
  }
  CudaLanes(const CudaLanes&) = delete;
  CudaLanes& operator=(const CudaLanes&) = delete;

  Status open() {
    const int device = communicator_.device();
    TUTTI_TRY(cuda_.set_device(device));
    TUTTI_ASSIGN(main_, cuda_.create_stream(device));
    TUTTI_ASSIGN(side_, cuda_.create_stream(device));
    TUTTI_ASSIGN(ready_, cuda_.create_event(false));
    TUTTI_ASSIGN(barrier_, communicator_.allocate(sizeof(float)));
    if (clocks_ || pause_ > 0ms) TUTTI_TRY(load_kernels());
    TUTTI_TRY(multiply());  // loads its kernel, before any other spins
    return wait();
  }

  int rounds_at_once() const override { return rounds_at_once_; }

  Status sample(std::span<Act* const> acts, int rounds, bool poison) override {
    const auto begin = Clock::now();
    std::vector<Marks> marks(acts.size() * static_cast<std::size_t>(rounds));
    TUTTI_TRY(make_events(marks));
    if (clocks_) TUTTI_TRY(make_readings(marks));
    for (int k = 0; pause_ == 0ms && k < kRunAhead; ++k) TUTTI_TRY(multiply());
    std::size_t next = 0;
    for (int round = 0; round < rounds; ++round) {
      for (const Act* act : acts) {
        if (pause_ > 0ms) TUTTI_TRY(rest());
        TUTTI_TRY(enqueue(*act, poison, marks[next++]));
      }
    }
    TUTTI_TRY(wait());
    if (clocks_) TUTTI_TRY(take_readings(marks.size()));
    next = 0;
    for (int round = 0; round < rounds; ++round) {
      for (Act* act : acts) {
        TUTTI_ASSIGN(const LaneTimes times, read(act->phase, marks[next++]));
        act->samples.push_back(times);
      }
    }
    const auto fit = kBatch / std::max<Clock::duration>((Clock::now() - begin) / rounds, 1us);
    rounds_at_once_ = static_cast<int>(std::clamp<Clock::rep>(fit, 1, kMostRoundsAtOnce));
    return Status::ok();
  }

 private:
  Status load_kernels() {
    if (clock_kernel() == nullptr) {
      return {StatusCode::kUnavailable, "this build has no CUDA kernels"};
    }
    TUTTI_ASSIGN(const auto properties, cuda_.properties(communicator_.device()));
    multiprocessors_ = properties.multiprocessors;
    TUTTI_TRY(cuda_.load_kernel(clock_kernel(), 0));
    return cuda_.load_kernel(hold_kernel(), 0);
  }

  // A sample has two sets of readings, one for each multiprocessor.
  Status make_readings(std::vector<Marks>& marks) {
    const std::size_t sets = 2 * marks.size(), bytes = sets * kReadingBytes;
    if (sets * kMostMultiprocessors > taken_.size()) {
      if (readings_ != nullptr) TUTTI_TRY(cuda_.free(readings_));
      readings_ = nullptr;
      TUTTI_ASSIGN(readings_, cuda_.allocate(communicator_.device(), bytes));
      taken_.resize(sets * kMostMultiprocessors);
    }
    TUTTI_TRY(cuda_.set_async(readings_, 0, bytes, main_));
    auto* at = reinterpret_cast<ClockReading*>(readings_);
    for (Marks& each : marks) {
      each.before = at;
      each.after = at + kMostMultiprocessors;
      at += 2 * kMostMultiprocessors;
    }
    return Status::ok();
  }

  Status take_readings(std::size_t samples) {
    return cuda_.copy(taken_.data(), readings_, 2 * samples * kReadingBytes);
  }

  double megahertz_of(const Marks& marks) const {
    const auto set = [&](const ClockReading* at) {
      const auto index = at - reinterpret_cast<const ClockReading*>(readings_);
      return std::span(taken_).subspan(static_cast<std::size_t>(index), kMostMultiprocessors);
    };
    return mean_megahertz(set(marks.before), set(marks.after));
  }

  Status read_clocks(ClockReading* into) {
    if (!clocks_) return Status::ok();
    void* arguments[] = {&into};
    return cuda_.launch({.kernel = clock_kernel(),
                         .blocks = multiprocessors_,
                         .arguments = arguments,
                         .stream = main_});
  }

  // The GPU has nothing to do, and then what gives the host a lead.
  Status rest() {
    TUTTI_TRY(wait());
    std::this_thread::sleep_for(pause_);
    std::uint64_t nanoseconds = kLead.count();
    void* arguments[] = {&nanoseconds};
    return cuda_.launch({.kernel = hold_kernel(), .arguments = arguments, .stream = main_});
  }

  Status make_events(std::vector<Marks>& marks) {
    while (events_.size() < kMarks * marks.size()) {
      TUTTI_ASSIGN(const CudaEvent event, cuda_.create_event(true));
      events_.push_back(event);
    }
    for (std::size_t k = 0; k < marks.size(); ++k) {
      const CudaEvent* const at = &events_[kMarks * k];
      marks[k] = {
          .start = at[0], .begun = at[1], .multiplied = at[2], .gathered = at[3], .end = at[4]};
    }
    return Status::ok();
  }

  Status multiply() {
    const auto& places = operands_.places();
    return matmul_->run({places.a, places.b, places.c}, main_);
  }

  Status multiply(const Marks& marks) {
    TUTTI_TRY(multiply());
    TUTTI_TRY(cuda_.record_event(marks.multiplied, main_));
    return read_clocks(marks.after);
  }

  Status gather(AllGather call, Stream stream, const Marks& marks) {
    call.stream = stream;
    TUTTI_TRY(all_gather(communicator_, call));
    return cuda_.record_event(marks.gathered, stream);
  }

  Status poison_outputs(const Act& act) {
    const auto& places = operands_.places();
    if (multiplies(act.phase)) {
      TUTTI_TRY(cuda_.set_async(places.c, kPoison, operands_.product_bytes(), main_));
    }
    if (!gathers(act.phase)) return Status::ok();
    for (const std::span<std::byte> run : operands_.written_by_gather()) {
      if (run.empty()) continue;
      TUTTI_TRY(cuda_.set_async(run.data(), kPoison, run.size(), main_));
    }
    return Status::ok();
  }

  Status run(const Act& act, const Marks& marks) {
    if (act.phase == Phase::kOverlap) {
      TUTTI_TRY(gather(act.gather, side_, marks));
      TUTTI_TRY(cuda_.wait_event(main_, marks.start));
      TUTTI_TRY(read_clocks(marks.before));
      TUTTI_TRY(cuda_.record_event(marks.begun, main_));
      TUTTI_TRY(multiply(marks));
      return cuda_.wait_event(main_, marks.gathered);
    }
    if (gathers(act.phase) && dependent_) TUTTI_TRY(gather(act.gather, main_, marks));
    if (multiplies(act.phase)) TUTTI_TRY(multiply(marks));
    if (gathers(act.phase) && !dependent_) TUTTI_TRY(gather(act.gather, main_, marks));
    return Status::ok();
  }

  Status enqueue(const Act& act, bool poison, const Marks& marks) {
    if (poison) TUTTI_TRY(poison_outputs(act));
    const Stream first = act.phase == Phase::kOverlap ? side_ : main_;
    if (first != main_) {
      TUTTI_TRY(cuda_.record_event(ready_, main_));
      TUTTI_TRY(cuda_.wait_event(first, ready_));
    }
    TUTTI_TRY(all_reduce(
        communicator_,
        {.input = barrier_.data(), .output = barrier_.data(), .count = 1, .stream = first}));
    // Where the matmul comes behind the all_gather nothing is to lie between the two.
    const bool is_first = act.phase == Phase::kMatmul || act.phase == Phase::kSequential;
    if (is_first && !dependent_) TUTTI_TRY(read_clocks(marks.before));
    TUTTI_TRY(cuda_.record_event(marks.start, first));
    TUTTI_TRY(run(act, marks));
    return cuda_.record_event(marks.end, main_);
  }

  Result<LaneTimes> read(Phase phase, const Marks& marks) {
    LaneTimes times;
    const auto between = [&](double& into, CudaEvent from, CudaEvent to) {
      TUTTI_ASSIGN(const float us, cuda_.elapsed_us(from, to));
      into = static_cast<double>(us);
      return Status::ok();
    };
    CudaEvent before_product = marks.start, before_gather = marks.start;
    if (phase == Phase::kOverlap) before_product = marks.begun;
    if (phase == Phase::kSequential && dependent_) before_product = marks.gathered;
    if (phase == Phase::kSequential && !dependent_) before_gather = marks.multiplied;
    TUTTI_TRY(between(times.total, marks.start, marks.end));
    if (multiplies(phase)) {
      TUTTI_TRY(between(times.matmul, before_product, marks.multiplied));
      if (clocks_) times.megahertz = megahertz_of(marks);
    }
    if (gathers(phase)) {
      TUTTI_TRY(between(times.gather, before_gather, marks.gathered));
    }
    return times;
  }

  Status wait() { return wait_for(cuda_, communicator_, main_, patience_); }

  CudaDriver& cuda_;
  Communicator& communicator_;
  const Operands& operands_;
  const std::unique_ptr<LibraryMatmul> matmul_;
  const bool dependent_, clocks_;
  const std::chrono::milliseconds pause_;
  const std::chrono::milliseconds patience_;
  Stream main_ = nullptr, side_ = nullptr;
  SymmetricMemory barrier_;
  CudaEvent ready_ = nullptr;  // the main stream has come to a sample; of one after the other
  std::vector<CudaEvent> events_;
  int multiprocessors_ = 0;
  CudaAddress readings_ = nullptr;   // on the device
  std::vector<ClockReading> taken_;  // from there
  int rounds_at_once_ = 1;  // this rank's own affair: batches differ in nothing that others see
};

}  // namespace

Result<std::unique_ptr<Lanes>> make_cuda_lanes(CudaDriver& cuda, Communicator& communicator,
                                               const OverlapOptions& options,
                                               const Operands& operands,
                                               std::unique_ptr<LibraryMatmul> matmul) {
  auto lanes =
      std::make_unique<CudaLanes>(cuda, communicator, options, operands, std::move(matmul));
  TUTTI_TRY(lanes->open());
  return std::unique_ptr<Lanes>(std::move(lanes));
}

}  // namespace tutti::cli
