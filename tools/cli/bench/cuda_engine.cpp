// Time on the device: start event, operations, end event, all in one stream, behind a small
// all-reduce that lets the ranks start together. Samples are enqueued ahead of the device, so that
// the host's launches are not part of what the events see.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "bench/cuda_wait.hpp"
#include "bench/engine.hpp"
#include "bench/inputs.hpp"
#include "drivers/cuda.hpp"

namespace tutti::cli {
namespace {

constexpr int kRoundsAtOnce = 16;
constexpr int kRunAhead = 3;  // untimed samples that give the host a lead

class Graph : public PlannedOperation {
 public:
  explicit Graph(CudaDriver& cuda) : cuda_(cuda) {}
  // Nothing can be done about a failure here; one that matters shows in the next call.
  ~Graph() override {
    if (exec != nullptr) static_cast<void>(cuda_.destroy_graph_exec(exec).is_ok());
    if (graph != nullptr) static_cast<void>(cuda_.destroy_graph(graph).is_ok());
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  CudaGraph graph = nullptr;
  CudaGraphExec exec = nullptr;

 private:
  CudaDriver& cuda_;
};

struct Interval {
  CudaEvent start = nullptr, end = nullptr;
};

class CudaEngine : public Engine {
 public:
  CudaEngine(CudaDriver& cuda, Communicator& communicator, const BenchOptions& options)
      : cuda_(cuda),
        communicator_(communicator),
        graph_mode_(options.mode == Mode::kGraph),
        cold_(options.cache == Cache::kCold),
        timeout_(options.timeout) {}

  ~CudaEngine() override {
    for (const Interval& interval : intervals_) {
      static_cast<void>(cuda_.destroy_event(interval.start).is_ok());
      static_cast<void>(cuda_.destroy_event(interval.end).is_ok());
    }
    if (stream_ != nullptr) static_cast<void>(cuda_.destroy_stream(stream_).is_ok());
  }

  Status open() {
    TUTTI_TRY(cuda_.set_device(communicator_.device()));
    TUTTI_ASSIGN(const CudaDeviceProperties properties, cuda_.properties(communicator_.device()));
    cache_bytes_ = properties.l2_bytes;
    TUTTI_ASSIGN(stream_, cuda_.create_stream(communicator_.device()));
    if (cold_) {
      TUTTI_ASSIGN(flush_, allocate(2 * cache_bytes_));
    }
    return open_barrier();
  }

  Result<std::shared_ptr<std::byte>> allocate(std::size_t bytes) override {
    TUTTI_ASSIGN(CudaAddress address,
                 cuda_.allocate(communicator_.device(), std::max<std::size_t>(bytes, 1)));
    return std::shared_ptr<std::byte>(
        address, [&cuda = cuda_](std::byte* at) { static_cast<void>(cuda.free(at).is_ok()); });
  }

  Status write(std::byte* to, ByteView from) override {
    return from.empty() ? Status::ok() : cuda_.copy(to, from.data(), from.size());
  }

  Status read(std::span<std::byte> to, const std::byte* from) override {
    return to.empty() ? Status::ok() : cuda_.copy(to.data(), from, to.size());
  }

  Status prepare(Contender& contender) override {
    for (Operation& operation : contender.operations) set_stream(operation, stream_);
    if (!graph_mode_) return Status::ok();
    auto made = std::make_unique<Graph>(cuda_);
    TUTTI_TRY(cuda_.begin_capture(stream_));
    const Status status = run_operations(contender);
    auto graph = cuda_.end_capture(stream_);
    if (graph.is_ok()) made->graph = *graph;
    TUTTI_TRY(status);
    TUTTI_TRY(graph.status());
    TUTTI_ASSIGN(made->exec, cuda_.instantiate(made->graph));
    contender.prepared = std::move(made);
    return Status::ok();
  }

  Status sample(std::span<Contender* const> contenders, int rounds, bool poison) override {
    TUTTI_TRY(make_intervals(contenders.size() * static_cast<std::size_t>(rounds)));
    if (contenders.front()->repeatable) {
      for (int k = 0; k < kRunAhead; ++k) TUTTI_TRY(run(*contenders.front()));
    }
    std::size_t next = 0;
    for (int round = 0; round < rounds; ++round) {
      for (const Contender* contender : contenders) {
        TUTTI_TRY(enqueue(*contender, poison, intervals_[next++]));
      }
    }
    TUTTI_TRY(wait());
    next = 0;
    for (int round = 0; round < rounds; ++round) {
      for (Contender* contender : contenders) {
        const Interval& interval = intervals_[next++];
        TUTTI_ASSIGN(const float time, cuda_.elapsed_us(interval.start, interval.end));
        contender->samples_us.push_back(static_cast<double>(time) /
                                        static_cast<double>(contender->operations.size()));
      }
    }
    return Status::ok();
  }

  int rounds_at_once() const override { return kRoundsAtOnce; }
  std::size_t cache_bytes() const override { return cache_bytes_; }

 private:
  // Ranks on several nodes have no symmetric memory.
  Status open_barrier() {
    auto symmetric = communicator_.allocate(sizeof(float));
    if (symmetric.status().code() == StatusCode::kUnavailable) {
      TUTTI_ASSIGN(barrier_, allocate(sizeof(float)));
      return cuda_.set_async(barrier_.get(), 0, sizeof(float), stream_);
    }
    TUTTI_TRY(symmetric.status());
    const auto owner = std::make_shared<const SymmetricMemory>(*std::move(symmetric));
    barrier_ = {owner, static_cast<std::byte*>(owner->data())};
    return Status::ok();
  }

  Status make_intervals(std::size_t count) {
    while (intervals_.size() < count) {
      Interval interval;
      TUTTI_ASSIGN(interval.start, cuda_.create_event(true));
      TUTTI_ASSIGN(interval.end, cuda_.create_event(true));
      intervals_.push_back(interval);
    }
    return Status::ok();
  }

  Status run_operations(const Contender& contender) {
    for (const Operation& operation : contender.operations) {
      TUTTI_TRY(cli::run(communicator_, operation));
    }
    return Status::ok();
  }

  Status run(const Contender& contender) {
    if (!contender.prepared) return run_operations(contender);
    return cuda_.launch_graph(static_cast<const Graph&>(*contender.prepared).exec, stream_);
  }

  Status enqueue(const Contender& contender, bool poison, const Interval& interval) {
    if (poison) {
      for (const auto& output : contender.outputs) {
        if (output.empty()) continue;
        TUTTI_TRY(cuda_.set_async(output.data(), kPoison, output.size(), stream_));
      }
    }
    if (cold_) TUTTI_TRY(cuda_.set_async(flush_.get(), 0, 2 * cache_bytes_, stream_));
    TUTTI_TRY(all_reduce(
        communicator_,
        {.input = barrier_.get(), .output = barrier_.get(), .count = 1, .stream = stream_}));
    TUTTI_TRY(cuda_.record_event(interval.start, stream_));
    TUTTI_TRY(run(contender));
    return cuda_.record_event(interval.end, stream_);
  }

  Status wait() {
    return wait_for(cuda_, communicator_, stream_, 2 * timeout_ + std::chrono::seconds(10));
  }

  CudaDriver& cuda_;
  Communicator& communicator_;
  const bool graph_mode_, cold_;
  const std::chrono::milliseconds timeout_;
  std::size_t cache_bytes_ = 0;
  Stream stream_ = nullptr;
  std::shared_ptr<std::byte> flush_;
  std::shared_ptr<std::byte> barrier_;  // a float
  std::vector<Interval> intervals_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_cuda_engine(Communicator& communicator,
                                                 const BenchOptions& options) {
  std::string why;
  CudaDriver* cuda = real_cuda(&why);
  if (cuda == nullptr) return Status(StatusCode::kUnavailable, why);
  auto engine = std::make_unique<CudaEngine>(*cuda, communicator, options);
  TUTTI_TRY(engine->open());
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace tutti::cli
