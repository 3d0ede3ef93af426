// Streams, events, kernels, and the tensor maps that kernels copy with.
#include <vector>

#include "base/try.hpp"
#include "drivers/real_cuda.hpp"

namespace tutti {
namespace {

// More dynamic shared memory than this has to be asked for, per kernel and device.
constexpr std::size_t kDefaultSharedBytes = 48 * 1024;

cudaEvent_t event_of(CudaEvent event) { return static_cast<cudaEvent_t>(event); }

// The answer of cudaStreamQuery and cudaEventQuery.
Result<bool> finished(cudaError_t answer, const char* call) {
  if (answer == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  TUTTI_TRY(check(answer, call));
  return true;
}

}  // namespace

Result<Stream> RealCuda::create_stream(int device) {
  const RelaxedCapture relaxed;
  const DeviceGuard guard(library_, device);
  TUTTI_TRY(guard.status());
  cudaStream_t stream = nullptr;
  TUTTI_TRY(check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                  "cudaStreamCreateWithFlags"));
  return stream;
}

Status RealCuda::destroy_stream(Stream stream) {
  const RelaxedCapture relaxed;
  return check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

Result<std::uint64_t> RealCuda::stream_id(Stream stream) {
  unsigned long long id = 0;
  TUTTI_TRY(check(cudaStreamGetId(stream, &id), "cudaStreamGetId"));
  return std::uint64_t{id};
}

Status RealCuda::synchronize(Stream stream) {
  const RelaxedCapture relaxed;
  return check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

Result<bool> RealCuda::stream_finished(Stream stream) {
  const RelaxedCapture relaxed;
  return finished(cudaStreamQuery(stream), "cudaStreamQuery");
}

Status RealCuda::wait_event(Stream stream, CudaEvent event) {
  return check(cudaStreamWaitEvent(stream, event_of(event), 0), "cudaStreamWaitEvent");
}

Status RealCuda::memory_operations(std::span<const CudaMemoryOperation> operations, Stream stream) {
  if (library_.batch_memory_operations == nullptr) {
    return {StatusCode::kUnsupported, "the NVIDIA driver has no cuStreamBatchMemOp_v2"};
  }
  std::vector<CUstreamBatchMemOpParams> parameters(operations.size());
  for (std::size_t k = 0; k < operations.size(); ++k) {
    const CudaMemoryOperation& from = operations[k];
    if (from.kind != CudaMemoryOperation::Kind::kWaitAtLeast) {
      const bool is_short = from.kind == CudaMemoryOperation::Kind::kWrite32;
      auto& to = parameters[k].writeValue;
      to.operation = is_short ? CU_STREAM_MEM_OP_WRITE_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_64;
      to.address = is_short ? device_pointer(from.word32) : device_pointer(from.word);
      to.value64 = from.value;                   // a union: the lower half is `value`
      to.flags = CU_STREAM_WRITE_VALUE_DEFAULT;  // with a memory barrier
    } else {
      auto& to = parameters[k].waitValue;
      to.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
      to.address = device_pointer(from.word);
      to.value64 = from.value;
      to.flags = CU_STREAM_WAIT_VALUE_GEQ;
    }
  }
  return check(library_,
               library_.batch_memory_operations(static_cast<CUstream>(stream),
                                                static_cast<unsigned>(parameters.size()),
                                                parameters.data(), 0),
               "cuStreamBatchMemOp");
}

Result<CudaEvent> RealCuda::create_event(bool timed) {
  const RelaxedCapture relaxed;
  TUTTI_TRY(ensure_context());
  cudaEvent_t event = nullptr;
  TUTTI_TRY(
      check(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
            "cudaEventCreateWithFlags"));
  return CudaEvent{event};
}

Status RealCuda::destroy_event(CudaEvent event) {
  const RelaxedCapture relaxed;
  return check(cudaEventDestroy(event_of(event)), "cudaEventDestroy");
}

Status RealCuda::record_event(CudaEvent event, Stream stream) {
  return check(cudaEventRecord(event_of(event), stream), "cudaEventRecord");
}

Status RealCuda::synchronize_event(CudaEvent event) {
  const RelaxedCapture relaxed;
  return check(cudaEventSynchronize(event_of(event)), "cudaEventSynchronize");
}

Result<bool> RealCuda::event_finished(CudaEvent event) {
  const RelaxedCapture relaxed;
  return finished(cudaEventQuery(event_of(event)), "cudaEventQuery");
}

Result<float> RealCuda::elapsed_us(CudaEvent from, CudaEvent to) {
  const RelaxedCapture relaxed;
  float milliseconds = 0.0F;
  TUTTI_TRY(check(cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to)),
                  "cudaEventElapsedTime"));
  return milliseconds * 1000.0F;
}

Status RealCuda::encode_tensor_map(const TensorMapShape& shape, TensorMap& map) {
  if (library_.encode_tensor_map == nullptr) {
    return {StatusCode::kUnsupported, "the NVIDIA driver has no cuTensorMapEncodeTiled"};
  }
  static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
  const CUtensorMapDataType type = shape.dtype == DataType::kFloat16
                                       ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                       : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const cuuint64_t sizes[2] = {shape.columns, shape.rows};
  const cuuint64_t distances[1] = {shape.leading * size_of(shape.dtype)};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(shape.box_columns),
                             static_cast<cuuint32_t>(shape.box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult encoded = library_.encode_tensor_map(
      reinterpret_cast<CUtensorMap*>(&map), type, 2, const_cast<void*>(shape.address), sizes,
      distances, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return check(library_, encoded, "cuTensorMapEncodeTiled");
}

Status RealCuda::load_kernel(const void* kernel, std::size_t shared_bytes) {
  const RelaxedCapture relaxed;
  // Asking for its attributes loads the kernel's module on the current device.
  cudaFuncAttributes attributes{};
  TUTTI_TRY(check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes"));
  // The driver would set some shared memory aside for as many small blocks as fit. A multiprocessor
  // on which others run that did with less is divided anew only when they have ended.
  if (shared_bytes + attributes.sharedSizeBytes == 0) {
    return check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                      cudaSharedmemCarveoutMaxL1),
                 "cudaFuncSetAttribute");
  }
  if (shared_bytes + attributes.sharedSizeBytes <= kDefaultSharedBytes) return Status::ok();
  return check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes)),
               "cudaFuncSetAttribute");
}

Status RealCuda::launch(const CudaLaunch& launch) {
  cudaLaunchAttribute attributes[2]{};
  unsigned used = 0;
  if (launch.programmatic) {
    attributes[used].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[used++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (launch.cluster > 0) {
    attributes[used].id = cudaLaunchAttributeClusterDimension;
    attributes[used++].val.clusterDim = {static_cast<unsigned>(launch.cluster), 1, 1};
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(launch.blocks));
  config.blockDim = dim3(static_cast<unsigned>(launch.threads));
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = launch.stream;
  config.attrs = attributes;
  config.numAttrs = used;
  return check(cudaLaunchKernelExC(&config, launch.kernel, launch.arguments),
               "cudaLaunchKernelExC");
}

}  // namespace tutti
