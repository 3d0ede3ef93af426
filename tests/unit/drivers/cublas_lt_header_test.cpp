// What cublas_lt_library.hpp says of cuBLASLt, against the toolkit's own header, where it has one.
#include <gtest/gtest.h>

#include "drivers/cublas_lt_library.hpp"

#if __has_include(<cublasLt.h>)
#define TUTTI_HAS_CUBLAS_LT_HEADER 1
#include <cublasLt.h>
#endif

namespace tutti {
namespace {

#ifdef TUTTI_HAS_CUBLAS_LT_HEADER
static_assert(kCublasSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(kCublasCompute32F == CUBLAS_COMPUTE_32F);
static_assert(kCublasCompute32FFastTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(kCublasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(kCublasTranspose == CUBLAS_OP_T && sizeof(cublasOperation_t) == sizeof(int));
static_assert(kCublasLtTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(kCublasLtEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(kCublasLtEpilogueBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(sizeof(cublasLtEpilogue_t) == sizeof(int));
static_assert(kCublasLtBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(kCublasLtMaxWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kCublasLtReductionSchemes == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(kCublasLtNoReduction == CUBLASLT_REDUCTION_SCHEME_NONE);
static_assert(kCublasLtReductionInFp32 == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(kCublasLtAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(kCublasLtAlignmentB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(kCublasLtAlignmentC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(kCublasLtAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

using Theirs = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(CublasLtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(CublasLtHeuristic) == sizeof(Theirs));
static_assert(offsetof(CublasLtHeuristic, workspace_bytes) == offsetof(Theirs, workspaceSize));
static_assert(offsetof(CublasLtHeuristic, state) == offsetof(Theirs, state));

// Enumerations travel as int, handles as pointers.
static_assert(sizeof(cublasComputeType_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int));
static_assert(sizeof(cublasStatus_t) == sizeof(int));
static_assert(sizeof(cublasLtHandle_t) == sizeof(CublasLtHandle));

TEST(CublasLtHeader, NamesTheSameTypes) {
  EXPECT_EQ(cuda_data_type(DataType::kFloat32), CUDA_R_32F);
  EXPECT_EQ(cuda_data_type(DataType::kFloat16), CUDA_R_16F);
  EXPECT_EQ(cuda_data_type(DataType::kBfloat16), CUDA_R_16BF);
}
#else
TEST(CublasLtHeader, NamesTheSameTypes) { GTEST_SKIP() << "there is no cublasLt.h here"; }
#endif

}  // namespace
}  // namespace tutti
