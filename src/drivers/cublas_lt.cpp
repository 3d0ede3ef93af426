#include <fmt/format.h>

#include <memory>

#include "base/try.hpp"
#include "base/units.hpp"
#include "drivers/cublas_lt_library.hpp"
#include "drivers/dynamic_library.hpp"
#include "drivers/matmul.hpp"
#include "drivers/optional_libraries.hpp"

namespace tutti {
namespace {

constexpr std::size_t kWorkspaceBytes = 32 * MiB;  // what cuBLAS takes on Hopper

using Owned = std::unique_ptr<void, int (*)(void*)>;

class CublasLtMatmul final : public Matmul {
 public:
  CublasLtMatmul(CublasLtLibrary library, CudaDriver& cuda)
      : lt_(std::move(library)), cuda_(cuda) {}

  // Nothing can be done about a failure here.
  ~CublasLtMatmul() override {
    if (workspace_ != nullptr) static_cast<void>(cuda_.free(workspace_).is_ok());
  }
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  Status open(int device, const MatmulShape& shape) {
    const int type = cuda_data_type(shape.dtype);
    const int compute = shape.tf32 ? kCublasCompute32FFastTf32 : kCublasCompute32F;
    TUTTI_TRY(check(make(handle_, lt_.destroy, lt_.create), "cublasLtCreate"));
    TUTTI_TRY(check(make(operation_, lt_.operation_destroy, lt_.operation_create, compute,
                         cuda_data_type(DataType::kFloat32)),
                    "cublasLtMatmulDescCreate"));
    // Columns are contiguous there: what is [m, k] here is [k, m] there, and C' = B' x A'.
    TUTTI_TRY(open_layout(a_, type, shape.k, shape.m));
    TUTTI_TRY(open_layout(b_, type, shape.n, shape.k));
    TUTTI_TRY(open_layout(c_, type, shape.n, shape.m));
    TUTTI_ASSIGN(workspace_, cuda_.allocate(device, kWorkspaceBytes));
    return choose();
  }

  Status run(const void* a, const void* b, void* c, Stream stream) override {
    constexpr float kOne = 1.0F, kZero = 0.0F;
    return check(
        lt_.matmul(handle_.get(), operation_.get(), &kOne, b, b_.get(), a, a_.get(), &kZero, c,
                   c_.get(), c, c_.get(), &algorithm_, workspace_, kWorkspaceBytes, stream),
        "cublasLtMatmul");
  }

  std::string library() const override { return "cuBLASLt " + lt_.version; }

 private:
  Status check(int status, const char* call) const {
    if (status == kCublasSuccess) return Status::ok();
    return {StatusCode::kCuda, fmt::format("{}: {}", call, lt_.get_status_string(status))};
  }

  template <class... Arguments>
  static int make(Owned& into, int (*destroy)(void*), int (*create)(void**, Arguments...),
                  Arguments... arguments) {
    void* made = nullptr;
    const int status = create(&made, arguments...);
    if (status == kCublasSuccess) into = Owned(made, destroy);
    return status;
  }

  Status open_layout(Owned& into, int type, std::uint64_t rows, std::uint64_t columns) {
    return check(make(into, lt_.layout_destroy, lt_.layout_create, type, rows, columns,
                      static_cast<std::int64_t>(rows)),
                 "cublasLtMatrixLayoutCreate");
  }

  // What the library thinks is fastest.
  Status choose() {
    Owned preference = none();
    TUTTI_TRY(check(make(preference, lt_.preference_destroy, lt_.preference_create),
                    "cublasLtMatmulPreferenceCreate"));
    const std::size_t most = kWorkspaceBytes;
    TUTTI_TRY(check(lt_.preference_set(preference.get(), kCublasLtMaxWorkspace, &most, sizeof most),
                    "cublasLtMatmulPreferenceSetAttribute"));
    CublasLtHeuristic best{};
    int found = 0;
    TUTTI_TRY(check(lt_.heuristic(handle_.get(), operation_.get(), b_.get(), a_.get(), c_.get(),
                                  c_.get(), preference.get(), 1, &best, &found),
                    "cublasLtMatmulAlgoGetHeuristic"));
    if (found == 0 || best.state != kCublasSuccess) {
      return {StatusCode::kUnsupported, "cuBLASLt has no algorithm for this matmul"};
    }
    algorithm_ = best.algorithm;
    return Status::ok();
  }

  static Owned none() { return {nullptr, nullptr}; }

  const CublasLtLibrary lt_;
  CudaDriver& cuda_;
  CudaAddress workspace_ = nullptr;
  Owned handle_ = none(), operation_ = none(), a_ = none(), b_ = none(), c_ = none();
  CublasLtAlgorithm algorithm_{};
};

}  // namespace

Result<CublasLtLibrary> load_cublas_lt(const std::string& name) {
  TUTTI_ASSIGN(const FoundLibrary found,
               name.empty() ? real_optional_libraries().cublas_lt() : look_at_cublas_lt(name));
  TUTTI_ASSIGN(const DynamicLibrary library, DynamicLibrary::open(found.path));
  CublasLtLibrary lt{.version = found.version};
  std::string missing;
  library.require("cublasLtGetStatusString", lt.get_status_string, missing);
  library.require("cublasLtCreate", lt.create, missing);
  library.require("cublasLtDestroy", lt.destroy, missing);
  library.require("cublasLtMatmulDescCreate", lt.operation_create, missing);
  library.require("cublasLtMatmulDescDestroy", lt.operation_destroy, missing);
  library.require("cublasLtMatrixLayoutCreate", lt.layout_create, missing);
  library.require("cublasLtMatrixLayoutDestroy", lt.layout_destroy, missing);
  library.require("cublasLtMatmulPreferenceCreate", lt.preference_create, missing);
  library.require("cublasLtMatmulPreferenceDestroy", lt.preference_destroy, missing);
  library.require("cublasLtMatmulPreferenceSetAttribute", lt.preference_set, missing);
  library.require("cublasLtMatmulAlgoGetHeuristic", lt.heuristic, missing);
  library.require("cublasLtMatmul", lt.matmul, missing);
  if (missing.empty()) return lt;
  return Status(StatusCode::kUnavailable, fmt::format("{} has no {}", found.path, missing));
}

int cuda_data_type(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return 0;
    case DataType::kFloat16:
      return 2;
    case DataType::kBfloat16:
      return 14;
    default:
      return -1;
  }
}

Result<std::unique_ptr<Matmul>> make_cublas_lt_matmul(CudaDriver& cuda, int device,
                                                      const MatmulShape& shape,
                                                      const std::string& library) {
  if (cuda_data_type(shape.dtype) < 0) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("a matmul is of fp16, bf16 or fp32, not {}", to_string(shape.dtype)));
  }
  auto lt = load_cublas_lt(library);
  if (!lt.is_ok()) return lt.status().with_context("cuBLASLt");
  auto matmul = std::make_unique<CublasLtMatmul>(std::move(*lt), cuda);
  TUTTI_TRY(matmul->open(device, shape));
  return std::unique_ptr<Matmul>(std::move(matmul));
}

}  // namespace tutti
