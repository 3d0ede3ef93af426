// What an address is, cudaIpc, and memory of the plain kind.
#include <array>
#include <cstring>
#include <vector>

#include "base/try.hpp"
#include "drivers/real_cuda.hpp"

namespace tutti {
namespace {

// What the driver says of one address. Wide fields, zeroed, whatever width the driver writes.
struct PointerFacts {
  std::uint64_t memory_type = 0;
  std::int32_t device = -1;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  std::uint64_t buffer_id = 0;
  std::uint64_t managed = 0;
  std::uint64_t ipc_capable = 0;
  CUmemoryPool pool = nullptr;
};

Result<PointerFacts> facts_of(const CudaLibrary& library, const void* address) {
  PointerFacts facts;
  std::array<CUpointer_attribute, 8> attributes = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_BUFFER_ID,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
      CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
  };
  std::array<void*, 8> values = {
      &facts.memory_type, &facts.device,  &facts.base,        &facts.bytes,
      &facts.buffer_id,   &facts.managed, &facts.ipc_capable, &facts.pool,
  };
  const CUresult error =
      library.pointer_get_attributes(static_cast<unsigned>(attributes.size()), attributes.data(),
                                     values.data(), device_pointer(address));
  if (error == CUDA_ERROR_INVALID_VALUE) return PointerFacts{};  // not CUDA's
  TUTTI_TRY(check(library, error, "cuPointerGetAttributes"));
  return facts;
}

CudaMemoryKind kind_of(const PointerFacts& facts) {
  if (facts.managed != 0) return CudaMemoryKind::kManaged;
  if (facts.memory_type == CU_MEMORYTYPE_HOST) return CudaMemoryKind::kHost;
  if (facts.memory_type != CU_MEMORYTYPE_DEVICE) return CudaMemoryKind::kUnknown;
  if (facts.pool != nullptr) return CudaMemoryKind::kPool;
  return facts.ipc_capable != 0 ? CudaMemoryKind::kMalloc : CudaMemoryKind::kVirtual;
}

}  // namespace

Result<CudaPointer> RealCuda::pointer(const void* address) {
  const RelaxedCapture relaxed;
  TUTTI_ASSIGN(const PointerFacts facts, facts_of(library_, address));
  CudaPointer pointer;
  pointer.kind = kind_of(facts);
  if (pointer.kind == CudaMemoryKind::kUnknown) return pointer;
  pointer.device = facts.device;
  pointer.base = address_of(facts.base);
  pointer.bytes = facts.bytes;
  pointer.buffer_id = facts.buffer_id;
  if (pointer.kind == CudaMemoryKind::kVirtual) {
    // The attributes name the reserved range, which may hold many mappings, and holes. The range is
    // only known in a context of the device that holds the memory.
    CUdeviceptr base = 0;
    const DeviceGuard guard(library_, facts.device);
    TUTTI_TRY(guard.status());
    TUTTI_TRY(check(library_,
                    library_.get_address_range(&base, &pointer.bytes, device_pointer(address)),
                    "cuMemGetAddressRange"));
    pointer.base = address_of(base);
  }
  return pointer;
}

Result<CudaIpcHandle> RealCuda::ipc_handle(CudaAddress base) {
  const RelaxedCapture relaxed;
  cudaIpcMemHandle_t from{};
  TUTTI_TRY(ensure_context());
  TUTTI_TRY(check(cudaIpcGetMemHandle(&from, base), "cudaIpcGetMemHandle"));
  CudaIpcHandle to;
  static_assert(sizeof from == sizeof to.bytes);
  std::memcpy(to.bytes.data(), &from, sizeof from);
  return to;
}

Result<CudaAddress> RealCuda::ipc_open(int device, const CudaIpcHandle& handle) {
  const RelaxedCapture relaxed;
  const DeviceGuard guard(library_, device);
  TUTTI_TRY(guard.status());
  cudaIpcMemHandle_t from{};
  std::memcpy(&from, handle.bytes.data(), sizeof from);
  void* address = nullptr;
  TUTTI_TRY(check(cudaIpcOpenMemHandle(&address, from, cudaIpcMemLazyEnablePeerAccess),
                  "cudaIpcOpenMemHandle"));
  const std::lock_guard lock(mutex_);
  ipc_devices_[static_cast<CudaAddress>(address)] = device;
  return static_cast<CudaAddress>(address);
}

Status RealCuda::ipc_close(CudaAddress address) {
  const RelaxedCapture relaxed;
  int device = -1;
  {
    const std::lock_guard lock(mutex_);
    const auto found = ipc_devices_.find(address);
    if (found == ipc_devices_.end()) {
      return Status(StatusCode::kInvalidArgument, "ipc_close: not an address that ipc_open gave");
    }
    device = found->second;
    ipc_devices_.erase(found);
  }
  const DeviceGuard guard(library_, device);
  TUTTI_TRY(guard.status());
  return check(cudaIpcCloseMemHandle(address), "cudaIpcCloseMemHandle");
}

Result<CudaAddress> RealCuda::allocate(int device, std::size_t bytes) {
  const RelaxedCapture relaxed;
  const DeviceGuard guard(library_, device);
  TUTTI_TRY(guard.status());
  void* address = nullptr;
  TUTTI_TRY(check(cudaMalloc(&address, bytes), "cudaMalloc"));
  return static_cast<CudaAddress>(address);
}

Status RealCuda::free(CudaAddress address) {
  const RelaxedCapture relaxed;
  if (address == nullptr) return Status::ok();
  TUTTI_ASSIGN(const PointerFacts facts, facts_of(library_, address));
  if (kind_of(facts) == CudaMemoryKind::kUnknown) {
    return Status(StatusCode::kInvalidArgument, "free: not an address that allocate gave");
  }
  const DeviceGuard guard(library_, facts.device);
  TUTTI_TRY(guard.status());
  return check(cudaFree(address), "cudaFree");
}

Result<std::byte*> RealCuda::allocate_mapped_host(std::size_t bytes) {
  const RelaxedCapture relaxed;
  void* address = nullptr;
  TUTTI_TRY(ensure_context());
  TUTTI_TRY(check(cudaHostAlloc(&address, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
                  "cudaHostAlloc"));
  return static_cast<std::byte*>(address);
}

Status RealCuda::free_mapped_host(std::byte* address) {
  const RelaxedCapture relaxed;
  return check(cudaFreeHost(address), "cudaFreeHost");
}

Result<std::byte*> RealCuda::register_host(std::byte* address, std::size_t bytes) {
  const RelaxedCapture relaxed;
  TUTTI_TRY(ensure_context());
  const std::lock_guard lock(mutex_);
  const bool is_new = !registered_.contains(address);
  if (is_new) {
    constexpr unsigned kEverywhere = cudaHostRegisterPortable | cudaHostRegisterMapped;
    TUTTI_TRY(check(cudaHostRegister(address, bytes, kEverywhere), "cudaHostRegister"));
  }
  void* on_device = nullptr;
  if (const Status got =
          check(cudaHostGetDevicePointer(&on_device, address, 0), "cudaHostGetDevicePointer");
      !got.is_ok()) {
    if (is_new) (void)cudaHostUnregister(address);
    return got;
  }
  ++registered_[address];
  return static_cast<std::byte*>(on_device);
}

// cudaHostUnregister waits for kernels, so it runs without the lock.
Status RealCuda::unregister_host(std::byte* address) {
  const RelaxedCapture relaxed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = registered_.find(address);
    if (found == registered_.end()) {
      return {StatusCode::kInvalidArgument, "unregister_host: not registered"};
    }
    if (--found->second > 0) return Status::ok();
    registered_.erase(found);
  }
  return check(cudaHostUnregister(address), "cudaHostUnregister");
}

Result<Stream> RealCuda::copy_stream() {
  TUTTI_ASSIGN(const int device, current_device());
  const std::lock_guard lock(mutex_);
  Stream& stream = copy_streams_[device];
  if (stream == nullptr) {
    TUTTI_ASSIGN(stream, create_stream(device));
  }
  return stream;
}

Status RealCuda::copy(void* to, const void* from, std::size_t bytes) {
  const Result<Stream> stream = copy_stream();
  TUTTI_TRY(stream.status());
  TUTTI_TRY(copy_async(to, from, bytes, *stream));
  return synchronize(*stream);
}

Status RealCuda::copy_async(void* to, const void* from, std::size_t bytes, Stream stream) {
  const RelaxedCapture relaxed;
  // cudaMemcpyDefault: the driver knows from the addresses where either side is.
  return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

// Toolkits before 13 have another signature, or none.
Status RealCuda::copy_batch(std::span<const CudaCopy> copies, Stream stream) {
  const RelaxedCapture relaxed;
#if CUDART_VERSION >= 13000
  std::vector<void*> to;
  std::vector<const void*> from;
  std::vector<std::size_t> bytes;
  for (const CudaCopy& copy : copies) {
    to.push_back(copy.to);
    from.push_back(copy.from);
    bytes.push_back(copy.bytes);
  }
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;  // of the copies that have these attributes
  return check(cudaMemcpyBatchAsync(to.data(), from.data(), bytes.data(), copies.size(),
                                    &attributes, &first, 1, stream),
               "cudaMemcpyBatchAsync");
#else
  for (const CudaCopy& copy : copies) {
    TUTTI_TRY(copy_async(copy.to, copy.from, copy.bytes, stream));
  }
  return Status::ok();
#endif
}

Status RealCuda::set_async(void* to, int value, std::size_t bytes, Stream stream) {
  const RelaxedCapture relaxed;
  return check(cudaMemsetAsync(to, value, bytes, stream), "cudaMemsetAsync");
}

}  // namespace tutti
