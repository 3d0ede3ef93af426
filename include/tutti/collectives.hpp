// The operations.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "tutti/communicator.hpp"
#include "tutti/types.hpp"

namespace tutti {

struct CallOptions {
  // Forces an algorithm: "two_shot" or "all_reduce/two_shot". Empty: chosen by size and machine.
  // An unknown name is kInvalidArgument and lists the known ones.
  std::string_view algorithm;
  // For this call alone; 0: the communicator's. Host backend and eager CUDA calls.
  std::chrono::milliseconds timeout{0};
  // In place of the plan's; 0: as planned. Equal on every rank.
  int blocks = 0;
  int threads = 0;
  std::size_t chunk_bytes = 0;
};

struct AllReduce {
  const void* input = nullptr;  // `count` elements of this rank
  void* output = nullptr;       // `count` elements; equal to `input`, or not overlapping it
  std::size_t count = 0;        // equal on every rank; may be 0
  DataType dtype = DataType::kFloat32;
  ReduceOp op = {};
  Stream stream = nullptr;  // CUDA: the stream the operation is ordered in
  CallOptions options = {};
};

// Reduces `count` elements over all ranks into every rank's `output`. Collective.
// Buffers: any pointer (device memory on CUDA), aligned to the element size. Symmetric memory is
// zero-copy; every rank then uses the same registration and offset. Anything else is staged.
// Order: CUDA returns once the operation is enqueued; `output` is valid when `stream` reaches this
// point on this rank. The host backend returns when `output` is valid.
// Errors: kInvalidArgument (null, misaligned, partly overlapping, unknown algorithm: nothing was
// done), kUnsupported (no algorithm takes it; says why for each), and the communicator's failure if
// it is poisoned. What goes wrong on the device shows in Communicator::status().
Status all_reduce(Communicator& communicator, const AllReduce& call);

// Between the two, operations of this thread are only noted; group_end runs them together. Needed
// where one thread drives several ranks. Calls nest; only the outermost group_end runs anything.
void group_start();
Status group_end();  // the first failure; all operations were tried

// One line per algorithm: taken, or why not, with the predicted or measured time.
std::string explain_all_reduce(const Communicator& communicator, const Communicator::Query& query);

}  // namespace tutti
