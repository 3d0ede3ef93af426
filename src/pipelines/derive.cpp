#include "pipelines/derive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti::pipelines {
namespace {

constexpr BufferId kA = 0, kGathered = 1;
constexpr Index kCaller = constant(kCallerStream);

Status invalid_pipeline(std::string text) {
  return {StatusCode::kInvalidArgument, "all_gather_matmul: " + std::move(text)};
}

struct Extent {
  const char* what;
  std::size_t rows, columns;
};

Status check_extents(const Description& d) {
  std::vector<Extent> extents = {{"A", d.m, d.k}};
  for (const ProductColumns& product : d.products) {
    extents.push_back({"B", d.k, product.n});
    extents.push_back({"C", d.m, product.n});
  }
  for (const Extent& extent : extents) {
    const std::size_t most = kMostBytes / size_of(d.dtype);
    if (extent.rows > most || extent.columns > most / std::max(extent.rows, std::size_t{1})) {
      return invalid_pipeline(fmt::format("the size of {} [{}, {}] overflows", extent.what,
                                          extent.rows, extent.columns));
    }
  }
  return Status::ok();
}

Status check_count(const char* what, int value, int most) {
  if (value >= 1 && value <= most) return Status::ok();
  return invalid_pipeline(fmt::format("{} {}: must be between 1 and {}", what, value, most));
}

Status check_description(const Description& d) {
  TUTTI_TRY(check_count("ranks", d.ranks, kMostPipelineRanks));
  TUTTI_TRY(check_count("streams", d.streams, kMostPipelineStreams));
  TUTTI_TRY(check_count("tiles", d.tiles, kMostPipelineTiles));
  if (d.products.empty()) return invalid_pipeline("no B");
  if (d.symmetric_gathered && !d.gathered) {
    return invalid_pipeline("the gathered A is symmetric, but no output");
  }
  return check_extents(d);
}

void append(Nodes& nodes, Nodes more) {
  nodes.insert(nodes.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

// Nothing if the loop has no iterations.
Nodes loop(Variable variable, int first, int last, Nodes body) {
  if (last < first || body.empty()) return {};
  return {Node{For{variable, first, last, std::move(body)}}};
}

class Derivation {
 public:
  explicit Derivation(const Description& description)
      : d_(description),
        n_(description.ranks),
        get_(description.protocol == Protocol::kGet),
        tiled_(description.algorithm == Algorithm::kTiles),
        streams_(std::min(description.streams, tiled_ ? description.tiles : n_)) {}

  Program run() {
    add_buffers();
    add_setup();
    switch (d_.algorithm) {
      case Algorithm::kShift:
        add_shift();
        break;
      case Algorithm::kRing:
        add_ring();
        break;
      case Algorithm::kTiles:
        add_tiles();
        break;
    }
    program_.description = d_;
    program_.streams = streams_;
    return std::move(program_);
  }

 private:
  void add_buffers();
  void add_setup();

  // What a rank receives from the owner of a shard, and what it sends to a reader of its own.
  struct Exchange {
    Transfer in, out;
  };
  Exchange exchange(std::optional<Index> tile, const Index& ready, const Index& done) const;
  Node allow(const Exchange& both) const;
  Node move(const Exchange& both) const;
  Nodes each_peer(Nodes nodes) const { return loop(Variable::kStep, 1, n_ - 1, std::move(nodes)); }

  void add_shift();
  void add_ring();
  Nodes ring_get_step() const;
  Nodes unless_last(Nodes nodes) const;
  Nodes first_or_later(Node first, Node later) const;
  Nodes ring_put_step() const;
  void add_tiles();

  // The parts that programs have in common.
  Nodes forks(int first, int last) const;
  void open(Nodes allowing, bool ordered);
  void close(Nodes waits);

  // Peers read the own shard from its copy in the gathered A.
  bool staged() const { return get_ && !d_.symmetric_a && n_ > 1; }
  // Peers read or write the buffer that rows are gathered in.
  bool peers_use_gathered() const {
    const bool forwards = d_.algorithm == Algorithm::kRing && n_ > 2;
    return n_ > 1 && (!get_ || staged() || forwards);
  }
  // That buffer is not the output.
  bool copies_out() const { return d_.gathered && !d_.symmetric_gathered && peers_use_gathered(); }
  Slice output(std::optional<Index> shard, std::optional<Index> tile = {}) const {
    return {program_.gathered, shard, tile};
  }
  // After the matmul of rows that were gathered.
  Nodes copy_out(const Slice& rows) const {
    if (!copies_out()) return {};
    return {Node{Copy{rows, output(rows.shard, rows.tile)}}};
  }
  Slice own() const { return {kA, kRank}; }
  // What a peer gets of this rank's own shard.
  Slice offered(std::optional<Index> tile = {}) const {
    return {staged() ? kGathered : kA, kRank, tile};
  }
  static Slice gathered(Index shard, std::optional<Index> tile = {}) {
    return {kGathered, shard, tile};
  }
  Index around(const Index& index) const { return mod(index, n_); }
  // The stream of a step. `last`: the last step there is.
  Index stream_of(const Index& step, int last) const {
    if (streams_ == 1) return constant(0);
    return last < streams_ ? step : mod(step, streams_);
  }
  Nodes order_next(const Index& step) const;
  int first_awaited(int first, int last) const;

  const Description& d_;
  const int n_;
  const bool get_, tiled_;
  const int streams_;
  Program program_;
};

void Derivation::add_buffers() {
  const auto rank0 = shard_rows(d_, 0).count();
  const bool output = d_.gathered && !copies_out();
  const Role role = output ? Role::kOutput : Role::kWorkspace;
  program_.buffers = {
      {"A", rank0, d_.k, Role::kInput, Part::kShard, d_.symmetric_a},
      {"A_gathered", d_.m, d_.k, role, Part::kAll, !output || d_.symmetric_gathered}};
  const auto add = [&](Buffer buffer) {
    program_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(program_.buffers.size() - 1);
  };
  for (std::size_t i = 0; i < d_.products.size(); ++i) {
    const auto [n, bias] = d_.products[i];
    Product product{.b = add({fmt::format("B{}", i), d_.k, n, Role::kInput, Part::kNone})};
    if (bias) product.bias = add({fmt::format("bias{}", i), 1, n, Role::kInput, Part::kNone});
    product.c = add({fmt::format("C{}", i), d_.m, n, Role::kOutput, Part::kAll});
    program_.products.push_back(product);
  }
  if (output) program_.gathered = kGathered;
  if (copies_out()) {
    program_.gathered = add({"A_output", d_.m, d_.k, Role::kOutput, Part::kAll});
  }
}

void Derivation::add_setup() {
  if (program_.gathered != kGathered && (n_ > 1 || tiled_))
    program_.setup.push_back({Allocate{kGathered}});
  if (n_ == 1) return;
  ShareHandles shared;
  if (get_ && d_.symmetric_a) shared.buffers.push_back(kA);
  if (peers_use_gathered()) shared.buffers.push_back(kGathered);
  program_.setup.push_back({shared});
}

// The streams first, ..., last wait for the caller's.
Nodes Derivation::forks(int first, int last) const {
  if (first == last) return {Node{Synchronize{constant(first), kCaller}}};
  return loop(Variable::kStream, first, last, {Node{Synchronize{kStream, kCaller}}});
}

// The beginning of shift and ring. Before any stream waits for a peer, this rank has posted what
// peers wait for, in whatever order its streams run. The own matmul waits for no peer, so it does
// not wait for the own copy either. Where streams begin in order, only the first two wait for the
// caller's: a step 0 has no transfer.
void Derivation::open(Nodes allowing, bool ordered) {
  Nodes& nodes = program_.call;
  const int last = ordered ? std::min(streams_, 2) - 1 : streams_ - 1;
  const bool output_copy = copies_out() || (d_.gathered && !staged());
  if (staged()) append(nodes, forks(0, 0));
  if (staged() || output_copy || !allowing.empty()) nodes.push_back({SetCurrentStream{kCaller}});
  if (staged()) nodes.push_back({Copy{own(), gathered(kRank)}});
  append(nodes, std::move(allowing));
  append(nodes, forks(staged() ? 1 : 0, last));
  if (output_copy) nodes.push_back({Copy{own(), output(kRank)}});
  append(nodes, {Node{SetCurrentStream{constant(0)}}, Node{Matmul{own()}}});
  const bool steps_ordered = d_.algorithm == Algorithm::kRing && streams_ > 1;
  if (staged() && n_ > streams_ && !steps_ordered) append(nodes, forks(0, 0));
}

// The caller's stream waits for peers after this rank has done everything that they wait for.
void Derivation::close(Nodes waits) {
  Nodes& nodes = program_.call;
  nodes.push_back({SetCurrentStream{kCaller}});
  if (streams_ == 1) {
    nodes.push_back({Synchronize{kCaller, constant(0)}});
  } else {
    append(nodes, loop(Variable::kStream, 0, streams_ - 1, {Node{Synchronize{kCaller, kStream}}}));
  }
  append(nodes, std::move(waits));
}

// After the transfer of a step: the next stream begins, if this is its first step.
Nodes Derivation::order_next(const Index& step) const {
  if (!d_.inter_stream_order || streams_ == 1) return {};
  return {Node{If{step + 1, streams_, {Node{Synchronize{step + 1, step}}}, {}}}};
}

// The mover runs transfers first, ..., last of one peer on its streams in turn. The last one of
// each stream ends after the others. Where streams begin in order, the first transfer of a stream
// ends before that of the next stream.
int Derivation::first_awaited(int first, int last) const {
  const int of_streams = std::max(first, last - streams_ + 1);
  return d_.inter_stream_order ? std::max(of_streams, streams_ - 1) : of_streams;
}

Derivation::Exchange Derivation::exchange(std::optional<Index> tile, const Index& ready,
                                          const Index& done) const {
  const Index owner = around(kRank + kStep), reader = around(kRank - kStep);
  return {.in = {owner, gathered(owner, tile), {}, ready, done},
          .out = {reader, offered(tile), {}, ready, done}};
}

Node Derivation::allow(const Exchange& both) const {
  return get_ ? Node{SendPost{both.out}} : Node{RecvPost{both.in}};
}

Node Derivation::move(const Exchange& both) const {
  Transfer moved = get_ ? both.in : both.out;
  moved.remote = get_ ? Slice{offered().buffer, moved.peer, moved.local.tile}
                      : gathered(kRank, moved.local.tile);
  return get_ ? Node{RecvPost{moved}} : Node{SendPost{moved}};
}

void Derivation::add_shift() {
  program_.words = 1;
  const Exchange both = exchange({}, constant(0), constant(0));
  open(each_peer({allow(both)}), d_.inter_stream_order);

  Nodes step = {Node{SetCurrentStream{stream_of(kStep, n_ - 1)}}, move(both)};
  if (streams_ > 2) append(step, order_next(kStep));
  if (!get_) step.push_back({RecvWait{both.in}});
  step.push_back({Matmul{both.in.local}});
  append(step, copy_out(both.in.local));
  append(program_.call, each_peer(std::move(step)));
  close(get_ ? each_peer({Node{SendWait{both.out}}}) : Nodes{});
}

// Step s brings the shard of rank - s from the left neighbour, which has had it since step s - 1.
// So the last transfer that the right neighbour makes ends after its others.
void Derivation::add_ring() {
  program_.words = n_;
  const Index left = around(kRank - 1), right = around(kRank + 1);
  Nodes allowing, waits;
  if (n_ > 1 && get_) {
    allowing = {Node{SendPost{{right, offered(), {}, constant(1), constant(1)}}}};
    const Index last = constant(n_ - 1);
    const Slice read = n_ == 2 ? offered() : gathered(around(kRank + 2));
    waits = {Node{SendWait{{right, read, {}, last, last}}}};
  } else if (n_ > 1) {
    allowing = {Node{RecvPost{{left, {kGathered}, {}, constant(0), constant(0)}}}};
  }
  open(std::move(allowing), n_ > 1);
  append(program_.call, loop(Variable::kStep, 1, n_ - 1, get_ ? ring_get_step() : ring_put_step()));
  close(std::move(waits));
}

// After the transfer of a ring's step, unless it is the last one. The next step begins after it: it
// needs what that brought (put), or the left neighbour needs what this rank posts (get).
Nodes Derivation::unless_last(Nodes nodes) const {
  if (streams_ > 1) {
    nodes.push_back({Synchronize{stream_of(kStep + 1, n_ - 1), stream_of(kStep, n_ - 1)}});
  }
  if (n_ == 2 || nodes.empty()) return {};
  return {Node{If{kStep + 1, n_, std::move(nodes), {}}}};
}

// The first transfer of a ring brings what a rank has itself.
Nodes Derivation::first_or_later(Node first, Node later) const {
  if (n_ == 2) return {std::move(first)};
  return {Node{If{kStep, 2, {std::move(first)}, {std::move(later)}}}};
}

Nodes Derivation::ring_get_step() const {
  const Index left = around(kRank - 1), right = around(kRank + 1);
  const Slice current = gathered(around(kRank - kStep));
  const auto receive = [&](Slice from) {
    return Node{RecvPost{{left, current, from, kStep, kStep}}};
  };
  Nodes step = {Node{SetCurrentStream{stream_of(kStep, n_ - 1)}}};
  const Slice first{offered().buffer, left};
  if (staged()) {
    step.push_back(receive(current));
  } else {
    append(step, first_or_later(receive(first), receive(current)));
  }
  const Transfer forwarded{right, current, {}, kStep + 1, kStep + 1};
  append(step, unless_last({Node{SendPost{forwarded}}}));
  step.push_back({Matmul{current}});
  append(step, copy_out(current));
  return step;
}

Nodes Derivation::ring_put_step() const {
  const Index left = around(kRank - 1), right = around(kRank + 1);
  const Index previous = around(kRank - kStep + 1), current = around(kRank - kStep);
  const auto send = [&](Slice from) {
    return Node{SendPost{{right, from, gathered(previous), constant(0), kStep}}};
  };
  Nodes step = {Node{SetCurrentStream{stream_of(kStep, n_ - 1)}}};
  append(step, first_or_later(send(own()), send(gathered(previous))));
  step.push_back({RecvWait{{left, gathered(current), {}, constant(0), kStep}}});
  append(step, unless_last({}));
  step.push_back({Matmul{gathered(current)}});
  append(step, copy_out(gathered(current)));
  return step;
}

// With staging, the caller's stream copies and posts tile after tile, and the stream of a tile
// waits for that. So a stream that waits for a peer's tile follows this rank's posts of all earlier
// tiles.
void Derivation::add_tiles() {
  program_.words = d_.tiles;
  const Exchange both = exchange(kTile, staged() ? kTile : constant(0), kTile);
  const Index stream = stream_of(kTile, d_.tiles - 1);
  const Node set_caller{SetCurrentStream{kCaller}}, set_stream{SetCurrentStream{stream}};
  const Node copy{Copy{{kA, kRank, kTile}, gathered(kRank, kTile)}};
  Nodes tile;
  if (staged()) {
    tile = {set_caller, copy};
    append(tile, each_peer({allow(both)}));
    append(tile, {Node{Synchronize{stream, kCaller}}, set_stream});
  } else {
    // One word allows the transfers of all tiles.
    const Nodes allowing = each_peer({allow(exchange({}, constant(0), constant(0)))});
    if (!allowing.empty()) program_.call.push_back(set_caller);
    append(program_.call, allowing);
    append(program_.call, forks(0, d_.inter_stream_order ? 0 : streams_ - 1));
    tile = {set_stream, copy};
  }
  append(tile, each_peer({move(both)}));
  append(tile, order_next(kTile));
  if (!get_) append(tile, each_peer({Node{RecvWait{both.in}}}));
  tile.push_back({Matmul{{kGathered, {}, kTile}}});
  append(tile, copy_out({kGathered, {}, kTile}));
  append(program_.call, loop(Variable::kTile, 0, d_.tiles - 1, std::move(tile)));

  Nodes waits;
  if (get_) {
    waits = loop(Variable::kTile, first_awaited(0, d_.tiles - 1), d_.tiles - 1,
                 each_peer({Node{SendWait{both.out}}}));
  }
  close(std::move(waits));
}

}  // namespace

Result<Program> derive(const Description& description) {
  TUTTI_TRY(check_description(description));
  return Derivation(description).run();
}

}  // namespace tutti::pipelines
