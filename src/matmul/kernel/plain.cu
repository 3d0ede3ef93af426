#include "base/try.hpp"
#include "base/units.hpp"
#include "matmul/plain.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti {
namespace {

constexpr int kTile = 32;  // rows and columns of C that a block computes at a time, and of K
constexpr int kLines = 8;  // lines of a tile that its threads load at once
constexpr int kSums = kTile / kLines;  // of a thread
constexpr int kThreads = kTile * kLines;
constexpr std::size_t kMostBlocks = 65536;

template <class T>
struct PlainProduct {
  const T* a;
  const T* b;
  const T* bias;  // null: none
  T* c;
  std::size_t m, n, k, lda, ldb, ldc;
  bool b_is_row_major;
};

// One element of each sum at a time, in the order of k.
template <class T>
class PlainTile {
 public:
  __device__ PlainTile(const PlainProduct<T>& product, std::size_t row, std::size_t column)
      : p_(product), row_(row), column_(column) {}

  __device__ void compute(float (&a)[kTile][kTile + 1], float (&b)[kTile][kTile + 1]) {
    for (std::size_t k = 0; k < p_.k; k += kTile) {
      __syncthreads();  // the panels before have been read
      load(a, b, k);
      __syncthreads();
      const int depth = p_.k - k < kTile ? static_cast<int>(p_.k - k) : kTile;
      for (int i = 0; i < depth; ++i) {
#pragma unroll
        for (int s = 0; s < kSums; ++s) sums_[s] += a[y_ + s * kLines][i] * b[i][x_];
      }
    }
  }

  __device__ void store() const {
    const std::size_t column = column_ + x_;
    if (column >= p_.n) return;
    const float bias = p_.bias == nullptr ? 0.0F : to_float(p_.bias[column]);
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
      const std::size_t row = row_ + y_ + s * kLines;
      if (row >= p_.m) continue;
      const float sum = p_.bias == nullptr ? sums_[s] : sums_[s] + bias;
      p_.c[row * p_.ldc + column] = from_float<T>(sum);
    }
  }

 private:
  __device__ void load(float (&a)[kTile][kTile + 1], float (&b)[kTile][kTile + 1], std::size_t k) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
      const int line = y_ + s * kLines;
      a[line][x_] = element(p_.a, {row_ + line, p_.m}, {k + x_, p_.k}, p_.lda);
      if (p_.b_is_row_major) {
        b[line][x_] = element(p_.b, {k + line, p_.k}, {column_ + x_, p_.n}, p_.ldb);
      } else {
        b[x_][line] = element(p_.b, {column_ + line, p_.n}, {k + x_, p_.k}, p_.ldb);
      }
    }
  }

  struct Index {
    std::size_t at, end;
  };
  static __device__ float element(const T* matrix, Index line, Index in_line,
                                  std::size_t distance) {
    if (line.at >= line.end || in_line.at >= in_line.end) return 0.0F;
    return to_float(matrix[line.at * distance + in_line.at]);
  }

  const PlainProduct<T>& p_;
  const std::size_t row_, column_;
  const int x_ = static_cast<int>(threadIdx.x) % kTile;
  const int y_ = static_cast<int>(threadIdx.x) / kTile;
  float sums_[kSums] = {};
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    plain_matmul(const __grid_constant__ PlainProduct<T> product) {
  __shared__ float a[kTile][kTile + 1], b[kTile][kTile + 1];
  const std::size_t across = (product.n + kTile - 1) / kTile;
  const std::size_t tiles = (product.m + kTile - 1) / kTile * across;
  for (std::size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    PlainTile<T> part(product, tile / across * kTile, tile % across * kTile);
    part.compute(a, b);
    part.store();
  }
}

template <class T>
Status launch_plain(CudaDriver& cuda, const CheckedMatmul& call, int which, Stream stream) {
  const MatmulProblem& problem = call.problem;
  const ProductShape& shape = problem.product[static_cast<std::size_t>(which)];
  const ProductPlaces& places = call.product[static_cast<std::size_t>(which)];
  PlainProduct<T> product{.a = static_cast<const T*>(call.a),
                          .b = static_cast<const T*>(places.b),
                          .bias = static_cast<const T*>(places.bias),
                          .c = static_cast<T*>(places.c),
                          .m = problem.m,
                          .n = shape.n,
                          .k = problem.k,
                          .lda = problem.lda,
                          .ldb = shape.ldb,
                          .ldc = shape.ldc,
                          .b_is_row_major = problem.b_layout == MatrixLayout::kRowMajor};
  const std::size_t tiles = ceil_div(problem.m, kTile) * ceil_div(shape.n, kTile);
  void* arguments[] = {&product};
  return cuda.launch({.kernel = reinterpret_cast<const void*>(&plain_matmul<T>),
                      .blocks = static_cast<int>(tiles < kMostBlocks ? tiles : kMostBlocks),
                      .threads = kThreads,
                      .arguments = arguments,
                      .stream = stream});
}

template <class T>
Status launch_all(CudaDriver& cuda, const CheckedMatmul& call, Stream stream) {
  for (int i = 0; i < call.problem.products; ++i) {
    TUTTI_TRY(launch_plain<T>(cuda, call, i, stream));
  }
  return Status::ok();
}

}  // namespace

Status run_plain_matmul(CudaDriver& cuda, const CheckedMatmul& call, Stream stream) {
  switch (call.problem.dtype) {
    case DataType::kFloat32:
      return launch_all<float>(cuda, call, stream);
    case DataType::kFloat16:
      return launch_all<Half>(cuda, call, stream);
    default:
      return launch_all<Bfloat16>(cuda, call, stream);
  }
}

}  // namespace tutti
