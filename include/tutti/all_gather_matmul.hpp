/// \file
/// A matrix product whose A is gathered from all ranks first, as layers with sequence and tensor
/// parallelism need it.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tutti/communicator.hpp"
#include "tutti/export.hpp"
#include "tutti/matmul.hpp"
#include "tutti/types.hpp"

namespace tutti {

/// What "pipelined_shift", "pipelined_ring" and "pipelined_tiles" do differently; the other
/// algorithms ignore it, and so does a call that names no algorithm, if a tuning table names a
/// pipeline with options of its own. Equal on every rank. kInvalidArgument: a value that is not
/// allowed, whatever the algorithm.
struct AllGatherMatmulPipeline {
  /// Which of two ranks moves the data: "get", the one that receives; "put", the one that sends.
  std::string_view protocol = "get";
  /// What moves the data on GPUs: "copy_engine", or "kernel", a kernel of at most 16 blocks. A
  /// kernel needs free SMs. If a matmul that runs at the same time has all of them, the kernel
  /// begins when blocks of that matmul end. On the host the calling thread copies in both cases.
  std::string_view mover = "copy_engine";
  /// Steps are divided among so many streams of the communicator: 1 to 16. The host has one.
  int streams = 4;
  int tiles = 8;  ///< Of each shard, for pipelined_tiles: 1 to 64.
  /// Streams begin their first transfers one after the other, so that the first rows arrive before
  /// the second. The streams of a ring always do.
  bool inter_stream_order = false;
};

/// What "fused" does differently; all other algorithms ignore it, and so does a call that names no
/// algorithm, if a tuning table names a transport. Each rank's own. kInvalidArgument: a value that
/// is not allowed, whatever the algorithm.
struct AllGatherMatmulFused {
  /// What brings the other ranks' parts of A: "copy_engine", which leave all SMs to the matmul;
  /// "pull", blocks of the matmul itself, which then multiply nothing; "auto": what is predicted to
  /// be faster.
  std::string_view transport = "auto";
};

/// Arguments of all_gather_matmul(). `m`, `n` (of each product), `k`, `dtype`, `b_layout`, the
/// number of products, `algorithm` and `pipeline` are equal on every rank. All else is each rank's
/// own, but for where a symmetric `a` lies ("fused" on GPUs, pipelines).
struct AllGatherMatmul {
  /// [rows, k], row-major: this rank's shard of A. With s = ceil(m / ranks), rank r has the rows
  /// [r * s, min(m, (r + 1) * s)) of A, so the last ranks may have fewer rows, or none. Without
  /// rows, or with k = 0, it is ignored, but by "fused".
  const void* a = nullptr;
  const void* b = nullptr;  ///< MatmulProduct::b of the first product, as `c`, `bias` and `n`
  void* c = nullptr;        ///< [m, n], row-major
  const void* bias = nullptr;
  std::size_t m = 0;  ///< rows of the gathered A, and of C
  std::size_t n = 0, k = 0;
  /// Elements between the beginnings of the shard's rows: k, or 0, which means the same. The gather
  /// moves rows that follow each other, so the shard cannot have gaps.
  std::size_t lda = 0;
  std::size_t ldb = 0, ldc = 0;  ///< see MatmulProduct
  /// The type of A, B, C and the bias: bf16, fp16 or fp32. See Matmul::dtype.
  DataType dtype = DataType::kBfloat16;
  MatrixLayout b_layout = MatrixLayout::kRowMajor;
  /// Further products of the same A.
  std::span<const MatmulProduct> more = {};
  /// [m, k], without gaps: receives the gathered A. Null: the gathered A is no output, and lies in
  /// `workspace`. In place: `a` is where this rank's rows lie in it.
  void* gathered = nullptr;
  /// Memory that the call overwrites: at least all_gather_matmul_workspace() bytes.
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  Stream stream = nullptr;
  /// Forces "unfused", "pipelined_shift", "pipelined_ring", "pipelined_tiles" or "fused". Empty:
  /// the fastest by measurement, see all_gather_matmul().
  std::string_view algorithm = {};
  AllGatherMatmulPipeline pipeline = {};
  AllGatherMatmulFused fused = {};
  /// Timeout of this call; see CallOptions::timeout.
  std::chrono::milliseconds timeout{0};
};

/// C = A x B + bias for each product, where A is the concatenation of all ranks' shards.
///
/// **Algorithms.** "unfused": an all_gather() (if ranks does not divide m, an all_gather_v()) into
/// `gathered` or `workspace`, then a matmul(). With one rank the product reads `a`, and A is copied
/// only if `gathered` is given.
///
/// "fused" on Hopper GPUs whose ranks reach each other's memory: one kernel multiplies while A is
/// gathered. It begins with this rank's rows, which it reads from `a`, and waits for each other
/// part of A until it has come. C has the same bits as that of own_matmul. Copy engines gather A in
/// a stream of the communicator, or 16 blocks of the kernel pull it (AllGatherMatmulFused). Pulling
/// can be faster for products that take about as long as the gather, or less. It needs `a` of all
/// ranks to be reached without staging. "fused" needs `a` in symmetric memory, at the same
/// place on every rank, also on ranks without rows; bf16 or fp16; and addresses and leading
/// dimensions that are multiples of 16 bytes. Otherwise: kUnsupported. It is fastest without
/// `gathered`, or in place. While the kernel waits it occupies every SM. So a rank must not wait
/// elsewhere for another kernel of this one, for example in a collective of another communicator.
/// Its waits have the timeout of the call; without one, that of the communicator when the call is
/// made, or captured. The kernel keeps it: Communicator::set_timeout() changes only the gather's
/// waits afterwards. In an eager call the kernel waits one minute longer than the gather.
///
/// "fused" on the host backend: each rank copies its rows to all others, chunk by chunk, and
/// multiplies chunks in the kernel's order as they come. It takes any `a`, type and m, at most
/// 2^30.
///
/// "pipelined_shift", "pipelined_ring" and "pipelined_tiles": each rank multiplies the rows that
/// have come, before the next ones come. shift takes each shard from its owner, its own first. ring
/// passes shards on from neighbour to neighbour. tiles takes the same tile of every shard, and
/// multiplies it at once.
///
/// These, and "fused" on the host, run for at most 16 ranks on the host, or 8 GPUs, in symmetric
/// memory. A is gathered in symmetric memory of the communicator, m * k elements, and then copied
/// to `gathered`. `workspace` is needed as for the other algorithms, but stays as it is. The first
/// call with other sizes or options is collective: ranks compare them, and allocate that memory.
/// The communicator keeps it for the 16 such calls that were made last; so later calls exchange and
/// allocate nothing. Each wait for a rank has the call's timeout.
///
/// A pipeline with "get" reads the other ranks' `a` in place (zero-copy), if in the first call `a`
/// is in symmetric memory, at the same place on every rank, and every rank has rows. Otherwise each
/// call first copies `a`. Later calls may pass an `a` at another place, if all ranks do so alike,
/// or an `a` that is not symmetric on any rank, which is copied. The ranks compare each new place
/// once, and keep 64 of them. Then an `a` at a new place is copied, unless the last 1024 calls did
/// not read at one of the 64: that one is forgotten. Memory that is freed and allocated again is a
/// new place.
///
/// On GPUs copy engines or kernels move the rows (`mover`). The call enqueues all steps, in
/// `stream` and in streams of the communicator, and returns. A stream waits for a word that another
/// rank's stream writes (a stream memory operation). The host ends that wait at the deadline, or
/// when the group fails. own_matmul multiplies, if it can multiply all rows; then C has the same
/// bits as own_matmul's product of the gathered A. Otherwise each step runs what matmul() selects.
/// Pipelines cannot be captured.
///
/// **Without a name**, TUTTI_TUNE decides (`all_gather_matmul:@unfused` forbids all others), then
/// the tuning tables, for this kind and number of GPUs, size of elements, and m, n (of all products
/// together) and k within a factor of sqrt(2) of those measured. If no entry holds, it is unfused.
/// Only calls with measurements can therefore run "fused", which occupies every SM while it waits.
/// `tutti tune all_gather_matmul` writes the table. If the algorithm of a table cannot run
/// the call, unfused runs instead: because of m, the type, a capture, an `a` that is not symmetric,
/// or no memory for a pipeline. All but the last must be alike on every rank, or the ranks wait
/// until the timeout. Ranks tell each other in the first call of a pipeline that one has no memory.
/// If addresses or leading dimensions of only one rank do not allow "fused", that rank takes part
/// in the gather of the others and multiplies afterwards. plan() says what runs, and why.
///
/// **Order.** On CUDA all steps run after what is in `stream` already, and C is valid when the
/// stream has completed them. On the host backend C is valid when the call returns.
///
/// **Buffers.** All are aligned to the element size. GPUs multiply faster if addresses and leading
/// dimensions are multiples of 16 bytes. A shard and a `gathered` (or `workspace`) in symmetric
/// memory are zero-copy, as in all_gather(), if those of every rank are at the same offset of the
/// same registration. What the call writes (C, and `gathered` or `workspace`) must overlap neither
/// what it reads nor each other; `gathered` may hold `a`, in place. Matrices that lie side by side
/// in the rows of a wider one do not overlap; they need the same leading dimension.
///
/// **Without elements.** With m = 0 there is nothing to do, and with k = 0, C becomes the bias, or
/// 0. Then ranks do not communicate, so different arguments are not noticed. If n is 0 in every
/// product, A is still gathered.
///
/// **Captures.** "unfused" can be captured under the conditions of all_gather() and matmul().
/// plan(), or a call before the capture, prepares the product. Not between group_start() and
/// group_end(). Captured, "fused" needs such a plan() or call on the same communicator first, and a
/// driver that captures stream memory operations; otherwise: kUnsupported. In a replay the ranks
/// meet by kernels before the product begins, so its first tiles begin later than those of an eager
/// call. At most 1024 such calls can be in living graphs of a communicator; the next one is
/// kResourceExhausted, or runs unfused if a table has chosen "fused".
///
/// **Errors.** kInvalidArgument: the errors of matmul() and all_gather(), a shard with gaps, an
/// overlap, an unknown algorithm, a bad `pipeline` or `fused`, or a workspace that is missing or
/// too small; the text says how many bytes are needed. kUnsupported: see matmul(), or an algorithm
/// that cannot run here: pipelined ones in a capture, for one. In these cases nothing was enqueued,
/// and the communicator stays usable. The other ranks are not told, and wait for this rank until
/// their timeout; but what one rank refuses in the first call of a pipeline on GPUs, all ranks
/// refuse, with its name. kMismatch in Communicator::status(): ranks differ in m, n, k, dtype,
/// layout, the number of products, a pipeline, for which "fused" counts on the host, or where one
/// reads `a` in place; the text names the operations of both. If NCCL gathers, nothing is compared:
/// another m, k or dtype ends in kTimeout or a wrong C, and other differences are not noticed. If
/// one rank runs a pipeline and another one does not, the ranks wait until the timeout, which fails
/// the communicator. kResourceExhausted, on every rank: a rank has no memory for a pipeline; the
/// communicator stays usable. If that happens after the first call of the pipeline, for example for
/// a product in another stream, the communicator fails at once, and the text names the rank.
TUTTI_API Status all_gather_matmul(Communicator& communicator, const AllGatherMatmul& call);

/// The smallest `workspace_bytes` of this call: m * k elements, or 0 if `gathered` is given, if the
/// communicator has one rank, and if m or k is 0. All other pointers are ignored. The errors are
/// those of all_gather_matmul() for sizes and types.
TUTTI_API Result<std::size_t> all_gather_matmul_workspace(const Communicator& communicator,
                                                          const AllGatherMatmul& call);

/// What a call runs on this rank.
struct AllGatherMatmulPlan {
  /// "unfused", "pipelined_ring", "fused"; empty: nothing to do. With one rank, and without
  /// columns, all run as "unfused" does.
  std::string algorithm;
  /// What it consists of: "all_gather/push, own_matmul 128x256x64, cluster 2x1, 4 stages",
  /// "pipelined_tiles, get, 8 tiles, 4 streams, host_matmul"
  std::string config;
  std::string why;  ///< what decided: a measurement, a setting, or what prevents an algorithm
};
/// The plan of a call, without running it; not collective. It also prepares the product, which may
/// then run in a capture. Errors: those of all_gather_matmul().
TUTTI_API Result<AllGatherMatmulPlan> plan(const Communicator& communicator,
                                           const AllGatherMatmul& call);

/// A text that explains the choice: the algorithms, with times where a table has them, then how A
/// is gathered and multiplied.
TUTTI_API Result<std::string> explain(const Communicator& communicator,
                                      const AllGatherMatmul& call);

}  // namespace tutti
