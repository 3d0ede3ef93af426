#include "matmul/place.hpp"

#include <fmt/format.h>

#include "base/try.hpp"

namespace tutti {
namespace {

bool is_of_gpu(CudaMemoryKind kind) {
  return kind != CudaMemoryKind::kUnknown && kind != CudaMemoryKind::kHost;
}

bool is_reachable(CudaMemoryKind kind, Backend backend) {
  if (backend == Backend::kCuda) return kind != CudaMemoryKind::kUnknown;
  return kind == CudaMemoryKind::kManaged || !is_of_gpu(kind);
}

Status check_reachable(const void* address, Backend backend, CudaDriver& cuda,
                       std::string_view name) {
  if (address == nullptr) return Status::ok();
  TUTTI_ASSIGN(const CudaPointer pointer, cuda.pointer(address));
  if (is_reachable(pointer.kind, backend)) return Status::ok();
  const char* const is = backend == Backend::kCuda ? "ordinary host memory" : "memory of a GPU";
  return {StatusCode::kInvalidArgument,
          fmt::format("matmul: {} is {}, and the product runs on {}", name, is,
                      backend == Backend::kCuda ? "a GPU" : "the host")};
}

}  // namespace

Result<Backend> backend_of(const CheckedMatmul& call, Backend wanted, CudaDriver& cuda) {
  Backend backend = wanted;
  const bool multiplies = call.problem.k > 0;
  if (wanted == Backend::kAuto) {
    TUTTI_ASSIGN(const CudaPointer first,
                 cuda.pointer(multiplies ? call.a : call.product.front().c));
    backend = is_of_gpu(first.kind) ? Backend::kCuda : Backend::kHost;
  }
  if (multiplies) TUTTI_TRY(check_reachable(call.a, backend, cuda, "a"));
  for (int i = 0; i < call.problem.products; ++i) {
    const ProductPlaces& places = call.product[static_cast<std::size_t>(i)];
    if (multiplies) TUTTI_TRY(check_reachable(places.b, backend, cuda, "b"));
    TUTTI_TRY(check_reachable(places.c, backend, cuda, "c"));
    TUTTI_TRY(check_reachable(places.bias, backend, cuda, "bias"));
  }
  return backend;
}

}  // namespace tutti
