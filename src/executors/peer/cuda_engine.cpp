#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/deadline.hpp"
#include "base/guard.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "executors/copy_engine/cuda_stages.hpp"
#include "executors/peer/engine.hpp"
#include "executors/peer/one_sided.hpp"
#include "memory/device_scope.hpp"
#include "memory/rank_memory.hpp"
#include "memory/side_stream.hpp"

namespace tutti {
namespace {

class CudaEngine : public Engine {
 public:
  CudaEngine(CudaDriver& cuda, int device, Streams& streams)
      : cuda_(cuda), device_(device), streams_(streams), lanes_(cuda), one_sided_(cuda) {}

  ~CudaEngine() override {
    const DeviceScope scope(cuda_, device_);
    const bool written = wait_until([&] { return poison_is_written(); }, std::chrono::seconds(1));
    // Where something still uses its memory, it must stay: leaking it beats corrupting it.
    if (!drained_ || !written) own_.leave_behind();
    if (!written) SideStream::leave_behind(std::move(side_));
  }

  Status initialise(const EngineSizes& sizes) {
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    TUTTI_ASSIGN(const CudaDeviceProperties gpu, cuda_.properties(device_));
    has_clusters_ = gpu.compute_major >= 9;
    sizes_ = sizes;
    const std::size_t counts = sizeof(MessageCounts) * kMessageCounts;
    const std::size_t windows = sizeof(RegistrationEntry) * kRegistrationEntries;
    const std::size_t signals = sizeof(device::impl::SignalCounters);
    const std::size_t bytes = kHeaderBytes + counts + windows + signals + epochs_of(1);
    TUTTI_ASSIGN(side_, SideStream::of(cuda_, device_));
    lanes_.serve(device_);
    TUTTI_ASSIGN(own_, RankMemory::create(cuda_, device_,
                                          {.device_bytes = bytes, .host_bytes = kHostBytes}));
    CudaAddress const words = own_.device_memory();
    TUTTI_TRY(cuda_.set_async(words, 0, bytes, side_->get()));
    TUTTI_TRY(cuda_.synchronize(side_->get()));
    std::byte* const on_host = own_.host_memory();
    std::memset(on_host, 0, kHostBytes);

    memory_.control = reinterpret_cast<Control*>(words);
    memory_.launches = reinterpret_cast<std::uint64_t*>(words + sizeof(Control));
    memory_.messages = reinterpret_cast<MessageCounts*>(words + kHeaderBytes);
    memory_.windows = reinterpret_cast<RegistrationEntry*>(memory_.messages + kMessageCounts);
    memory_.signals =
        reinterpret_cast<device::impl::SignalCounters*>(memory_.windows + kRegistrationEntries);
    memory_.epochs = reinterpret_cast<std::uint64_t*>(memory_.signals + 1);  // until work_in()
    memory_.failure = reinterpret_cast<FailureRecord*>(on_host);
    memory_.notices = reinterpret_cast<std::uint32_t*>(on_host + kHostBytes / 2);
    told_ = reinterpret_cast<std::uint16_t*>(on_host + 3 * kHostBytes / 4);
    *told_ = Control::kTold >> 16;

    const Control control{.poison = 0, .claimed = 0, .timeout_ns = sizes.timeout_ns};
    TUTTI_TRY(copy_in(memory_.control, &control, sizeof control));
    TUTTI_TRY(one_sided_.load());
    return load_all_kernels(cuda_, gpu.compute_major * 10 + gpu.compute_minor, sizes.ranks);
  }

  std::size_t working_bytes() const override {
    return epochs_of(sizes_.channels) + sizeof(DeferredBuffers) * sizes_.late_buffers;
  }
  void work_in(std::byte* zeroed) override {
    memory_.epochs = reinterpret_cast<std::uint64_t*>(zeroed);
    memory_.late = reinterpret_cast<DeferredBuffers*>(zeroed + epochs_of(sizes_.channels));
  }

  Status run(const Operation& operation, const KernelArgs& work, const Start& start) override {
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    const Algorithm& row = *operation.row;
    const CudaBody body{.kernel = row.cuda(operation.dtype, operation.op, work.ranks),
                        .threads = start.threads,
                        .starts_early = row.starts_early,
                        .shared_bytes = row.shared_bytes,
                        .cluster = has_clusters_ && row.cluster != nullptr ? row.cluster(work) : 0};
    if (row.program == nullptr) {
      TUTTI_TRY(launch_on_cuda(cuda_, body, work, start.stream));
      return row.then.kernels > 0 ? follow(operation, work, start.stream) : Status::ok();
    }
    const Arrivals& arrivals = start.arrivals;
    CopyLane same{.stream = start.stream};  // which is beside the caller's already
    CopyLane* lane = &same;
    if (arrivals.words == nullptr) {
      TUTTI_ASSIGN(lane, lanes_.lane_for(start.stream));
    }
    CudaStages stages(cuda_, body, *lane, start.stream, start.barrier);
    if (arrivals.words != nullptr) {
      const auto pieces = static_cast<std::size_t>(work.ranks);
      stages.announce(arrivals, work.output, pieces * arrivals.piece_bytes);
    }
    row.program(stages, work, size_of(moved_as(row.collective, operation.dtype)));
    return stages.finish();
  }

  Status run(const OneSidedWork& work, Mover mover, Stream stream) override {
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    return one_sided_.run(work, mover, stream);
  }

  Status fill_late(int slot, const DeferredBuffers& buffers) override {
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    return copy_in(memory_.late + slot, &buffers, sizeof buffers);
  }

  Status fill_window(std::uint32_t index, const RegistrationEntry& window) override {
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    return copy_in(memory_.windows + index, &window, sizeof window);
  }

  // Kernels that spin read the word again and again; a copy on a stream of our own reaches it.
  Status set_timeout(std::uint64_t timeout_ns) override {
    const std::lock_guard lock(words_mutex_);
    const DeviceScope scope(cuda_, device_);
    TUTTI_TRY(scope.status());
    return copy_in(&memory_.control->timeout_ns, &timeout_ns, sizeof timeout_ns);
  }

  // By a copy engine, which needs no SM, into the half that kernels leave alone: what one of them
  // found stays. Kernels that spin read the notices. A call that enqueues blocks while the launch
  // queue is full, possibly until the end of a wait that this thread has to end. So another thread
  // enqueues the copy, and this one waits for that only briefly.
  void poison() override {
    if (poisoned_.exchange(true)) return;
    guarded([&] {
      std::promise<void> enqueued;
      poison_enqueued_ = enqueued.get_future();
      auto* const halves = reinterpret_cast<std::uint16_t*>(&memory_.control->poison);
      std::thread([&cuda = cuda_, device = device_, to = halves + 1, from = told_,
                   side = side_->get(), done = std::move(enqueued)]() mutable {
        (void)cuda.set_device(device);
        (void)cuda.copy_async(to, from, sizeof *from, side);
        done.set_value();
      }).detach();
      (void)poison_enqueued_.wait_for(std::chrono::milliseconds(10));
    });
  }

  bool drain(std::uint64_t timeout_ns) override {
    const DeviceScope scope(cuda_, device_);
    drained_ = wait_until([&] { return streams_.caught_up(true) && one_sided_.caught_up(); },
                          std::chrono::nanoseconds(timeout_ns));
    return drained_;
  }

 private:
  static_assert(std::endian::native == std::endian::little, "the high half is the second one");
  static constexpr std::size_t kHostBytes = 4096;
  static constexpr std::size_t kHeaderBytes = 256;  // control and launches
  static_assert(sizeof(Control) + sizeof(std::uint64_t) * Layout::kMaxPacketAreas <= kHeaderBytes);

  static std::size_t epochs_of(int channels) {
    return sizeof(std::uint64_t) * kMaxBlocks * static_cast<std::size_t>(channels);
  }

  Status follow(const Operation& operation, KernelArgs work, Stream stream) {
    const Follower& then = operation.row->then;
    const Follower::Grid grid = then.grid(work, size_of(operation.dtype));
    work.blocks = grid.blocks;
    const CudaBody body{.kernel = then.cuda(operation.dtype, grid.kernel),
                        .threads = grid.threads,
                        .starts_early = true};
    return launch_on_cuda(cuda_, body, work, stream);
  }

  template <class F>
  static bool wait_until(F&& is_so, std::chrono::nanoseconds limit) {
    const Deadline end{limit};
    for (;;) {
      if (is_so()) return true;
      if (end.passed()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  // Or never asked for.
  bool poison_is_written() const {
    if (!poison_enqueued_.valid()) return true;
    if (poison_enqueued_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return false;
    }
    const auto finished = cuda_.stream_finished(side_->get());
    return !finished.is_ok() || *finished;  // a broken device runs nothing any more
  }

  Status copy_in(void* to, const void* from, std::size_t bytes) {
    TUTTI_TRY(cuda_.copy_async(to, from, bytes, side_->get()));
    return cuda_.synchronize(side_->get());
  }

  CudaDriver& cuda_;
  int device_;
  Streams& streams_;
  EngineSizes sizes_;
  bool has_clusters_ = false;
  std::mutex words_mutex_;  // of set_timeout()
  std::atomic<bool> poisoned_ = false;
  std::future<void> poison_enqueued_;  // not valid before poison()
  std::shared_ptr<SideStream> side_;   // for words of our own
  CopyLanes lanes_;
  CudaOneSided one_sided_;
  bool drained_ = true;
  RankMemory own_;
  std::uint16_t* told_ = nullptr;  // what the device's half-word becomes; host memory
};

}  // namespace

Result<std::unique_ptr<Engine>> make_cuda_engine(CudaDriver& cuda, int device, Streams& streams,
                                                 const EngineSizes& sizes) {
  auto engine = std::make_unique<CudaEngine>(cuda, device, streams);
  TUTTI_TRY(engine->initialise(sizes));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace tutti
