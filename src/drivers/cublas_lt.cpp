#include "drivers/cublas_lt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "base/try.hpp"
#include "drivers/cublas_lt_library.hpp"
#include "drivers/dynamic_library.hpp"
#include "drivers/optional_libraries.hpp"

namespace tutti {
namespace {

constexpr int kMostHeuristics = 8;

// Where K is no multiple of what one step of a kernel adds, kernels of cuBLAS 12 and 13 that split
// K may leave out the rest of K, without an error.
constexpr std::size_t kSplitMultiple = 128;

// Kernels may read a bias 16 bytes at a time, and no preference tells the library its alignment.
constexpr std::size_t kBiasAlignment = 16;

using Owned = std::unique_ptr<void, int (*)(void*)>;
Owned none() { return {nullptr, nullptr}; }

template <class... Arguments>
int make_owned(Owned& into, int (*destroy)(void*), int (*create)(void**, Arguments...),
               Arguments... arguments) {
  void* made = nullptr;
  const int status = create(&made, arguments...);
  if (status == kCublasSuccess) into = Owned(made, destroy);
  return status;
}

Status check_cublas(const CublasLtLibrary& lt, int status, const char* call) {
  if (status == kCublasSuccess) return Status::ok();
  const bool unsupported = status == kCublasNotSupported;
  return {unsupported ? StatusCode::kUnsupported : StatusCode::kCuda,
          fmt::format("{}: {}", call, lt.get_status_string(status))};
}

// A library and its handle, which products keep.
struct LtHandle {
  explicit LtHandle(CublasLtLibrary library) : lt(std::move(library)) {}
  Status check(int status, const char* call) const { return check_cublas(lt, status, call); }
  const CublasLtLibrary lt;
  Owned handle = none();
};

class RealCublasLtProduct final : public CublasLtProduct {
 public:
  explicit RealCublasLtProduct(std::shared_ptr<const LtHandle> lt) : lt_(std::move(lt)) {}

  Status open(const MatmulShape& shape) {
    const CublasLtLibrary& lt = lt_->lt;
    const int type = cuda_data_type(shape.dtype);
    const int compute = shape.tf32 ? kCublasCompute32FFastTf32 : kCublasCompute32F;
    TUTTI_TRY(lt_->check(make_owned(operation_, lt.operation_destroy, lt.operation_create, compute,
                                    cuda_data_type(DataType::kFloat32)),
                         "cublasLtMatmulDescCreate"));
    // Columns are contiguous there: what is [m, k] here is [k, m] there, and C' = B' x A'. A B
    // whose columns are contiguous here is transposed there.
    const bool transposed = shape.b_layout == MatrixLayout::kColumnMajor;
    if (transposed) TUTTI_TRY(set(kCublasLtTransposeA, kCublasTranspose));
    const std::size_t b_rows = transposed ? shape.k : shape.n;
    TUTTI_TRY(open_layout(a_, type, {shape.k, shape.m, shape.lda}));
    TUTTI_TRY(open_layout(b_, type, {b_rows, transposed ? shape.n : shape.k, shape.ldb}));
    TUTTI_TRY(open_layout(c_, type, {shape.n, shape.m, shape.ldc}));
    if (shape.bias) {
      TUTTI_TRY(set(kCublasLtEpilogue, kCublasLtEpilogueBias));
      // Nothing is read there: the library looks at the alignment alone.
      TUTTI_TRY(set(kCublasLtBiasPointer, reinterpret_cast<const void*>(shape.bias_alignment)));
      has_bias_ = true;
    }
    return ask(shape);
  }

  int heuristics() const override { return found_; }
  std::size_t workspace_bytes(int heuristic) const override {
    return proposals_[static_cast<std::size_t>(heuristic)].workspace_bytes;
  }

  Status run(int heuristic, const MatmulOperands& operands, const CublasLtWorkspace& workspace,
             Stream stream) const override {
    constexpr float kOne = 1.0F, kZero = 0.0F;
    const CublasLtHeuristic& proposal = proposals_[static_cast<std::size_t>(heuristic)];
    const std::lock_guard lock(mutex_);
    if (has_bias_) TUTTI_TRY(set(kCublasLtBiasPointer, operands.bias));
    return lt_->check(
        lt_->lt.matmul(lt_->handle.get(), operation_.get(), &kOne, operands.b, b_.get(), operands.a,
                       a_.get(), &kZero, operands.c, c_.get(), operands.c, c_.get(),
                       &proposal.algorithm, workspace.address, workspace.bytes, stream),
        "cublasLtMatmul");
  }

 private:
  struct Extents {
    std::size_t rows = 0, columns = 0, distance = 0;  // there; 0: no gaps
  };

  template <class T>
  Status set(int attribute, const T& value) const {
    return lt_->check(lt_->lt.operation_set(operation_.get(), attribute, &value, sizeof value),
                      "cublasLtMatmulDescSetAttribute");
  }

  Status open_layout(Owned& into, int type, const Extents& extents) {
    const std::size_t distance = extents.distance != 0 ? extents.distance : extents.rows;
    return lt_->check(make_owned(into, lt_->lt.layout_destroy, lt_->lt.layout_create, type,
                                 std::uint64_t{extents.rows}, std::uint64_t{extents.columns},
                                 static_cast<std::int64_t>(distance)),
                      "cublasLtMatrixLayoutCreate");
  }

  Status ask(const MatmulShape& shape) {
    const CublasLtLibrary& lt = lt_->lt;
    Owned preference = none();
    TUTTI_TRY(lt_->check(make_owned(preference, lt.preference_destroy, lt.preference_create),
                         "cublasLtMatmulPreferenceCreate"));
    const auto prefer = [&](int attribute, const auto& value) {
      return lt_->check(lt.preference_set(preference.get(), attribute, &value, sizeof value),
                        "cublasLtMatmulPreferenceSetAttribute");
    };
    const auto alignment = static_cast<std::uint32_t>(shape.alignment);
    const bool splits = shape.k % kSplitMultiple == 0;
    const auto schemes =
        static_cast<std::uint32_t>(splits ? kCublasLtReductionInFp32 : kCublasLtNoReduction);
    TUTTI_TRY(prefer(kCublasLtMaxWorkspace, kCublasLtWorkspaceBytes));
    TUTTI_TRY(prefer(kCublasLtReductionSchemes, schemes));
    TUTTI_TRY(prefer(kCublasLtAlignmentA, alignment));
    TUTTI_TRY(prefer(kCublasLtAlignmentB, alignment));
    TUTTI_TRY(prefer(kCublasLtAlignmentC, alignment));
    TUTTI_TRY(prefer(kCublasLtAlignmentD, alignment));
    int found = 0;
    TUTTI_TRY(lt_->check(
        lt.heuristic(lt_->handle.get(), operation_.get(), b_.get(), a_.get(), c_.get(), c_.get(),
                     preference.get(), kMostHeuristics, proposals_.data(), &found),
        "cublasLtMatmulAlgoGetHeuristic"));
    const auto usable =
        std::stable_partition(proposals_.begin(), proposals_.begin() + found,
                              [](const auto& each) { return each.state == kCublasSuccess; });
    found_ = static_cast<int>(usable - proposals_.begin());
    if (found_ > 0) return Status::ok();
    return {StatusCode::kUnsupported, "cuBLASLt has no algorithm for this matmul"};
  }

  const std::shared_ptr<const LtHandle> lt_;
  Owned operation_ = none(), a_ = none(), b_ = none(), c_ = none();
  bool has_bias_ = false;
  std::array<CublasLtHeuristic, kMostHeuristics> proposals_{};
  int found_ = 0;
  mutable std::mutex mutex_;  // of the bias in operation_
};

class RealCublasLt final : public CublasLt {
 public:
  explicit RealCublasLt(std::shared_ptr<const LtHandle> lt) : lt_(std::move(lt)) {}

  const std::string& version() const override { return lt_->lt.version; }

  Result<std::unique_ptr<CublasLtProduct>> prepare(const MatmulShape& shape) override {
    if (cuda_data_type(shape.dtype) < 0) {
      return Status(
          StatusCode::kUnsupported,
          fmt::format("a matmul is of fp16, bf16 or fp32, not {}", to_string(shape.dtype)));
    }
    if (shape.bias && shape.bias_alignment < kBiasAlignment) {
      return Status(
          StatusCode::kUnsupported,
          fmt::format("cuBLASLt needs a bias at a multiple of {} bytes, and here it is at "
                      "a multiple of {}",
                      kBiasAlignment, shape.bias_alignment));
    }
    auto product = std::make_unique<RealCublasLtProduct>(lt_);
    TUTTI_TRY(product->open(shape));
    return std::unique_ptr<CublasLtProduct>(std::move(product));
  }

 private:
  const std::shared_ptr<const LtHandle> lt_;
};

// A product with a workspace of its own.
class CublasLtMatmul final : public LibraryMatmul {
 public:
  explicit CublasLtMatmul(CudaDriver& cuda) : cuda_(cuda) {}

  // Nothing can be done about a failure here.
  ~CublasLtMatmul() override {
    if (workspace_ != nullptr) static_cast<void>(cuda_.free(workspace_).is_ok());
  }
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  Status open(CublasLt& library, int device, const MatmulShape& shape) {
    version_ = library.version();
    TUTTI_ASSIGN(product_, library.prepare(shape));
    TUTTI_ASSIGN(workspace_, cuda_.allocate(device, kCublasLtWorkspaceBytes));
    return Status::ok();
  }

  Status run(const MatmulOperands& operands, Stream stream) override {
    return product_->run(chosen_, operands, {workspace_, kCublasLtWorkspaceBytes}, stream);
  }
  std::string library() const override { return "cuBLASLt " + version_; }
  int heuristics() const override { return product_->heuristics(); }
  void choose(int heuristic) override { chosen_ = heuristic; }

 private:
  CudaDriver& cuda_;
  std::string version_;
  std::unique_ptr<CublasLtProduct> product_;
  CudaAddress workspace_ = nullptr;
  int chosen_ = 0;
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
  library.require("cublasLtMatmulDescSetAttribute", lt.operation_set, missing);
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

Result<std::shared_ptr<CublasLt>> CublasLt::open(const std::string& library) {
  auto loaded = load_cublas_lt(library);
  if (!loaded.is_ok()) return loaded.status().with_context("cuBLASLt");
  auto lt = std::make_shared<LtHandle>(std::move(*loaded));
  TUTTI_TRY(lt->check(make_owned(lt->handle, lt->lt.destroy, lt->lt.create), "cublasLtCreate"));
  return std::shared_ptr<CublasLt>(std::make_shared<RealCublasLt>(std::move(lt)));
}

Result<std::unique_ptr<LibraryMatmul>> make_cublas_lt_matmul(CudaDriver& cuda, int device,
                                                             const MatmulShape& shape,
                                                             const std::string& library) {
  TUTTI_ASSIGN(const std::shared_ptr<CublasLt> lt, CublasLt::open(library));
  auto matmul = std::make_unique<CublasLtMatmul>(cuda);
  TUTTI_TRY(matmul->open(*lt, device, shape));
  return std::unique_ptr<LibraryMatmul>(std::move(matmul));
}

}  // namespace tutti
