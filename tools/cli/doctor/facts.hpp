// What `tutti doctor` looks at, as values: gathered in one place, judged in another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/transfer.hpp"
#include "drivers/optional_libraries.hpp"
#include "topology/topology.hpp"

namespace tutti::cli {

inline constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

struct Facts {
  Machine machine;
  bool built_with_cuda = false;
  bool device_nodes = false;  // /dev/nvidia0 and so on: there is a GPU, whatever the driver says
  std::string why_no_cuda, why_no_nvml, why_no_nccl;  // empty: it is there
  std::string nccl_version;
  int nccl_number = 0;           // the same, 22809 for 2.28.9
  std::string why_no_multicast;  // empty: it may be used where GPUs have it
  // Found, or why not.
  Result<FoundLibrary> cublas_lt = Status(StatusCode::kUnavailable, "not looked for");
  Result<FoundLibrary> ucx = Status(StatusCode::kUnavailable, "not looked for");
  // What messages between hosts would travel over, "tcp over eth0", or why there is nothing.
  Result<std::string> network = Status(StatusCode::kUnavailable, "not looked for");
  std::vector<Transfer> transfers;
  std::string why_no_shared_memory;      // empty: anonymous shared memory can be made
  std::uint64_t shared_memory_free = 0;  // of /dev/shm
  std::string why_shm_not_writable;      // empty: files can be made in /dev/shm
  std::string runtime_folder;            // where ranks meet
  std::string why_no_runtime_folder;     // empty: folders can be made there
  std::string trace_folder;              // TUTTI_TRACE_DIR; empty: none is set
  std::string why_no_trace_folder;       // empty: it can be written to
  std::uint64_t open_files = 0, locked_memory = 0, processes = 0;  // soft limits
  std::uint64_t open_files_most = 0;                               // hard limit
  std::uint64_t communicator_bytes = 0;                            // per rank
  std::string communicator_formula;
};

Facts gather_facts();

// Empty if a folder can be made in `folder`, which is found out by making one.
std::string why_not_writable(const std::string& folder);

// The part of it that can be asked of stand-ins.
void look_for_libraries(OptionalLibraries& libraries, Facts& facts);

}  // namespace tutti::cli
