#include <cuda_runtime.h>

#include <bit>
#include <cstdint>
#include <cublas_v2.h>
#include <stdexcept>
#include <string>

#include "machine.hpp"

namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error("cuBLAS: status " + std::to_string(static_cast<int>(status)));
  }
}

// The values of this example are exact in bf16, which is the upper half of a float.
std::uint16_t to_bf16(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}
float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

class CudaMachine final : public Machine {
 public:
  explicit CudaMachine(int device) {
    check(cudaSetDevice(device));
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cublasCreate(&blas_));
    check(cublasSetStream(blas_, stream_));
  }
  ~CudaMachine() override {
    if (blas_ != nullptr) cublasDestroy(blas_);
    for (void* block : memory_) cudaFree(block);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  CudaMachine(const CudaMachine&) = delete;
  CudaMachine& operator=(const CudaMachine&) = delete;

  tutti::DataType dtype() const override { return tutti::DataType::kBfloat16; }
  tutti::Stream stream() const override { return stream_; }
  void* allocate(std::size_t elements) override {
    void* block = nullptr;
    check(cudaMalloc(&block, elements * kElement));
    memory_.push_back(block);
    check(cudaMemsetAsync(block, 0, elements * kElement, stream_));
    wait();
    return block;
  }
  void write(void* to, const std::vector<float>& values) override {
    std::vector<std::uint16_t> bits;
    bits.reserve(values.size());
    for (const float value : values) bits.push_back(to_bf16(value));
    check(cudaMemcpyAsync(to, bits.data(), bits.size() * kElement, cudaMemcpyDefault, stream_));
    wait();
  }
  std::vector<float> read(const void* from, std::size_t elements) override {
    std::vector<std::uint16_t> bits(elements);
    check(cudaMemcpyAsync(bits.data(), from, elements * kElement, cudaMemcpyDefault, stream_));
    wait();
    std::vector<float> values;
    values.reserve(elements);
    for (const std::uint16_t one : bits) values.push_back(from_bf16(one));
    return values;
  }
  // cuBLAS is column-major and sees the transpose of every matrix: c' = b' x a'.
  void multiply(const Product& p) override {
    const float one = 1, added = p.add ? 1 : 0;
    const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    check(cublasGemmEx(blas_, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                       p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, p.b, CUDA_R_16BF,
                       p.b_transposed ? k : n, p.a, CUDA_R_16BF, p.a_transposed ? m : k, &added,
                       p.c, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }
  void wait() override { check(cudaStreamSynchronize(stream_)); }

 private:
  static constexpr std::size_t kElement = sizeof(std::uint16_t);
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  std::vector<void*> memory_;
};

}  // namespace

std::unique_ptr<Machine> make_cuda_machine(int device) {
  return std::make_unique<CudaMachine>(device);
}
