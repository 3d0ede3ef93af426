/// \file
/// Matrix products on one GPU or on the host. all_gather_matmul() builds on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tutti/export.hpp"
#include "tutti/types.hpp"

namespace tutti {

/// Which elements of a matrix are neighbours in memory.
enum class MatrixLayout : std::uint8_t {
  kRowMajor,     ///< those of a row
  kColumnMajor,  ///< those of a column
};
/// "row", "column"
TUTTI_API std::string_view to_string(MatrixLayout layout);
/// The inverse of to_string(). Unknown names: kInvalidArgument.
TUTTI_API Result<MatrixLayout> parse_matrix_layout(std::string_view);

/// One matrix B of a Matmul, with its output C and bias.
struct MatmulProduct {
  const void* b = nullptr;     ///< [k, n], in Matmul::b_layout
  void* c = nullptr;           ///< [m, n], row-major
  const void* bias = nullptr;  ///< [n]: added to every row before rounding; null: none
  std::size_t n = 0;
  /// Elements between the beginnings of neighbouring rows of B (row-major: at least n) or columns
  /// (column-major: at least k); 0: no gaps.
  std::size_t ldb = 0;
  std::size_t ldc = 0;  ///< elements between the beginnings of rows of C, at least n; 0: no gaps
};

/// The largest number of products of one call.
inline constexpr std::size_t kMaxMatmulProducts = 8;

/// Arguments of matmul().
struct Matmul {
  const void* a = nullptr;  ///< [m, k], row-major
  const void* b = nullptr;  ///< MatmulProduct::b of the first product, as `c`, `bias` and `n`
  void* c = nullptr;
  const void* bias = nullptr;
  std::size_t m = 0, n = 0, k = 0;
  std::size_t lda = 0;  ///< elements between the beginnings of rows of A, at least k; 0: no gaps
  std::size_t ldb = 0, ldc = 0;
  /// The type of A, B, C and the bias: bf16, fp16 or fp32. Sums are in fp32, and C is rounded once.
  /// own_matmul supports bf16 and fp16 only.
  DataType dtype = DataType::kBfloat16;
  MatrixLayout b_layout = MatrixLayout::kRowMajor;
  /// Further products of the same A, for example of a layer's query, key and value.
  std::span<const MatmulProduct> more = {};
  /// kAuto: the GPU if `a` is GPU memory, otherwise the host.
  Backend backend = Backend::kAuto;
  /// Forces "own_matmul", "cublaslt_matmul", "plain_matmul" or "host_matmul". Empty: chosen by
  /// shape and machine, or by tune().
  std::string_view algorithm = {};
  /// Forces a tile of own_matmul, for example "128x256": "256x128", or "128x" and a multiple of 16
  /// from 112 to 256. The last rows may still have narrower tiles. Empty: chosen.
  std::string_view tile = {};
};

/// C = A x B + bias, for each product. With k = 0, C becomes the bias, or 0; with m or n = 0 there
/// is nothing to do.
///
/// On a GPU the product is enqueued in `stream`, which must belong to the current device. On the
/// host the calling thread computes it before the call returns. C must not overlap what the call
/// reads, nor another C. In a stream capture, cublaslt_matmul runs only if matmul(), plan() or
/// tune() was called with this product before the capture; otherwise the call returns kUnsupported.
///
/// kInvalidArgument: null or misaligned pointers, a leading dimension that is too small, an unknown
/// name, or matrices that are partly in GPU memory and partly in host memory. kUnsupported: another
/// element type, or a forced algorithm that cannot run this call.
TUTTI_API Status matmul(Stream stream, const Matmul& call);

/// What a call runs.
struct MatmulPlan {
  /// "own_matmul", "cublaslt_matmul", "plain_matmul", "host_matmul"; empty: nothing to do
  std::string algorithm;
  /// own_matmul: "128x256x64, cluster 2x1, 4 stages", or, if the last rows have narrower tiles,
  /// "128x256x64, from row 15616 128x160x64, cluster 2x1, 4 stages"; cublaslt_matmul: "heuristic
  /// 1", which is the library's own choice, or "heuristics 1, 3" of two products; else empty
  std::string config;
  std::string why;  ///< what decided
};
/// The plan of a call, without running it. It also prepares the call, which may then run in a
/// capture.
TUTTI_API Result<MatmulPlan> plan(const Matmul& call);

/// Measures what this call could run, and returns the plan: the fastest of the tiles of own_matmul
/// that are predicted to be fast, and of up to 8 heuristics of cuBLASLt. Later calls of matmul(),
/// plan() and explain() in this process use it, if device, sizes, layouts, alignment, `algorithm`
/// and `tile` are the same. It is never forgotten; another tune() replaces it. Within 1 %, the
/// choice without measurements stays. With `algorithm` or `tile`, only what they allow is compared.
/// On the host, or if there is only one way to run the call, it returns the plan.
///
/// It reads A, B and the bias in the order of `stream`, and leaves C untouched: each product writes
/// memory of its own. This memory has the size of all C, with their gaps, plus twice that of the L2
/// cache, which is overwritten before each run, since the weights of a layer are rarely in it. It
/// is freed before the call returns. The call returns after 0.1 s, or after 9 runs of at most 19
/// candidates if these take longer. Other work on the GPU makes the times wrong. It allocates and
/// frees memory, so it may wait for all work on the device: do not call it while a kernel there
/// waits for this thread.
///
/// What cannot run is left out; if nothing can, its error is returned. In a stream capture:
/// kUnsupported. kTimeout: the stream was not finished after 60 s; the memory is then not freed.
/// Otherwise the errors of matmul().
TUTTI_API Result<MatmulPlan> tune(Stream stream, const Matmul& call);

/// A text that explains the choice: each tile of own_matmul with its waves and predicted time, why
/// an algorithm is excluded, and which one is selected.
TUTTI_API Result<std::string> explain(const Matmul& call);

}  // namespace tutti
