// NCCL as a library that may be there: found at run time (one that is already loaded is reused;
// then TUTTI_NCCL_LIBRARY, then libnccl.so.2), with own prototypes of what is used.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "tutti/types.hpp"

namespace tutti {

using NcclComm = void*;    // ncclComm_t
using NcclWindow = void*;  // ncclWindow_t
struct NcclId {
  std::array<std::byte, 128> bytes{};
};

struct NcclAllReduce {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  ReduceOp op;
  Stream stream = nullptr;
};

class NcclDriver {
 public:
  virtual ~NcclDriver() = default;
  virtual Result<std::string> version() = 0;  // "2.28.9"
  virtual Result<NcclId> unique_id() = 0;
  // Blocks until every rank has called; the calling thread's device must be set. From several ranks
  // of one process: one thread per rank.
  virtual Result<NcclComm> create(const NcclId& id, int rank, int size) = 0;
  virtual Status destroy(NcclComm comm) = 0;
  virtual Status abort(NcclComm comm) = 0;
  virtual Status async_error(NcclComm comm) = 0;  // never blocks
  virtual Status all_reduce(NcclComm comm, const NcclAllReduce& call) = 0;
  virtual Status group_start() = 0;
  virtual Status group_end() = 0;
};

NcclDriver* real_nccl(std::string* why = nullptr);

}  // namespace tutti
