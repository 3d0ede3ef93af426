// The only door to CUDA: everything the library asks of the driver and the runtime, as an interface
// with a real implementation (libcuda found at run time, cudart linked statically) and a fake.
// Free of CUDA headers, so that host-only builds and tests of set-up logic compile without a
// toolkit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "drivers/tensor_map.hpp"
#include "tutti/types.hpp"

namespace tutti {

using CudaEvent = void*;               // cudaEvent_t
using CudaGraph = void*;               // cudaGraph_t
using CudaGraphExec = void*;           // cudaGraphExec_t
using CudaAllocation = std::uint64_t;  // CUmemGenericAllocationHandle
using CudaAddress = std::byte*;        // a device address

struct CudaDeviceProperties {
  std::string name;        // "NVIDIA H200"
  std::string pci_bus_id;  // "0000:1b:00.0"
  std::array<std::uint8_t, 16> uuid{};
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0, l2_bytes = 0;
  bool posix_fd_handles = false, fabric_handles = false, multicast = false;
  bool stream_memory_operations = false;
  bool orders_rdma_writes = false;  // work that follows on the GPU sees what an adapter has written
};

enum class CudaMemoryKind : std::uint8_t {
  kUnknown,  // not CUDA memory (ordinary host memory)
  kHost,     // pinned or registered host memory
  kManaged,
  kMalloc,   // cudaMalloc: cudaIpc works at its base
  kVirtual,  // a VMM mapping (cuMemMap); exportable only if its allocation was made so
  kPool,     // cudaMallocAsync
};

struct CudaPointer {
  CudaMemoryKind kind = CudaMemoryKind::kUnknown;
  int device = -1;
  CudaAddress base = nullptr;   // of the allocation that holds the address
  std::size_t bytes = 0;        // of that allocation
  std::uint64_t buffer_id = 0;  // never reused within a process
};

struct CudaIpcHandle {
  std::array<std::byte, 64> bytes{};
  friend bool operator==(const CudaIpcHandle&, const CudaIpcHandle&) = default;
  friend auto operator<=>(const CudaIpcHandle&, const CudaIpcHandle&) = default;
};

struct CudaFabricHandle {
  std::array<std::byte, 64> bytes{};
};

struct CudaCapture {
  enum class State : std::uint8_t { kNone, kActive, kInvalidated } state = State::kNone;
  std::uint64_t id = 0;       // unique per capture
  CudaGraph graph = nullptr;  // the graph being built
};

struct CudaLaunch {
  const void* kernel = nullptr;  // address of a __global__ function of this library
  int blocks = 1, threads = 1;
  // Blocks of a cluster, at most 8; 0: none, on devices that have none, too. A cluster of one block
  // is not the same: only in a launch with clusters is st.async a legal instruction.
  int cluster = 0;
  std::size_t shared_bytes = 0;
  void** arguments = nullptr;  // one pointer per kernel parameter
  Stream stream = nullptr;
  bool programmatic = false;  // may start while its predecessor drains (dependent launch)
};

// The one that waits for all others: cudaStreamLegacy, by its name or by none.
inline bool is_default_stream(Stream stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 1;
}

// The one that each thread has of its own, under one name: cudaStreamPerThread.
inline bool is_stream_per_thread(Stream stream) {
  return reinterpret_cast<std::uintptr_t>(stream) == 2;
}

struct CudaCopy {
  void* to;
  const void* from;
  std::size_t bytes;
};

// A stream memory operation: the stream itself reads or writes a word, and uses no SM for it.
struct CudaMemoryOperation {
  enum class Kind : std::uint8_t {
    kWrite,        // *word = value, after a system-scope fence for all earlier work of the stream
    kWrite32,      // likewise *word32
    kWaitAtLeast,  // until static_cast<std::int64_t>(*word - value) >= 0: counts may wrap
  } kind = Kind::kWrite;
  std::uint64_t* word = nullptr;  // as devices address it
  std::uint64_t value = 0;
  std::uint32_t* word32 = nullptr;  // likewise, of kWrite32
};

// Every call, except those that only begin, change or end a capture, or enqueue, may be made while
// another thread captures in global mode, and disturbs no capture.
class CudaDriver {
 public:
  virtual ~CudaDriver() = default;

  virtual Result<int> device_count() = 0;  // kUnavailable says what is missing
  virtual Result<CudaDeviceProperties> properties(int device) = 0;
  virtual Result<std::string> driver_version() = 0;   // "580.159.04" or the CUDA version it serves
  virtual Result<std::string> runtime_version() = 0;  // "13.0"
  virtual Status set_device(int device) = 0;          // of the calling thread
  virtual Result<int> current_device() = 0;
  virtual Result<bool> can_access_peer(int device, int peer) = 0;
  virtual Status enable_peer_access(int device, int peer) = 0;  // fine if already enabled

  // VMM. Sizes are multiples of allocation_granularity().
  virtual Result<std::size_t> allocation_granularity(int device) = 0;
  virtual Result<CudaAllocation> create_allocation(int device, std::size_t bytes) = 0;
  virtual Status release_allocation(CudaAllocation allocation) = 0;
  virtual Result<Fd> export_allocation(CudaAllocation allocation) = 0;
  virtual Result<CudaAllocation> import_allocation(int fd) = 0;
  // The same without descriptors, for processes of other hosts and containers. kUnsupported where
  // this machine does not permit it, whatever CudaDeviceProperties::fabric_handles promises.
  virtual Result<CudaAllocation> create_fabric_allocation(int device, std::size_t bytes) = 0;
  virtual Result<CudaFabricHandle> export_fabric(CudaAllocation allocation) = 0;
  virtual Result<CudaAllocation> import_fabric(const CudaFabricHandle& handle) = 0;
  // Maps the whole allocation and gives `devices` read and write access.
  virtual Result<CudaAddress> map_allocation(CudaAllocation allocation, std::size_t bytes,
                                             const std::vector<int>& devices) = 0;
  virtual Status unmap_allocation(CudaAddress address, std::size_t bytes) = 0;
  // The allocation behind a VMM address of the user's (one reference more).
  virtual Result<CudaAllocation> retain_allocation(CudaAddress address) = 0;

  virtual Result<CudaPointer> pointer(const void* address) = 0;
  virtual Result<CudaIpcHandle> ipc_handle(CudaAddress base) = 0;
  virtual Result<CudaAddress> ipc_open(int device, const CudaIpcHandle& handle) = 0;
  virtual Status ipc_close(CudaAddress address) = 0;

  // cudaMalloc and cudaFree.
  virtual Result<CudaAddress> allocate(int device, std::size_t bytes) = 0;
  virtual Status free(CudaAddress address) = 0;
  virtual Result<std::byte*> allocate_mapped_host(std::size_t bytes) = 0;  // same address on device
  virtual Status free_mapped_host(std::byte* address) = 0;
  // Host memory of any origin, in whole pages, which all devices of this process can address from
  // now on, at the address that is returned. Counted: it stays so until each call was undone.
  virtual Result<std::byte*> register_host(std::byte* address, std::size_t bytes) = 0;
  virtual Status unregister_host(std::byte* address) = 0;
  // In any direction. Waits for this copy alone: it is not ordered behind work on any stream.
  virtual Status copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual Status copy_async(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  // Disjoint copies, maybe at once, in any order; none of 0 bytes. Not in a capture, nor on the
  // null stream.
  virtual Status copy_batch(std::span<const CudaCopy> copies, Stream stream) = 0;
  virtual Status set_async(void* to, int value, std::size_t bytes, Stream stream) = 0;

  virtual Result<Stream> create_stream(
      int device) = 0;  // does not synchronise with the null stream
  virtual Status destroy_stream(Stream stream) = 0;
  // Which no other stream of the process has had or will have: a handle may be given again once its
  // stream is destroyed, and that of the stream per thread is another stream in each thread. Not in
  // a capture.
  virtual Result<std::uint64_t> stream_id(Stream stream) = 0;
  virtual Status synchronize(Stream stream) = 0;
  virtual Result<bool> stream_finished(Stream stream) = 0;
  virtual Status wait_event(Stream stream, CudaEvent event) = 0;
  // In order. CudaDeviceProperties::stream_memory_operations tells whether the device has them.
  virtual Status memory_operations(std::span<const CudaMemoryOperation> operations,
                                   Stream stream) = 0;
  virtual Result<CudaEvent> create_event(bool timed) = 0;  // for streams of the current device
  virtual Status destroy_event(CudaEvent event) = 0;
  virtual Status record_event(CudaEvent event, Stream stream) = 0;
  virtual Status synchronize_event(CudaEvent event) = 0;
  virtual Result<bool> event_finished(CudaEvent event) = 0;
  virtual Result<float> elapsed_us(CudaEvent from, CudaEvent to) = 0;

  virtual Result<CudaCapture> capture_of(Stream stream) = 0;
  virtual Status begin_capture(Stream stream) = 0;         // thread-local mode
  virtual Status begin_global_capture(Stream stream) = 0;  // which any thread may break
  virtual Result<CudaGraph> end_capture(Stream stream) = 0;
  virtual Result<CudaGraphExec> instantiate(CudaGraph graph) = 0;
  virtual Status launch_graph(CudaGraphExec exec, Stream stream) = 0;
  virtual Status destroy_graph(CudaGraph graph) = 0;
  virtual Status destroy_graph_exec(CudaGraphExec exec) = 0;
  // `on_destroy` runs once when the graph and everything made from it are gone, on a thread of the
  // driver that must call no CUDA function.
  virtual Status retain_on_graph(CudaGraph graph, std::function<void()> on_destroy) = 0;

  // kUnsupported where the driver is older than Hopper.
  virtual Status encode_tensor_map(const TensorMapShape& shape, TensorMap& map) = 0;

  virtual Status load_kernel(const void* kernel, std::size_t shared_bytes) = 0;  // now, not lazily
  virtual Status launch(const CudaLaunch& launch) = 0;
};

// Null where the library was built without CUDA or libcuda.so.1 cannot be loaded; `why` says which.
CudaDriver* real_cuda(std::string* why = nullptr);

}  // namespace tutti
