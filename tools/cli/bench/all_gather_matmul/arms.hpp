// What is compared for one setting on one GPU: the own matmul alone, cuBLASLt by each heuristic,
// and the gated matmul in each order.
#pragma once

#include "bench/all_gather_matmul/host_arrival.hpp"
#include "bench/all_gather_matmul/options.hpp"
#include "bench/matmul/arms.hpp"
#include "matmul/own.hpp"
#include "matmul/predict_gated.hpp"

namespace tutti::cli {

// Of this build, unless a test says otherwise.
struct GatedKernels {
  bool own = has_own_matmul();
  std::function<decltype(load_own_matmul)> load_own = load_own_matmul;
  std::function<decltype(run_own_matmul)> run_own = run_own_matmul;
  std::function<decltype(load_gated_matmul)> load_gated = load_gated_matmul;
  std::function<decltype(run_gated_matmul)> run_gated = run_gated_matmul;
  std::function<decltype(add_cublas_lt_arms)> add_library = add_cublas_lt_arms;
};

struct GatedPlace {
  CudaDriver& cuda;
  MatmulDevice& device;
  GatedKernels kernels;
};

// What the own kernel and the gated one do with a setting.
struct GatedSetting {
  GatedCall alone;  // the matmul without a gate
  GatedCall call;   // its order is each arm's
  std::vector<ArrivalOrder> orders;
  std::optional<ArrivalTrace> trace;  // empty: all flags are set beforehand, or by who brings A
  bool from_host = false;             // A comes by copies
  int pullers = 0;                    // so many blocks bring A; 0: none
  std::string tile;                   // that was forced; empty: none
};

// kUnsupported where the own kernel cannot run it.
Result<GatedSetting> gated_setting(const GatedPlace& place, const AllGatherMatmulOptions& options,
                                   const MatmulSets& sets, const std::string& tile);

// Of `sets`, which must outlive them, as `place` must. The own matmul comes first, and once more as
// the last of the calls, so that noise is known.
Result<MatmulArms> make_gated_arms(const GatedPlace& place, const GatedSetting& setting,
                                   const MatmulSets& sets);

}  // namespace tutti::cli
