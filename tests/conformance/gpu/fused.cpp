// all_gather_matmul on GPUs: the fused form, whose matmul runs beside the all-gather that it waits
// for, and pipelines. What is selected, enqueued and awaited is in unit_groups (FusedGather,
// ArrivalLane, PipelinedGpus, StreamWaits), and the kernel alone in unit_parts (GatedOnGpu).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "conformance/gpu/occupy.hpp"
#include "drivers/cuda.hpp"
#include "support/check.hpp"
#include "support/cuda_graph.hpp"
#include "tutti/all_gather_matmul.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{10000};
constexpr int kCalls = 4;
constexpr std::size_t kElement = 2;

struct LayerSize {
  std::size_t rows, n, k;   // rows of a shard
  std::size_t missing = 0;  // of all shards, at the end of A: less than there are ranks
};

std::vector<std::byte> random_bf16(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count * kElement);
  for (std::size_t i = 0; i < count; ++i) {
    const float value = std::uniform_real_distribution<float>(-1, 1)(random);
    std::memcpy(&bytes[i * kElement], reinterpret_cast<const std::byte*>(&value) + 2, kElement);
  }
  return bytes;
}

// A rank's matrices: A and C of several calls, one B, and what A is gathered in. All calls share
// the latter.
class Layer {
 public:
  using SharedStream = std::shared_ptr<const OwnedStream>;

  Layer(Rank& rank, const LayerSize& size)
      : Layer(rank, size, std::make_shared<const OwnedStream>(rank.device)) {}
  Layer(Rank& rank, const LayerSize& size, SharedStream stream)
      : rank_(rank),
        size_(size),
        a_(take(rank.group.allocate(kCalls * shard_bytes()))),
        b_(rank.device, size.n * size.k * kElement),
        c_(rank.device, kCalls * c_bytes()),
        gathered_(rank.device, ranks() * shard_bytes()),
        stream_(std::move(stream)) {
    const auto b = random_bf16(size.n * size.k, 1);
    rank.device.write(b_.get(), b.data(), b.size());
    for (int call = 0; call < kCalls; ++call) {
      const auto shard = random_bf16(size.rows * size.k, seed(rank.number(), call));
      rank.device.write(a(call), shard.data(), shard.size());
    }
  }

  std::size_t ranks() const { return static_cast<std::size_t>(rank_.size()); }
  std::size_t m() const { return ranks() * size_.rows - std::min(size_.missing, ranks() - 1); }
  std::size_t shard_bytes() const { return size_.rows * size_.k * kElement; }
  std::size_t c_bytes() const { return m() * size_.n * kElement; }
  std::byte* a(int call) const {
    return static_cast<std::byte*>(a_.data()) + static_cast<std::size_t>(call) * shard_bytes();
  }
  std::byte* c(int call) const { return c_.get() + static_cast<std::size_t>(call) * c_bytes(); }
  Stream stream() const { return stream_->get(); }

  AllGatherMatmul call(int number, std::string_view algorithm) const {
    return {.a = a(number),
            .b = b_.get(),
            .c = c(number),
            .m = m(),
            .n = size_.n,
            .k = size_.k,
            .b_layout = MatrixLayout::kColumnMajor,
            .workspace = gathered_.get(),
            .workspace_bytes = ranks() * shard_bytes(),
            .stream = stream(),
            .algorithm = algorithm};
  }
  // What it gathers in holds NaN from here on.
  void poison() const { poison(gathered_.get(), ranks() * shard_bytes()); }
  Status start(int number, std::string_view transport = "copy_engine") const {
    poison();
    return all_gather_matmul(rank_.group, fused(number, transport));
  }
  AllGatherMatmul fused(int number, std::string_view transport) const {
    AllGatherMatmul made = call(number, "fused");
    made.fused.transport = transport;
    return made;
  }
  // Likewise C.
  Status start(int number, std::string_view algorithm,
               const AllGatherMatmulPipeline& pipeline) const {
    poison(c(number), c_bytes());
    AllGatherMatmul made = call(number, algorithm);
    made.pipeline = pipeline;
    return all_gather_matmul(rank_.group, made);
  }
  Status finish() const {
    stream_->wait();
    return rank_.group.status();
  }
  // C has the bits of own_matmul's product of all shards.
  void check(int number) {
    std::vector<std::byte> seen(c_bytes());
    rank_.device.read(seen.data(), c(number), seen.size());
    require(seen == expected(number), fmt::format("C of call {}", number));
  }
  // That product. Overwrites C and what A is gathered in.
  std::vector<std::byte> multiply(int number) {
    std::vector<std::byte> all;
    for (int r = 0; r < rank_.size(); ++r) {
      const auto shard = random_bf16(size_.rows * size_.k, seed(r, number));
      all.insert(all.end(), shard.begin(), shard.end());
    }
    std::vector<std::byte> product(c_bytes());
    rank_.device.write(gathered_.get(), all.data(), all.size());
    require_ok(matmul(stream(), {.a = gathered_.get(),
                                 .b = b_.get(),
                                 .c = c(number),
                                 .m = m(),
                                 .n = size_.n,
                                 .k = size_.k,
                                 .b_layout = MatrixLayout::kColumnMajor,
                                 .algorithm = "own_matmul"}));
    require_ok(finish());
    rank_.device.read(product.data(), c(number), product.size());
    return product;
  }

 private:
  void poison(std::byte* memory, std::size_t bytes) const {
    require_ok(rank_.device.cuda()->set_async(memory, 0xff, bytes, stream()));
  }
  const std::vector<std::byte>& expected(int number) {
    std::vector<std::byte>& made = expected_[static_cast<std::size_t>(number)];
    if (made.empty()) made = multiply(number);
    return made;
  }
  static unsigned seed(int rank, int call) {
    return 100u + static_cast<unsigned>(rank * kCalls + call);
  }

  Rank& rank_;
  LayerSize size_;
  SymmetricMemory a_;
  OwnedMemory b_, c_, gathered_;
  SharedStream stream_;
  std::array<std::vector<std::byte>, kCalls> expected_;
};

// With own_matmul, whose bits are expected.
bool can_run(const AllGatherMatmul& call, Rank& rank) {
  const auto planned = plan(rank.group, call);
  if (planned.is_ok() && planned->config.find("own_matmul") != std::string::npos) return true;
  if (planned.is_ok()) {
    if (rank.number() == 0) fmt::print("   skipped: {}\n", planned->config);
    return false;
  }
  require(planned.status().code() == StatusCode::kUnsupported, planned.status().to_string());
  if (rank.number() == 0) fmt::print("   skipped: {}\n", planned.status().message());
  return false;
}

bool can_run(const Layer& layer, Rank& rank, std::string_view algorithm) {
  return can_run(layer.call(0, algorithm), rank);
}

bool can_fuse(const Layer& layer, Rank& rank, std::string_view transport = "copy_engine") {
  return can_run(layer.fused(0, transport), rank);
}

// Fresh inputs, and no synchronization between the calls; one rank's input comes late, another
// rank's each time. Shards are whole tiles, less than one, and no multiple; the last ones are
// shorter, or empty. One stream for all: ranks that are threads share 32 hardware queues.
void fresh_layers_by(Rank& rank, std::string_view transport) {
  const auto stream = std::make_shared<const OwnedStream>(rank.device);
  for (const LayerSize& size : {LayerSize{1024, 1792, 4096},
                                {64, 256, 512},
                                {200, 520, 1000},
                                {200, 520, 1000, 1},
                                {1, 256, 512, 7}}) {
    Layer layer(rank, size, stream);
    if (!can_fuse(layer, rank, transport)) return;
    rank.meet();
    for (int call = 0; call < kCalls; ++call) {
      if (call % rank.size() == rank.number()) {
        require(occupy_stream(layer.stream(), milliseconds(5)), "the other kernel runs");
      }
      require_ok(layer.start(call, transport));
    }
    require_ok(layer.finish());
    rank.meet();
    for (int call = 0; call < kCalls; ++call) layer.check(call);
  }
}

void fresh_layers(Rank& rank) { fresh_layers_by(rank, "copy_engine"); }

// Whose shards are overwritten as soon as a call has ended.
class OverwrittenLayer {
 public:
  OverwrittenLayer(Rank& rank, const LayerSize& size) : rank_(rank), layer_(rank, size) {}

  // All calls read the same place: each one's shard is copied there in the caller's stream, without
  // waiting for anybody. So a rank that goes on too early overwrites what others still pull.
  bool run(std::string_view transport) {
    if (!can_fuse(layer_, rank_, transport)) return false;
    const std::size_t bytes = layer_.shard_bytes();
    const OwnedMemory kept(rank_.device, kCalls * bytes);
    CudaDriver& cuda = *rank_.device.cuda();
    require_ok(cuda.copy_async(kept.get(), layer_.a(0), kCalls * bytes, layer_.stream()));
    require_ok(layer_.finish());
    rank_.meet();
    for (int call = 0; call < kCalls; ++call) {
      const std::size_t at = static_cast<std::size_t>(call) * bytes;
      if (call % rank_.size() == rank_.number()) {
        require(occupy_stream(layer_.stream(), milliseconds(5)), "the other kernel runs");
      }
      require_ok(cuda.copy_async(layer_.a(0), kept.get() + at, bytes, layer_.stream()));
      AllGatherMatmul made = layer_.fused(0, transport);
      made.c = layer_.c(call);
      layer_.poison();
      require_ok(all_gather_matmul(rank_.group, made));
    }
    require_ok(layer_.finish());
    rank_.meet();
    for (int call = 0; call < kCalls; ++call) layer_.check(call);
    return true;
  }

 private:
  Rank& rank_;
  Layer layer_;
};

void pulled_layers(Rank& rank) {
  fresh_layers_by(rank, "pull");
  (void)OverwrittenLayer(rank, {1024, 1792, 4096}).run("pull");
}

// One graph, of two calls, whose inputs change from replay to replay. The host waits after every
// 20th replay.
class ReplayedLayer {
 public:
  ReplayedLayer(Rank& rank, std::string_view transport)
      : rank_(rank),
        transport_(transport),
        layer_(rank, kSize),
        log_(rank.device, kAtOnce * layer_.c_bytes()) {}

  bool can_run() { return can_fuse(layer_, rank_, transport_); }
  void run() {
    const OwnedMemory kept(rank_.device, kCalls * layer_.shard_bytes());  // replays overwrite A
    for (int input = 0; input < kCalls; ++input) {
      expected_.push_back(layer_.multiply(input));
      require_ok(cuda().copy_async(kept.get() + at(input) * layer_.shard_bytes(), layer_.a(input),
                                   layer_.shard_bytes(), layer_.stream()));
    }
    require_ok(layer_.finish());
    rank_.meet();
    const CapturedGraph graph(cuda(), layer_.stream(), [&] {
      for (const int call : {0, 1}) {
        layer_.poison();
        require_ok(all_gather_matmul(rank_.group, layer_.fused(call, transport_)));
      }
    });
    graph.instantiate(rank_);
    rank_.meet();
    // Processes that share a GPU take turns, a few milliseconds each.
    const bool takes_turns = rank_.shares_gpu() && rank_.spec.kind == RankKind::kProcesses;
    const int replays = takes_turns ? kReplays / 25 : kReplays;
    for (int first = 0; first < replays; first += kAtOnce) {
      for (int replay = first; replay < first + kAtOnce; ++replay) enqueue(graph, kept, replay);
      require_ok(layer_.finish());
      for (int replay = first; replay < first + kAtOnce; ++replay) check(replay);
    }
    rank_.meet_before_freeing();
  }

 private:
  static constexpr LayerSize kSize{200, 520, 1000};
  static constexpr int kReplays = 1000, kAtOnce = 20;

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  CudaDriver& cuda() const { return *rank_.device.cuda(); }
  static int input_of(int replay, int call) { return (replay + call * (1 + replay / 7)) % kCalls; }
  // Where a replay's C is kept, of one of its calls.
  std::byte* logged(int replay) const {
    return log_.get() + at(replay % kAtOnce) * layer_.c_bytes();
  }

  void enqueue(const CapturedGraph& graph, const OwnedMemory& kept, int replay) const {
    const std::size_t bytes = layer_.shard_bytes();
    for (const int call : {0, 1}) {
      require_ok(cuda().copy_async(layer_.a(call), kept.get() + at(input_of(replay, call)) * bytes,
                                   bytes, layer_.stream()));
    }
    graph.launch(layer_.stream());
    require_ok(
        cuda().copy_async(logged(replay), layer_.c(replay % 2), layer_.c_bytes(), layer_.stream()));
  }
  void check(int replay) {
    std::vector<std::byte> seen(layer_.c_bytes());
    rank_.device.read(seen.data(), logged(replay), seen.size());
    require(seen == expected_[at(input_of(replay, replay % 2))],
            fmt::format("C of replay {}", replay));
  }

  Rank& rank_;
  std::string_view transport_;
  Layer layer_;
  OwnedMemory log_;
  std::vector<std::vector<std::byte>> expected_;  // C by input
};

void replayed_layers(Rank& rank) {
  ReplayedLayer layer(rank, "copy_engine");
  if (layer.can_run()) layer.run();
}
void replayed_pulled_layers(Rank& rank) {
  ReplayedLayer layer(rank, "pull");
  if (layer.can_run()) layer.run();
}

// The gathered A as an output, in place and not.
void gathered_layers_by(Rank& rank, std::string_view transport) {
  Layer layer(rank, {256, 512, 1024});
  if (!can_fuse(layer, rank, transport)) return;
  const std::size_t shard = layer.shard_bytes(), bytes = layer.ranks() * shard;
  const SymmetricMemory gathered = take(rank.group.allocate(bytes));
  auto* const output = static_cast<std::byte*>(gathered.data());
  std::byte* const own = output + static_cast<std::size_t>(rank.number()) * shard;
  for (const bool in_place : {false, true}) {
    CudaDriver& cuda = *rank.device.cuda();
    require_ok(cuda.set_async(output, 0xff, bytes, layer.stream()));
    AllGatherMatmul call = layer.fused(1, transport);
    call.gathered = output;
    if (in_place) {
      require_ok(cuda.copy_async(own, call.a, shard, layer.stream()));
      call.a = own;
    }
    require_ok(all_gather_matmul(rank.group, call));
    require_ok(layer.finish());
    std::vector<std::byte> seen(bytes), whole(bytes);
    rank.device.read(seen.data(), output, bytes);
    require_ok(all_gather(rank.group, {.input = layer.a(1),
                                       .output = output,
                                       .count = shard,
                                       .dtype = DataType::kUint8,
                                       .stream = layer.stream()}));
    require_ok(layer.finish());
    rank.device.read(whole.data(), output, bytes);
    require(seen == whole, "the gathered A");
    layer.check(1);
    rank.meet();
  }
}

void gathered_layers(Rank& rank) {
  gathered_layers_by(rank, "copy_engine");
  gathered_layers_by(rank, "pull");
}

// The kernel ends, and the failure says for whom the all-gather waited.
void missing_in_layer_by(Rank& rank, std::string_view transport) {
  Layer layer(rank, {256, 512, 1024});
  if (!can_fuse(layer, rank, transport)) return;
  require_ok(layer.start(0, transport));
  require_ok(layer.finish());
  rank.meet();
  const int missing = rank.size() - 1;
  if (rank.number() == missing) {
    (void)wait_for_failure(rank.group);
    return;
  }
  AllGatherMatmul call = layer.fused(1, transport);
  call.timeout = milliseconds(300);
  require_ok(all_gather_matmul(rank.group, call));
  require_failure(
      layer.finish(), StatusCode::kTimeout,
      {"all_gather/copy_engine", "of all_gather_matmul", fmt::format("rank {}", missing)});
}

void missing_in_layer(Rank& rank) { missing_in_layer_by(rank, "copy_engine"); }
void missing_in_pulled_layer(Rank& rank) { missing_in_layer_by(rank, "pull"); }

void aborted_layer(Rank& rank) {
  Layer layer(rank, {256, 512, 1024});
  if (!can_fuse(layer, rank)) return;
  require_ok(layer.start(0));
  require_ok(layer.finish());
  rank.meet();
  if (rank.number() == 0) return rank.group.abort("enough");
  (void)layer.start(1);
  require_failure(layer.finish(), StatusCode::kAborted, {"aborted on rank 0: enough"});
}

// --- pipelines -----------------------------------------------------------------------------------

constexpr std::array<std::string_view, 3> kPipelines = {"pipelined_shift", "pipelined_ring",
                                                        "pipelined_tiles"};

// As fresh_layers(). The first calls prepare the pipeline, and agree on where the shards are.
void fresh_pipeline(Rank& rank, Layer& layer, std::string_view algorithm,
                    const AllGatherMatmulPipeline& pipeline) {
  for (int call = 0; call < kCalls; ++call) require_ok(layer.start(call, algorithm, pipeline));
  for (int call = 0; call < kCalls; ++call) {
    if (call % rank.size() == rank.number()) {
      require(occupy_stream(layer.stream(), milliseconds(5)), "the other kernel runs");
    }
    require_ok(layer.start(call, algorithm, pipeline));
  }
  require_ok(layer.finish());
  rank.meet();
  for (int call = 0; call < kCalls; ++call) layer.check(call);
  rank.meet();
}

void fresh_pipelines(Rank& rank) {
  for (const LayerSize& size : {LayerSize{1024, 1792, 4096}, {64, 256, 512}, {200, 520, 1000}}) {
    Layer layer(rank, size);
    for (const std::string_view algorithm : kPipelines) {
      if (!can_run(layer, rank, algorithm)) return;
      for (const std::string_view protocol : {"get", "put"}) {
        const bool ordered = protocol == "put";
        for (const std::string_view mover : {"copy_engine", "kernel"}) {
          fresh_pipeline(
              rank, layer, algorithm,
              {.protocol = protocol, .mover = mover, .tiles = 4, .inter_stream_order = ordered});
        }
      }
    }
  }
}

// The streams end, and the failure says for whom they waited.
void missing_in_pipeline(Rank& rank) {
  Layer layer(rank, {256, 512, 1024});
  if (!can_run(layer, rank, "pipelined_shift")) return;
  require_ok(layer.start(0, "pipelined_shift", {}));
  require_ok(layer.finish());
  rank.meet();
  const int missing = rank.size() - 1;
  if (rank.number() == missing) {
    (void)wait_for_failure(rank.group);
    return;
  }
  // Where the first call had its A: at a new place the ranks would compare, on the host.
  AllGatherMatmul call = layer.call(0, "pipelined_shift");
  call.timeout = milliseconds(300);
  require_ok(all_gather_matmul(rank.group, call));
  require_failure(layer.finish(), StatusCode::kTimeout,
                  {"pipeline #", "of all_gather_matmul", fmt::format("for rank {}", missing)});
}

void aborted_pipeline(Rank& rank) {
  Layer layer(rank, {256, 512, 1024});
  if (!can_run(layer, rank, "pipelined_tiles")) return;
  require_ok(layer.start(0, "pipelined_tiles", {}));
  require_ok(layer.finish());
  rank.meet();
  if (rank.number() == 0) return rank.group.abort("enough");
  (void)layer.start(1, "pipelined_tiles", {});
  require_failure(layer.finish(), StatusCode::kAborted, {"aborted on rank 0: enough"});
}

constexpr Scenario kFused[] = {
    {"fused_fresh", 2, kPatience, fresh_layers},
    {"fused_replayed", 2, kPatience, replayed_layers},
    {"fused_gathered", 2, kPatience, gathered_layers},
    {"fused_missing_rank", 2, kPatience, missing_in_layer},
    {"fused_aborted", 2, kPatience, aborted_layer},
    {"fused_pulled_fresh", 2, kPatience, pulled_layers},
    {"fused_pulled_replayed", 2, kPatience, replayed_pulled_layers},
    {"fused_pulled_missing_rank", 2, kPatience, missing_in_pulled_layer},
    {"pipelined_fresh", 2, kPatience, fresh_pipelines},
    {"pipelined_missing_rank", 2, kPatience, missing_in_pipeline},
    {"pipelined_aborted", 2, kPatience, aborted_pipeline},
};

}  // namespace

std::span<const Scenario> fused() { return kFused; }

}  // namespace tutti::test
