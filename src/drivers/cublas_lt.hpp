// Matrix products by cuBLASLt, prepared once and run often.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "drivers/matmul.hpp"
#include "tutti/status.hpp"

namespace tutti {

// What a product may use besides its matrices. Products in different streams must not share it.
struct CublasLtWorkspace {
  CudaAddress address = nullptr;
  std::size_t bytes = 0;
};

inline constexpr std::size_t kCublasLtWorkspaceBytes = std::size_t{32} << 20;  // cuBLAS's on Hopper

// One shape's product, from any number of threads.
class CublasLtProduct {
 public:
  virtual ~CublasLtProduct() = default;
  // Algorithms that the library proposes, the one that it expects to be fastest first: 1 to 8.
  virtual int heuristics() const = 0;
  virtual std::size_t workspace_bytes(int heuristic) const = 0;  // at most kCublasLtWorkspaceBytes
  virtual Status run(int heuristic, const MatmulOperands& operands,
                     const CublasLtWorkspace& workspace, Stream stream) const = 0;
};

class CublasLt {
 public:
  virtual ~CublasLt() = default;
  // For the calling thread's device. `library` as for make_cublas_lt_matmul().
  static Result<std::shared_ptr<CublasLt>> open(const std::string& library = {});
  virtual const std::string& version() const = 0;  // "13.0.2"
  // Asks the library which algorithms it proposes: not during a capture. kUnsupported: none.
  virtual Result<std::unique_ptr<CublasLtProduct>> prepare(const MatmulShape& shape) = 0;
};

}  // namespace tutti
