// On the host a lane is a thread: the rank's own multiplies, a second one gathers.
#include <algorithm>
#include <chrono>
#include <functional>
#include <semaphore>
#include <thread>

#include "base/try.hpp"
#include "bench/binding.hpp"
#include "bench/overlap/lanes.hpp"

namespace tutti::cli {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// A thread that does one thing at a time, on a core beside its rank's where there are enough.
class SecondThread {
 public:
  SecondThread(int rank, int ranks) : thread_([this, rank, ranks] { live(rank, ranks); }) {}
  ~SecondThread() {
    work_ = nullptr;
    begin_.release();
    thread_.join();
  }
  SecondThread(const SecondThread&) = delete;
  SecondThread& operator=(const SecondThread&) = delete;

  void start(std::function<Status()> work) {
    work_ = std::move(work);
    begin_.release();
  }
  Status wait() {
    done_.acquire();
    return std::move(result_);
  }

 private:
  void live(int rank, int ranks) {
    bind_to_core(2 * rank + 1, 2 * ranks);
    for (begin_.acquire(); work_; begin_.acquire()) {
      result_ = work_();
      done_.release();
    }
  }

  std::function<Status()> work_;
  Status result_;
  std::binary_semaphore begin_{0}, done_{0};
  std::thread thread_;  // last: it uses all others
};

class HostLanes final : public Lanes {
 public:
  HostLanes(Communicator& communicator, const OverlapOptions& options, const Operands& operands,
            std::unique_ptr<LibraryMatmul> matmul)
      : communicator_(communicator),
        operands_(operands),
        matmul_(std::move(matmul)),
        dependent_(options.dependent),
        pause_(options.pause_ms),
        second_(communicator.rank(), communicator.size()) {}

  Status open() {
    TUTTI_ASSIGN(barrier_, communicator_.allocate(sizeof(float)));
    return Status::ok();
  }

  int rounds_at_once() const override { return 1; }

  Status sample(std::span<Act* const> acts, int rounds, bool poison) override {
    for (int round = 0; round < rounds; ++round) {
      for (Act* act : acts) {
        if (poison) fill_outputs(*act);
        std::this_thread::sleep_for(pause_);
        TUTTI_TRY(align());
        LaneTimes times;
        TUTTI_TRY(time_once(*act, times));
        act->samples.push_back(times);
      }
    }
    return Status::ok();
  }

 private:
  void fill_outputs(const Act& act) const {
    const auto fill = [](std::byte* at, std::size_t bytes) {
      std::fill(at, at + bytes, std::byte{kPoison});
    };
    if (multiplies(act.phase)) fill(operands_.places().c, operands_.product_bytes());
    if (!gathers(act.phase)) return;
    for (const auto run : operands_.written_by_gather()) fill(run.data(), run.size());
  }

  // An all-reduce of one element ends when every rank has begun it.
  Status align() {
    return all_reduce(communicator_,
                      {.input = barrier_.data(), .output = barrier_.data(), .count = 1});
  }

  Status multiply(double& time) {
    const auto start = Clock::now();
    const auto& places = operands_.places();
    TUTTI_TRY(matmul_->run({places.a, places.b, places.c}, nullptr));
    time = microseconds_since(start);
    return Status::ok();
  }

  Status gather(const AllGather& call, double& time) {
    const auto start = Clock::now();
    TUTTI_TRY(all_gather(communicator_, call));
    time = microseconds_since(start);
    return Status::ok();
  }

  Status run(const Act& act, LaneTimes& times) {
    if (act.phase == Phase::kOverlap) {
      second_.start([&] { return gather(act.gather, times.gather); });
      const Status multiplied = multiply(times.matmul);
      TUTTI_TRY(second_.wait());
      return multiplied;
    }
    if (gathers(act.phase) && dependent_) TUTTI_TRY(gather(act.gather, times.gather));
    if (multiplies(act.phase)) TUTTI_TRY(multiply(times.matmul));
    if (gathers(act.phase) && !dependent_) TUTTI_TRY(gather(act.gather, times.gather));
    return Status::ok();
  }

  Status time_once(const Act& act, LaneTimes& times) {
    const auto start = Clock::now();
    TUTTI_TRY(run(act, times));
    times.total = microseconds_since(start);
    return Status::ok();
  }

  Communicator& communicator_;
  const Operands& operands_;
  const std::unique_ptr<LibraryMatmul> matmul_;
  const bool dependent_;
  const std::chrono::milliseconds pause_;
  SymmetricMemory barrier_;
  SecondThread second_;
};

}  // namespace

Result<std::unique_ptr<Lanes>> make_host_lanes(Communicator& communicator,
                                               const OverlapOptions& options,
                                               const Operands& operands,
                                               std::unique_ptr<LibraryMatmul> matmul) {
  auto lanes = std::make_unique<HostLanes>(communicator, options, operands, std::move(matmul));
  TUTTI_TRY(lanes->open());
  return std::unique_ptr<Lanes>(std::move(lanes));
}

}  // namespace tutti::cli
