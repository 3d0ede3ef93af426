// CudaDriver over libcuda and the static runtime. One file per family of calls: cuda_real.cpp
// (devices), cuda_virtual_memory.cpp, cuda_memory.cpp, cuda_stream.cpp (streams, events, kernels),
// cuda_graph.cpp.
#pragma once

#include <map>
#include <mutex>

#include "drivers/cuda.hpp"
#include "drivers/cuda_library.hpp"

namespace tutti {

// Some calls, a query among them, break a capture that was begun in global mode, also another
// thread's, unless they are made in relaxed mode. Which ones CUDA does not say in one place: all
// are made so, except those that have to do with the stream that is captured (gates.doors).
class RelaxedCapture {
 public:
  RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class RealCuda final : public CudaDriver {
 public:
  explicit RealCuda(const CudaLibrary& library) : library_(library) {}

  Result<int> device_count() override;
  Result<CudaDeviceProperties> properties(int device) override;
  Result<std::string> driver_version() override;
  Result<std::string> runtime_version() override;
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
  Status copy_batch(std::span<const CudaCopy> copies, Stream stream) override;
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
  Status begin_global_capture(Stream stream) override;
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
  bool has_attribute(int device, CUdevice_attribute attribute) const;
  // VMM calls want a current context; a thread that never chose a device gets its default one.
  Status ensure_context() const;
  Status give_access(CUdeviceptr address, std::size_t bytes, const std::vector<int>& devices) const;
  // The stream of the current device that copy() uses: independent of the null stream, on which a
  // user's kernel may be waiting.
  Result<Stream> copy_stream();

  const CudaLibrary library_;
  std::mutex mutex_;
  std::map<int, Stream> copy_streams_;      // by device; live as long as the process
  std::map<CudaAddress, int> ipc_devices_;  // where each open handle was opened
  std::map<std::byte*, int> registered_;    // how often, by address
};

}  // namespace tutti
