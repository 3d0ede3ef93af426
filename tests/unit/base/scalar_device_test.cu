// On the device: the hardware's conversions against the portable code, for all 2^32 floats and all
// encodings. The host tests prove the portable code.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <gtest/gtest.h>

#include "tutti/device/scalar.hpp"

namespace tutti {
namespace {

// The declarations of CUDA's types in tutti/types.hpp are those of CUDA's headers.
static_assert(DataTypeOf<__half>::value == DataType::kFloat16);
static_assert(DataTypeOf<__nv_bfloat16>::value == DataType::kBfloat16);
static_assert(DataTypeOf<__nv_fp8_e4m3>::value == DataType::kFloat8E4M3);
static_assert(DataTypeOf<__nv_fp8_e5m2>::value == DataType::kFloat8E5M2);

constexpr int kThreads = 256;

// Counts the floats whose bits are first, first + 1, ... of this thread and that differ.
template <class T>
__global__ void compare_narrowing(unsigned long long* different) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  unsigned long long count = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i >> 32 == 0;
       i += stride) {
    const float value = __uint_as_float(static_cast<std::uint32_t>(i));
    if (from_float<T>(value).bits != portable::from_float<T>(value).bits) ++count;
  }
  if (count != 0) atomicAdd(different, count);
}

// NaN equals NaN.
template <class T>
__global__ void compare_widening(std::uint32_t encodings, unsigned long long* different) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= encodings) return;
  const T value{static_cast<decltype(T::bits)>(i)};
  const float a = to_float(value), b = portable::to_float(value);
  const bool equal = (a != a && b != b) || __float_as_uint(a) == __float_as_uint(b);
  if (!equal) atomicAdd(different, 1ull);
}

template <class T>
class ScalarOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    ASSERT_EQ(cudaMallocManaged(&different_, sizeof *different_), cudaSuccess);
    *different_ = 0;
  }
  void TearDown() override { cudaFree(different_); }

  unsigned long long* different_ = nullptr;
};

using Narrow = testing::Types<Half, Bfloat16, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(ScalarOnDevice, Narrow);

TYPED_TEST(ScalarOnDevice, NarrowsAllFloatsAsThePortableCodeDoes) {
  compare_narrowing<TypeParam><<<1024, kThreads>>>(this->different_);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*this->different_, 0u);
}

TYPED_TEST(ScalarOnDevice, WidensAllEncodingsAsThePortableCodeDoes) {
  const std::uint32_t encodings = 1u << (8 * sizeof(TypeParam));
  compare_widening<TypeParam>
      <<<(encodings + kThreads - 1) / kThreads, kThreads>>>(encodings, this->different_);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(*this->different_, 0u);
}

}  // namespace
}  // namespace tutti
