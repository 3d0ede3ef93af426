// What a message says of one call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "algorithms/catalogue.hpp"
#include "operation/call.hpp"
#include "tutti/types.hpp"

namespace tutti {

struct Operation {
  std::uint64_t sequence = 0;      // counted per communicator, from 1
  const Algorithm* row = nullptr;  // null: a pipeline, which `step_of` describes; or none at all
  std::size_t count = 0;           // of uneven pieces: of the longest
  DataType dtype = DataType::kFloat32;
  OpKind op = OpKind::kSum;
  int root = 0;  // where the collective has one
  // Between pairs of ranks: how many messages; where there are several, `count` is of their bytes.
  int messages = 0;
  int peer = 0;
  bool sends = false;                    // the one message, to `peer`; else it is taken from there
  std::chrono::milliseconds timeout{0};  // of this call; 0: the communicator's
  std::shared_ptr<const std::string> step_of = {};  // as in Call
  bool captured = false;                            // in a graph

  bool is_known() const { return row != nullptr || step_of != nullptr; }
};

// "all_reduce/two_shot #42 (1048576 x bf16, sum)", "broadcast/two_shot #43 (7 x bf16, root 2)",
// "all_gather_v/push #43 (up to 7 x bf16 of a rank)", "send_recv/push #44 (7 x bf16, to rank 2)",
// "send_recv/push #45 (3 messages, 96 bytes)",
// "all_gather/push #46 (8192 x bf16) of all_gather_matmul (m 64, n 32, k 128, row, 1 B)",
// "pipeline #47 of all_gather_matmul (m 64, n 32, k 128, row, 1 B), bf16, pipelined_ring, get, ..."
std::string to_string(const Operation& operation);

// Of a call, before it has a number and an algorithm.
Operation describe(const Call& call, int ranks);

}  // namespace tutti
