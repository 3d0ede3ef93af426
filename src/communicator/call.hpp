// One operation as the communicator sees it, whatever its collective: api/ makes it from what the
// user gave, and has checked that.
#pragma once

#include "algorithms/catalogue.hpp"
#include "transport/work.hpp"
#include "tutti/collectives.hpp"

namespace tutti {

struct Call {
  Collective collective = Collective::kAllReduce;
  const void* input = nullptr;  // which peers may read; null where the root alone has one
  void* output = nullptr;       // which peers may write; likewise
  std::size_t count = 0;        // elements of the larger of both
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  int root = 0;  // where the collective has one
  Stream stream = nullptr;
  CallOptions options = {};
  TokenNorm norm = {};  // what follows the reduction; `hidden` is 0 where nothing does

  std::size_t bytes() const { return count * size_of(dtype); }  // of the larger side
  Sides sides(int rank, int ranks) const { return sides_of(collective, bytes(), rank, ranks); }
};

}  // namespace tutti
