// What only GPUs can show. Each file has its own list.
#pragma once

#include <span>
#include <string>

#include "conformance/scenarios.hpp"

namespace tutti::test {

std::span<const Scenario> graph_scenarios();     // captures that work
std::span<const Scenario> capture_failures();    // captures that must fail, and how
std::span<const Scenario> nccl_failures();       // waits in NCCL, which need it
std::span<const Scenario> nccl_windows();        // the same, 2.27 or newer
std::span<const Scenario> nccl_window_waits();   // and 2.29.7 or newer
std::span<const Scenario> protocol_controls();   // each barrier left out must show
std::span<const Scenario> one_sided();           // on one peer's memory, and signals
std::span<const Scenario> stream_barriers();     // copy engines whose ranks meet without an SM
std::span<const Scenario> all_gather_matmuls();  // one step after the other
std::span<const Scenario> fused();               // its overlapped forms: fused, and pipelines
std::span<const Scenario> surroundings();        // busy GPUs, memory that is given out again

// Tests that make their ranks themselves. Empty where all is well.
struct WholeTest {
  std::string_view name;
  std::string (*run)(int ranks);
};
std::span<const WholeTest> whole_tests();
std::span<const WholeTest> settings_of_cuda();
std::span<const WholeTest> staged_network();  // operations between nodes
std::span<const WholeTest> direct_network();  // the same from GPU to GPU, over UCX

}  // namespace tutti::test
