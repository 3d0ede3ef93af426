// What a call of matmul() does: where it runs, what it selects, and what is kept between calls.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "drivers/cublas_lt.hpp"
#include "drivers/cuda.hpp"
#include "matmul/gated.hpp"
#include "matmul/own.hpp"
#include "matmul/plain.hpp"
#include "matmul/problem.hpp"
#include "matmul/select.hpp"
#include "matmul/timing.hpp"
#include "matmul/transport.hpp"
#include "matmul/workspaces.hpp"

namespace tutti {

// What matmuls need of the process; of matmul_engine(), unless a test says otherwise.
struct MatmulSurroundings {
  std::function<CudaDriver*(std::string* why)> cuda = real_cuda;
  std::string cublas_lt = {};  // a file; empty: the loader's search finds it
  bool own_kernels = has_own_matmul();
  std::function<decltype(load_own_matmul)> load_own = load_own_matmul;
  std::function<decltype(run_own_matmul)> run_own = run_own_matmul;
  std::function<decltype(load_gated_matmul)> load_gated = load_gated_matmul;
  std::function<decltype(run_gated_matmul)> run_gated = run_gated_matmul;
  std::function<decltype(run_plain_matmul)> run_plain = run_plain_matmul;
  std::function<decltype(time_contenders)> time = time_contenders;
};

// From any number of threads.
class MatmulEngine {
 public:
  explicit MatmulEngine(MatmulSurroundings surroundings) : surroundings_(std::move(surroundings)) {}

  // A call of which nothing can be refused any more: it is checked, its algorithm is selected, and
  // what running it needs is loaded and allocated. It holds as long as the call's arguments do, and
  // within a capture until that ends.
  class Ready;
  Result<Ready> ready(Stream stream, const Matmul& call);
  Status run(const Ready& ready);
  Status run(Stream stream, const Matmul& call);
  // Also prepares what run() needs, so that it may run in a capture.
  Result<MatmulPlan> plan(const Matmul& call);
  // What plan() says afterwards. Later calls that are alike run what was the fastest.
  Result<MatmulPlan> tune(Stream stream, const Matmul& call);
  Result<std::string> explain(const Matmul& call);

  // Of own_matmul whose A arrives while it runs (matmul/gated.hpp): call.a is the gathered A, and
  // `own_a` what this rank has of it. As Ready. kUnsupported: own_matmul cannot run the call.
  struct ReadyGated {
    CheckedMatmul call;
    MatmulTiling tiling;
    int multiprocessors = 0;
    int device = 0;
    ForcedMatmul forced;
  };
  Result<ReadyGated> ready_gated(const Matmul& call, const void* own_a);
  // How that A is brought to a kernel on so many multiprocessors: choose_transport(), once for
  // calls that are alike. What it names is loaded. `plan`: with copy engines.
  struct Bringing {
    ArrivalPlan plan;
    int multiprocessors = 0;
    std::optional<ArrivalTransport> forced = {};
    friend bool operator==(const Bringing&, const Bringing&) = default;
  };
  Result<ChosenTransport> transport(const ReadyGated& ready, const Bringing& how);
  // kUnsupported: own_matmul cannot run such a product on the current GPU, wherever it lies.
  Status check_gated(const MatmulProblem& problem);
  // On so many multiprocessors.
  Status run(const ReadyGated& ready, const Arrival& arrival, int multiprocessors, Stream stream);

 private:
  struct Checked {
    CheckedMatmul call;
    ForcedMatmul forced;
    Backend backend = Backend::kHost;
  };
  struct Gpu {
    MatmulMachine machine;
    std::shared_ptr<CublasLt> cublas_lt;  // null: `machine` says why
  };
  using Products = std::vector<std::shared_ptr<const CublasLtProduct>>;
  // What calls that are alike share.
  struct Prepared {
    MatmulMachine machine;  // as it was for the selection
    Result<SelectedMatmul> selected;
    Products products;   // of kCublasLt
    bool tuned = false;  // never forgotten
  };
  using PreparedPtr = std::shared_ptr<const Prepared>;
  struct Key {
    int device = 0;
    ForcedMatmul forced;
    MatmulProblem problem;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct BroughtKey {
    Key key;
    Bringing how;
    friend bool operator==(const BroughtKey&, const BroughtKey&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
    std::size_t operator()(const BroughtKey& key) const { return (*this)(key.key); }
  };
  // Of about 2 KiB; beyond, all are forgotten. Tuned ones do not count, and stay.
  static constexpr std::size_t kMostPrepared = 4096;

  CudaDriver* cuda();
  Result<Checked> check_call(const Matmul& call);
  Result<Gpu> gpu(int device, bool capturing);
  Result<PreparedPtr> prepare(const Key& key, bool capturing);
  Result<PreparedPtr> prepare_in_capture(const Key& key, const MatmulMachine& machine);
  static Result<Products> prepare_products(const MatmulProblem& problem, CublasLt& library);
  Result<MatmulTiling> gated_tiling(const Key& key, const MatmulMachine& machine);
  // Of cublaslt_matmul, in a stream of `device`.
  struct Place {
    int device = 0;
    Stream stream = nullptr;
    CudaCapture capture = {};
  };
  Status run_on_gpu(const Ready& ready);
  // `workspace`: null, if it needs none.
  Status run_product(const CublasLtProduct& product, int heuristic, const MatmulOperands& operands,
                     const CublasLtWorkspaces::Lease& workspace, Stream stream);
  // Null: it needs none.
  Result<CublasLtWorkspaces::Lease> workspace_of(const CublasLtProduct& product, int heuristic,
                                                 const Place& place);

  // What tune() compares, with what it needs.
  struct Tuning;
  Result<Tuning> make_tuning(const Key& key);
  void add_runs(Tuning& tuning, const CheckedMatmul& call, const Place& place);
  Status measure(Tuning& tuning, CheckedMatmul call, const Place& place);
  void keep(const Key& key, PreparedPtr tuned);

  const MatmulSurroundings surroundings_;
  std::once_flag cuda_once_;  // of the next three
  CudaDriver* cuda_ = nullptr;
  std::string why_no_cuda_;
  std::unique_ptr<CublasLtWorkspaces> workspaces_;
  std::mutex mutex_;  // of everything below
  std::map<int, Gpu> gpus_;
  std::unordered_map<Key, PreparedPtr, KeyHash> prepared_;
  std::size_t tuned_ = 0;  // of them
  // Whose kernels are loaded.
  std::unordered_map<Key, MatmulTiling, KeyHash> gated_;
  std::unordered_map<BroughtKey, ChosenTransport, KeyHash> brought_;
};

class MatmulEngine::Ready {
 private:
  friend class MatmulEngine;
  Checked checked_;
  Place place_;                                        // of what runs on a GPU
  PreparedPtr prepared_;                               // likewise
  std::vector<CublasLtWorkspaces::Lease> workspaces_;  // likewise, of each product of kCublasLt
};

// Of this process. It is never destroyed: graphs may outlive static objects.
MatmulEngine& matmul_engine();

}  // namespace tutti
