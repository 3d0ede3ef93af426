// CUDA on ordinary memory: for testing what is done with devices, mappings, handles and graphs,
// and with failures of all of them. Streams are synchronous, unless a gate is put on one, or a
// memory operation waits for a word: what follows that in the stream is done later, by whichever
// call looks at a stream or an event next. Kernels do not run.
//
// One FakeCuda is one process's view of a FakeCudaWorld: several of them over one world behave like
// several processes on one machine. Memory is a memfd, so that a descriptor can really be passed
// on, and opening a peer's memory gives a second address of the same pages.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "drivers/cuda.hpp"

namespace tutti {

// The machine. Set it up before its first use.
class FakeCudaWorld {
 public:
  explicit FakeCudaWorld(int devices, std::size_t memory_bytes = 4 * GiB);

  // What device_count() and properties() say; `name`, `uuid` and so on may be changed.
  std::vector<CudaDeviceProperties> devices;
  std::size_t granularity = 64 * KiB;
  std::set<std::pair<int, int>> without_peer_access;  // directed pairs (device, peer)
  // Directed pairs (from, to) on which data is lost without an error.
  std::set<std::pair<int, int>> lossy;
  // So many writes of memory_operations() have no effect, the next ones.
  std::atomic<int> lost_writes = 0;
  // GPUs whose memory cannot be shared by fabric handle, whatever their properties promise.
  std::set<int> without_fabric;

 private:
  friend class FakeCuda;

  // Pages of one allocation; ends with its last mapping or handle in any process.
  struct Pages {
    ~Pages();
    FakeCudaWorld* world = nullptr;  // whose memory it takes; null where another process made it
    int device = 0;                  // of the world
    std::size_t bytes = 0;
    Fd memory;
    bool exportable = true;  // by descriptor
    bool fabric = false;     // by fabric handle
  };
  Result<std::shared_ptr<Pages>> make_pages(int device, std::size_t bytes);
  // The pages behind a descriptor of theirs.
  Result<std::shared_ptr<Pages>> pages_of(int fd);
  std::uint64_t next_number();

  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<Pages>> pages_;   // by inode
  std::map<std::uint64_t, std::weak_ptr<Pages>> ipc_;     // by the number in a CudaIpcHandle
  std::map<std::uint64_t, std::weak_ptr<Pages>> fabric_;  // by the number in a CudaFabricHandle
  std::uint64_t last_number_ = 0;                         // of buffers, handles, captures
  std::vector<std::size_t> used_bytes_;                   // per device
};

// What CUDA says no to.
inline Status refused(std::string text) { return {StatusCode::kCuda, std::move(text)}; }

// What one process has open: all zero when nothing has leaked.
struct FakeCudaOpen {
  std::size_t allocations = 0;  // allocate(), allocate_kind(), allocate_mapped_host()
  std::size_t handles = 0;      // references to VMM allocations
  std::size_t mappings = 0;     // map_allocation()
  std::size_t ipc = 0;          // ipc_open()
  std::size_t registered = 0;   // register_host()
  std::size_t streams = 0, events = 0, graphs = 0, graph_execs = 0;

  friend bool operator==(const FakeCudaOpen&, const FakeCudaOpen&) = default;
};

class FakeCuda final : public CudaDriver {
 public:
  // `visible[i]` is the world's device that this process calls i; empty: all of them in order.
  explicit FakeCuda(std::shared_ptr<FakeCudaWorld> world, std::vector<int> visible = {});
  ~FakeCuda() override;

  // ---- For tests

  // The k-th call (from 0) of this method from now on fails, once. An empty name counts the calls
  // of all methods that can fail for want of something, which leaves out those that give back.
  // `exhausted`: as if there were no more of what it takes, whatever that is.
  void fail(std::string_view method, int k, bool exhausted = false);
  bool has_failed() const;                   // whether that call has come
  int calls(std::string_view method) const;  // so far
  FakeCudaOpen open() const;
  // Memory that no method of the interface makes: kPool, kManaged. Freed by free().
  Result<CudaAddress> allocate_kind(CudaMemoryKind kind, int device, std::size_t bytes);
  // VMM memory that was made without a shareable handle type.
  Result<CudaAllocation> create_private_allocation(int device, std::size_t bytes);
  // Whether a kernel on `device` could dereference `address`.
  bool accessible(int device, const void* address) const;
  // Something on `stream` that takes its time: what is recorded or asked behind it has not finished
  // before the gate is true.
  using Gate = std::shared_ptr<std::atomic<bool>>;
  void add_gate(Stream stream, Gate gate);
  // A kernel of the test's, in stream order.
  Status enqueue(Stream stream, std::function<Status()> kernel) {
    return submit(stream, std::move(kernel));
  }
  // What launch() does; without it launch() is kUnsupported. Not called inside a capture.
  std::function<Status(const CudaLaunch&)> on_launch;
  // What a captured launch does in each replay, without it they are kUnsupported.
  std::function<std::function<Status()>(const CudaLaunch&)> on_captured_launch;
  // Called by copy_async() before it enqueues: it may block, as if the launch queue were full.
  std::function<void(std::size_t bytes, Stream stream)> before_copy;

  // ---- CudaDriver

  Result<int> device_count() override;
  Result<CudaDeviceProperties> properties(int device) override;
  Result<std::string> driver_version() override { return std::string("0.0 (fake)"); }
  Result<std::string> runtime_version() override { return std::string("0.0 (fake)"); }
  Status set_device(int device) override;
  Result<int> current_device() override;
  Result<bool> can_access_peer(int device, int peer) override;
  Status enable_peer_access(int device, int peer) override;

  Result<std::size_t> allocation_granularity(int device) override;
  Result<CudaAllocation> create_allocation(int device, std::size_t bytes) override;
  Status release_allocation(CudaAllocation allocation) override;
  Result<Fd> export_allocation(CudaAllocation allocation) override;
  Result<CudaAllocation> import_allocation(int fd) override;
  Result<CudaAllocation> create_fabric_allocation(int device, std::size_t bytes) override;
  Result<CudaFabricHandle> export_fabric(CudaAllocation allocation) override;
  Result<CudaAllocation> import_fabric(const CudaFabricHandle& handle) override;
  Result<CudaAddress> map_allocation(CudaAllocation allocation, std::size_t bytes,
                                     const std::vector<int>& devices) override;
  Status unmap_allocation(CudaAddress address, std::size_t bytes) override;
  Result<CudaAllocation> retain_allocation(CudaAddress address) override;

  Result<CudaPointer> pointer(const void* address) override;
  Result<CudaIpcHandle> ipc_handle(CudaAddress base) override;
  Result<CudaAddress> ipc_open(int device, const CudaIpcHandle& handle) override;
  Status ipc_close(CudaAddress address) override;

  Result<CudaAddress> allocate(int device, std::size_t bytes) override;
  Status free(CudaAddress address) override;
  Result<std::byte*> allocate_mapped_host(std::size_t bytes) override;
  Status free_mapped_host(std::byte* address) override;
  Result<std::byte*> register_host(std::byte* address, std::size_t bytes) override;
  Status unregister_host(std::byte* address) override;
  Status copy(void* to, const void* from, std::size_t bytes) override;
  Status copy_async(void* to, const void* from, std::size_t bytes, Stream stream) override;
  Status copy_batch(std::span<const CudaCopy> copies,
                    Stream stream) override;  // the last one first
  Status set_async(void* to, int value, std::size_t bytes, Stream stream) override;

  Result<Stream> create_stream(int device) override;
  Status destroy_stream(Stream stream) override;
  Result<std::uint64_t> stream_id(Stream stream) override;
  Status synchronize(Stream stream) override;
  Result<bool> stream_finished(Stream stream) override;
  Status wait_event(Stream stream, CudaEvent event) override;
  Status memory_operations(std::span<const CudaMemoryOperation> operations, Stream stream) override;
  Result<CudaEvent> create_event(bool timed) override;
  Status destroy_event(CudaEvent event) override;
  Status record_event(CudaEvent event, Stream stream) override;
  Status synchronize_event(CudaEvent event) override;
  Result<bool> event_finished(CudaEvent event) override;
  Result<float> elapsed_us(CudaEvent from, CudaEvent to) override;

  Result<CudaCapture> capture_of(Stream stream) override;
  Status begin_capture(Stream stream) override;
  // Of the fake no call of another thread breaks it.
  Status begin_global_capture(Stream stream) override { return begin_capture(stream); }
  Result<CudaGraph> end_capture(Stream stream) override;
  Result<CudaGraphExec> instantiate(CudaGraph graph) override;
  Status launch_graph(CudaGraphExec exec, Stream stream) override;
  Status destroy_graph(CudaGraph graph) override;
  Status destroy_graph_exec(CudaGraphExec exec) override;
  Status retain_on_graph(CudaGraph graph, std::function<void()> on_destroy) override;

  Status encode_tensor_map(const TensorMapShape& shape, TensorMap& map) override;
  Status load_kernel(const void* kernel, std::size_t shared_bytes) override;
  Status launch(const CudaLaunch& launch) override;

 private:
  using Pages = FakeCudaWorld::Pages;
  struct Region {  // of addresses of this process
    enum class How : std::uint8_t { kAllocated, kMapped, kIpcOpened } how = How::kAllocated;
    CudaMemoryKind kind = CudaMemoryKind::kUnknown;
    int device = -1;  // in this process's numbering; -1 where it is not visible
    std::size_t bytes = 0;
    std::uint64_t buffer_id = 0;
    std::shared_ptr<Pages> pages;
    CudaAllocation allocation = 0;  // kMapped
    std::vector<int> devices;       // that were given access: kMapped, kIpcOpened
    int openings = 1;               // kIpcOpened
  };
  struct HandleState {
    std::shared_ptr<Pages> pages;
    int references = 1;  // of the user
    int mappings = 0;
  };
  using Work = std::function<Status()>;
  // Ends when its graph and everything made from it are gone.
  struct GraphLife {
    std::vector<std::function<void()>> on_destroy;
    ~GraphLife();
  };
  struct GraphState {
    std::vector<Work> work;
    std::shared_ptr<GraphLife> life = std::make_shared<GraphLife>();
  };
  // Work behind a wait for a word: the first of a stream's is done once it is ready.
  struct Held {
    std::function<bool()> ready;
    Work work;
  };
  struct StreamState {
    std::uint64_t id = 0;
    std::uint64_t capture = 0;  // its id; 0 for none
    CudaGraph graph = nullptr;  // being built
    bool invalid = false;
    std::vector<Gate> gates;
    std::deque<Held> held = {};
  };
  struct EventState {
    std::chrono::steady_clock::time_point time;
    std::vector<Gate> gates;    // ahead of it
    std::uint64_t capture = 0;  // in which it was recorded; 0: in none
    CudaGraph graph = nullptr;
    Gate reached = nullptr;  // whether the stream has come to it; null: it was never recorded
  };
  struct Failure {
    std::string method;
    int left = -1;
    bool happened = false;
    bool exhausted = false;
  };

  Status enter(std::string_view method);
  Status check_device(int device) const;
  int local_device(int world_device) const;
  int world_device(const void* address) const;  // -1 for memory that is on none
  using Regions = std::map<CudaAddress, Region>;
  Regions::const_iterator region_of(const void* address) const;  // end() where there is none
  Regions::iterator region_at(CudaAddress base, Region::How how);
  static void* reserve(std::size_t bytes, std::size_t granularity);
  Result<CudaAddress> add_region(Region region);
  Status check_reach(const std::vector<int>& devices, const Pages& pages) const;
  Result<std::shared_ptr<Pages>> make_shareable(int device, std::size_t bytes);
  Result<CudaAllocation> add_handle(std::shared_ptr<Pages> pages);
  void forget_if_unused(CudaAllocation allocation);
  Status transfer(void* to, const void* from, std::size_t bytes);
  // Now, or as a node of the graph that the stream is captured into.
  Status submit(Stream stream, Work work);
  // Behind what is held of the stream; at once where nothing is and it is ready.
  Status hold(Stream stream, Held held);
  void do_held_work();
  bool take_all_held(Stream stream);
  Status join_capture(Stream stream, CudaEvent event);
  Status check_not_capturing(Stream stream, std::string_view method);
  std::vector<Gate> gates_of(Stream stream) const;
  std::vector<Gate> gates_before(CudaEvent event) const;
  Gate reached_by_stream(CudaEvent event) const;
  bool has_reached(CudaEvent event);
  void* new_object();

  std::shared_ptr<FakeCudaWorld> world_;
  std::vector<int> visible_;
  mutable std::mutex mutex_;  // of everything below; taken before the world's
  Regions regions_;
  // Addresses that free() gave back: given out again first, as by the real allocator.
  std::multimap<std::size_t, CudaAddress> free_addresses_;
  std::map<CudaAllocation, HandleState> handles_;
  std::set<std::pair<int, int>> peer_access_;
  std::map<Stream, StreamState> streams_;
  std::vector<Stream> free_streams_;  // handles of destroyed ones: given out again first
  std::uint64_t last_stream_ = 0;     // its id
  std::map<CudaEvent, EventState> events_;
  std::map<CudaGraph, GraphState> graphs_;
  std::map<CudaGraphExec, GraphState> execs_;
  std::map<std::byte*, int> registered_;
  std::recursive_mutex work_mutex_;  // while work is done; taken before the one above
  std::uintptr_t last_object_ = 0;
  Failure failure_;
  std::map<std::string, int, std::less<>> calls_;
};

}  // namespace tutti
