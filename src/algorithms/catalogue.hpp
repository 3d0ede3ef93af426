// One row per algorithm. Dispatch, tuner, bench, conformance test and docs iterate over the rows;
// nothing else knows how many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/bodies.hpp"
#include "algorithms/collective.hpp"
#include "algorithms/network_program.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

struct RingSlots;  // device/kernel_args.hpp

// What a row cannot run without. A bit set.
enum Needs : unsigned {
  kNeedsNothing = 0,
  kNeedsPeerAccess = 1u << 0,
  kNeedsMulticast = 1u << 1,
  kNeedsNccl = 1u << 2,
  kNeedsNcclWindows = 1u << 3,      // over both buffers
  kNeedsNcclCopyEngines = 1u << 4,  // with windows of their own
  kNeedsNetwork = 1u << 5,          // messages between all ranks
  kNeedsEvenNodes = 1u << 6,        // nodes with equally many ranks, two or more
};
inline constexpr unsigned kNeedsAnyWindows = kNeedsNcclWindows | kNeedsNcclCopyEngines;

enum class Order : std::uint8_t {
  kRankOrder,       // the same bits as every other such row: ranks 0..n-1, rounded once
  kSameOnAllRanks,  // the ranks agree with each other, not with other rows
  kNone,
};
std::string_view to_string(Order order);

// What others who publish measurements call the way a row goes. `kOther`: none of these.
enum class Family : std::uint8_t { kOther, kOneShot, kTwoShot, kMulticast, kNccl };
std::string_view to_string(Family family);  // "one_shot"
Result<Family> parse_family(std::string_view name);

struct Geometry {
  int blocks = 1;
  int threads = 1;
  std::size_t chunk_bytes = 0;  // of rings, and of what goes through staging
};

// How large an operation is, as far as a row's grid and packets depend on it.
struct Extent {
  std::size_t bytes = 0;  // of the message
  int ranks = 1;
  std::size_t token_bytes = 0;  // of one of its tokens; 0: the collective knows none
};

// What the cost model knows of messages between nodes, for so many ranks on so many nodes.
struct Crossing {
  double hops = 0;    // messages on the critical path
  double wire = 0;    // bytes over the link of the node that sends or receives most, as a multiple
  double chunks = 0;  // how many are sent one after another before all links are busy
};

// What the cost model knows of n ranks:
// time = (steps + n * steps_per_rank) * hop + bytes * wire(n) / bandwidth
struct Cost {
  double steps = 0;                      // latency hops on the critical path
  double steps_per_rank = 0;             // where more ranks mean more hops
  double host_steps = 0;                 // instead of both on the host, where it is not 0
  double (*wire)(int ranks) = nullptr;   // bytes sent per rank, as a multiple of the message
  double (*local)(int ranks) = nullptr;  // bytes read and written in the rank's own memory, as well
  // On GPUs, how many times as long the bytes take where pieces are no whole vectors, as measured.
  // 0: not measured.
  double narrow = 0;
  // Of the network, instead of all others. Of NCCL, where there are nodes: the others are then of
  // the ranks on one node.
  Crossing (*between)(int ranks, int nodes) = nullptr;
};

// What an operation takes of a generation of packets.
struct PacketUse {
  std::size_t slot_bytes = 0;
  int slots = 0;  // at one rank
  std::size_t bytes() const { return slot_bytes * static_cast<std::size_t>(slots); }
};

// A second kernel behind a row's own, which has ended when it begins: for what needs no peers.
struct Follower {
  struct Grid {
    int kernel = 0;  // which of its kernels
    int blocks = 1;  // more than kMaxBlocks, maybe
    int threads = 1;
  };
  Grid (*grid)(const KernelArgs& work, std::size_t element_bytes) = nullptr;
  HostBody (*host)(DataType, OpKind) = nullptr;
  CudaKernel (*cuda)(DataType, int kernel) = nullptr;
  int kernels = 0;
};

// "one_shot" of "all_reduce/one_shot".
constexpr std::string_view name_of_id(std::string_view id) { return id.substr(id.find('/') + 1); }

struct Algorithm {
  std::string_view id;  // "all_reduce/one_shot"
  Collective collective = Collective::kAllReduce;
  Family family = Family::kOther;
  unsigned needs = kNeedsNothing;
  int max_ranks_host = 0;  // 0: not on this backend
  int max_ranks_cuda = 0;
  Order order = Order::kRankOrder;
  Cost cost;
  std::string_view text;           // one line for docs and `tutti explain`
  std::string_view executor = {};  // of a caller's own; empty: as `needs` says

  // Whether symmetric input or output is read or written by peers (else only this rank touches it).
  bool peers_read_input = true;
  bool peers_write_output = false;
  bool in_place_needs_staging = false;
  // Its kernel calls launch_wait(), so the one before it may still be draining.
  bool starts_early = false;
  // Rows whose chunks go around a ring, through slots in staging or by messages: in how many
  // directions.
  int ring_directions = 0;
  // Rows that push shares into staging, whatever the buffers are.
  bool pushes_through_staging = false;
  // Rows between pairs of ranks: each block is a lane of them.
  bool sends_messages = false;
  // Rows for a matrix that is split along its last dimension, and for nothing else.
  bool splits_rows = false;
  // Rows whose ranks tell each other counts, where not all know them: by kCountBlocks blocks at
  // most.
  bool publishes_counts = false;
  // Rows for counts that the host knows, and not for those that lie on the device.
  bool counts_on_host = false;
  // Not to be taken because the cost model says so. On the host it may be, with so many ranks at
  // most: for these, what the model says was compared with measurements.
  bool only_where_measured = false;
  int compared_on_host = 0;
  // Rows made for few multiprocessors: which one they stand in for where a budget leaves that few
  // of its blocks: so many, times the other ranks, of each of which its threads have a part under
  // way.
  std::string_view stands_in_for = {};
  int stands_in_up_to = 0;
  // Rows whose data travels in packets: what a message takes that is so large on the wire.
  PacketUse (*packets)(const Extent& on_wire) = nullptr;

  int least_compute = 0;         // of the GPUs, as Topology::compute: 90 for sm_90
  int min_threads = 1;           // per block (CUDA)
  std::size_t shared_bytes = 0;  // likewise, besides what the kernel declares
  // Rows whose kernel is launched in clusters where GPUs have them: of how many blocks. Null: none.
  int (*cluster)(const KernelArgs& work) = nullptr;

  bool (*takes)(DataType, OpKind) = nullptr;
  Geometry (*geometry)(const Extent& extent) = nullptr;  // where no table says better
  HostBody (*host)(DataType, OpKind) = nullptr;
  CudaKernel (*cuda)(DataType, OpKind, int ranks) = nullptr;  // null in builds without CUDA
  EngineProgram program = nullptr;    // of copy engines: `cuda` is the kernel between copies
  NetworkSchedule network = nullptr;  // of messages: what each rank sends and receives
  Follower then;                      // if it has any kernels

  std::string_view name() const { return name_of_id(id); }
};

// What runs an algorithm: kernels and bodies on peers' memory, NCCL, messages over the network, or
// one that a caller has brought.
inline constexpr std::string_view kPeerExecutor = "peer", kNcclExecutor = "nccl";
inline constexpr std::string_view kNetworkExecutor = "network";
std::string_view executor_of(const Algorithm& row);

// Whether its chunks go around a ring through slots in staging.
bool has_ring_slots(const Algorithm& row);

// Whether its kernel does nothing but let ranks meet: what bytes there are, copy engines move.
bool only_meets(const Algorithm& row);
// Whether copy engines move all of its bytes, and never into other ranks' memory.
bool only_fetches(const Algorithm& row);

std::span<const Algorithm> catalogue();
std::span<const Algorithm> library_algorithms();  // generated from algorithms.cmake
std::span<const Algorithm> rows_of(Collective collective);

// Adds a caller's own, for an executor of its own, behind the others of their collectives. Before
// anybody asks for the catalogue.
void add_to_catalogue(std::span<const Algorithm> rows);

// Bytes on the wire for each one of the message: 2 where integers travel beside marks (PacketCode).
int packet_expansion(const Algorithm& row, DataType dtype);

// What `row` takes of a generation of packets for a message; nothing where it uses none.
PacketUse packet_use(const Algorithm& row, Extent extent, DataType dtype);

// A chunk this long holds any message.
inline constexpr std::size_t kMostChunkBytes = std::size_t{1} << 40;

// How `row` divides staging among so many blocks, into chunks of at most `chunk_bytes` (0: 64 KiB).
// Where chunks go from output to output there is no end of staging: kNoSlots.
inline constexpr std::size_t kNoSlots = std::size_t{1} << 62;
RingSlots ring_slots(const Algorithm& row, std::size_t staging_bytes, int blocks,
                     std::size_t chunk_bytes);

// How many blocks find slots of a useful size in so much staging, and words for counts where ranks
// tell each other some.
int most_blocks(const Algorithm& row, std::size_t staging_bytes, bool tells_counts);

// `name` is an id or the part after the slash. kInvalidArgument lists the known ones.
Result<const Algorithm*> find_algorithm(Collective collective, std::string_view name,
                                        std::span<const Algorithm> rows = catalogue());

}  // namespace tutti
