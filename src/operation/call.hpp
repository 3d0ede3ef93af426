// One operation as the communicator sees it, whatever its collective: api/ makes it from what the
// user gave, and has checked that.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "device/messages.hpp"
#include "operation/arrivals.hpp"
#include "operation/lengths.hpp"
#include "tutti/collectives.hpp"

namespace tutti {

// A message at one of its ends: sent if it has an input, taken if it has an output; with both, a
// rank's own. `count` > 0.
struct MessageCall {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  DataType dtype = DataType::kFloat32;
  int peer = 0;

  std::size_t bytes() const { return count * size_of(dtype); }
};

struct Call {
  Collective collective = Collective::kAllReduce;
  const void* input = nullptr;  // which peers may read; null where the root alone has one
  void* output = nullptr;       // which peers may write; likewise
  std::size_t count = 0;        // elements of the larger of both; of uneven pieces: see is_uneven()
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  int root = 0;  // where the collective has one
  Stream stream = nullptr;
  CallOptions options = {};
  // What follows the reduction; `hidden` is 0 where nothing does. Where rows are split it is how
  // long these are, and the rest says nothing.
  TokenNorm norm = {};
  // Of kSendRecv, which has neither input nor output then: one or more, all by one row.
  std::vector<MessageCall> messages = {};
  Lengths lengths = {};  // of uneven pieces
  // Of all_gathers by copy engine on GPUs. They alone may have an output that ends within a piece
  // (Arrivals::output_bytes, if it is not 0): `count` is of equal pieces.
  Arrivals arrivals = {};
  // The larger operation that this one is a step of, in words; null: there is none. Ranks compare
  // it, so it says all that they must agree on. Without ": ", which ends an account's head.
  std::shared_ptr<const std::string> step_of = {};

  std::size_t bytes() const { return count * size_of(dtype); }  // of the larger side
  Sides sides(int rank, int ranks) const {
    if (is_uneven(collective)) return lengths.sides(collective, rank, size_of(dtype));
    Sides sides = sides_of(collective, bytes(), rank, ranks);
    if (arrivals.output_bytes != 0) {
      sides.output = arrivals.output_bytes;
      sides.input = std::min(sides.input, sides.output - std::min(sides.place, sides.output));
    }
    return sides;
  }
};

}  // namespace tutti
