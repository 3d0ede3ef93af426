// A pipeline as a value: what every rank enqueues, before it runs. One program describes all ranks;
// lower() makes the list of one rank of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pipelines/description.hpp"
#include "pipelines/index.hpp"

namespace tutti::pipelines {

// How the caller uses a buffer. In the order of the caller's stream, the caller writes
// inputs before each call, and reads outputs after it. These are the caller's own, and each call
// may bring others. Workspaces are allocated once, by whoever runs the program.
enum class Role : std::uint8_t { kInput, kOutput, kWorkspace };

// Which rows of the gathered matrix a buffer has.
enum class Part : std::uint8_t {
  kShard,  // those of its rank
  kAll,
  kNone,  // B and bias: never sliced
};

struct Buffer {
  std::string name;
  std::size_t rows = 0, columns = 0;
  Role role = Role::kWorkspace;
  Part part = Part::kNone;
  bool is_symmetric = false;  // peers may access it
  bool is_callers() const { return role != Role::kWorkspace; }
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

using BufferId = int;  // an index of Program::buffers
inline constexpr BufferId kNoBuffer = -1;

// The rows of one shard, or of all; of these one tile, or all.
struct Slice {
  BufferId buffer = kNoBuffer;
  std::optional<Index> shard = {};
  std::optional<Index> tile = {};
  friend bool operator==(const Slice&, const Slice&) = default;
};

// Streams of a program have the numbers 0, 1, ...
inline constexpr int kCallerStream = -1;

// All nodes that follow are enqueued in this stream.
struct SetCurrentStream {
  Index stream;
  friend bool operator==(const SetCurrentStream&, const SetCurrentStream&) = default;
};

// Stream `waiting` waits for everything that has been enqueued in stream `on` so far.
struct Synchronize {
  Index waiting, on;
  friend bool operator==(const Synchronize&, const Synchronize&) = default;
};

// Symmetric memory for a workspace.
struct Allocate {
  BufferId buffer = kNoBuffer;
  friend bool operator==(const Allocate&, const Allocate&) = default;
};

// All ranks learn where all others have these symmetric buffers. Of the caller's, all ranks give
// each call the same place in memory that is known to all.
struct ShareHandles {
  std::vector<BufferId> buffers;
  friend bool operator==(const ShareHandles&, const ShareHandles&) = default;
};

// Within a rank.
struct Copy {
  Slice from, to;
  friend bool operator==(const Copy&, const Copy&) = default;
};

// One end of a transfer between two ranks. The mover is the receiver of a get, the sender of a put.
// Two words in the ranks' memory order a transfer, each written with the epoch of the call:
//
//   ready: the other end allows the transfer: the data are complete (get), the memory is free (put)
//   done:  the mover has moved the data
//
//          the mover                                    the other end
//   Post   waits for `ready`, moves the data,           writes `ready` in the mover's memory
//          writes `done` in the other end's memory
//   Wait   nothing                                      waits for `done`
struct Transfer {
  Index peer;
  Slice local;                       // in this rank's memory
  std::optional<Slice> remote = {};  // in the peer's memory; only a mover's post needs it
  Index ready, done;                 // which words of those between the two ranks
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct SendPost {
  Transfer transfer;
  friend bool operator==(const SendPost&, const SendPost&) = default;
};
struct RecvPost {
  Transfer transfer;
  friend bool operator==(const RecvPost&, const RecvPost&) = default;
};
struct SendWait {
  Transfer transfer;
  friend bool operator==(const SendWait&, const SendWait&) = default;
};
struct RecvWait {
  Transfer transfer;
  friend bool operator==(const RecvWait&, const RecvWait&) = default;
};

// C = a x B + bias for all products; the rows of C are those of `a`.
struct Matmul {
  Slice a;
  friend bool operator==(const Matmul&, const Matmul&) = default;
};

struct Node;
using Nodes = std::vector<Node>;

// For first, first + 1, ..., last.
struct For {
  Variable variable;
  int first = 0, last = 0;
  Nodes body;
};

// If index < less_than.
struct If {
  Index index;
  int less_than = 0;
  Nodes then, otherwise;
};

struct Node {
  std::variant<SetCurrentStream, Synchronize, Allocate, ShareHandles, Copy, SendPost, RecvPost,
               SendWait, RecvWait, Matmul, For, If>
      value;
};
bool operator==(const For& a, const For& b);
bool operator==(const If& a, const If& b);
bool operator==(const Node& a, const Node& b);

struct Product {
  BufferId b = kNoBuffer, bias = kNoBuffer, c = kNoBuffer;  // bias: maybe kNoBuffer
  friend bool operator==(const Product&, const Product&) = default;
};

struct Program {
  Description description;
  int streams = 0;  // that are used; description.streams at most
  int words = 0;    // of each kind, for each pair of ranks
  std::vector<Buffer> buffers;
  std::vector<Product> products;
  BufferId gathered = kNoBuffer;  // the gathered A, if it is an output
  Nodes setup;                    // once
  Nodes call;                     // each call
  friend bool operator==(const Program&, const Program&) = default;
};

// The symmetric memory of a rank for all workspaces, and where each begins in it; of others 0.
inline constexpr std::size_t kWorkspaceAlignment = 256;
std::size_t workspace_bytes(const Program& program);
std::vector<std::size_t> workspace_offsets(const Program& program);

// The rows of a slice, numbered as in its buffer. Empty ranges are left out. A buffer with
// Part::kShard is that of the rank which `slice.shard` names.
std::vector<Rows> rows_of(const Program& program, const Slice& slice, const Bindings& values);

}  // namespace tutti::pipelines
