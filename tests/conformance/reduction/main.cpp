// tutti_conformance_reduction: every row of the collectives of which a rank gets a part of the
// reduction against the reference of all_reduce, bit for bit. In each round every pair of values of
// any two dimensions occurs.
#include <cstdlib>
#include <map>

#include "conformance/grouped.hpp"
#include "conformance/reduction/bench.hpp"
#include "support/cuda_graph.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kMostElements = 140'000;  // of an input

template <class AnyCall>
AnyCall as(const ReductionBench::Call& call, const Cell& cell, Stream stream) {
  AnyCall result{.input = call.input,
                 .output = call.output,
                 .dtype = cell.dtype,
                 .op = call.op,
                 .stream = stream,
                 .options = {.algorithm = cell.algorithm, .blocks = call.blocks}};
  if constexpr (requires { result.count; }) result.count = cell.count;
  if constexpr (requires { result.root; }) result.root = call.root;
  if constexpr (requires { result.rows; }) {
    result.rows = ReductionBench::rows(Collective::kReduceScatter, cell);
  }
  return result;
}

Status run_call(Communicator& group, Collective collective, const Cell& cell,
                const ReductionBench& bench, const ReductionBench::Call& call, Stream stream) {
  if (collective == Collective::kReduceScatterV) {
    auto uneven = as<ReduceScatterV>(call, cell, stream);
    const UnevenCounts counts = bench.counts(cell);
    uneven.device_counts = call.device_counts;
    if (call.device_counts.given == nullptr) give_counts(uneven, counts, cell.count);
    return reduce_scatter_v(group, uneven);
  }
  if (collective == Collective::kReduce) return reduce(group, as<Reduce>(call, cell, stream));
  return reduce_scatter(group, as<ReduceScatter>(call, cell, stream));
}

struct Bench {
  Rank& rank;
  Collective collective;
  std::map<BufferKind, std::unique_ptr<ReductionBench>> by_kind;
};

void run_once(Bench& all, Cell cell, const OwnedStream& stream) {
  Rank& rank = all.rank;
  ReductionBench& bench = *all.by_kind.at(cell.buffers);
  const ReductionBench::Call call = bench.prepare(cell);
  const auto enqueue = [&] {
    require_ok(run_call(rank.group, all.collective, cell, bench, call, stream.get()));
  };
  const auto judge = [&](std::string_view when) {
    stream.wait();
    require_ok(rank.group.status());
    const std::string text = bench.check(cell);
    require(text.empty(), fmt::format("{}: {}", when, text));
  };
  if (cell.mode == Mode::kEager) {
    enqueue();
    return judge("eager");
  }
  const bool late = cell.mode == Mode::kGraphRegistered;
  if (late) require_ok(rank.group.start_capture());
  const CapturedGraph graph(*rank.device.cuda(), stream.get(), enqueue);
  if (late) require_ok(rank.group.finish_capture());
  graph.instantiate(rank);
  for (int replay = 0; replay < 2; ++replay) {
    cell.seed += 97'000;  // of the same root
    (void)bench.prepare(cell);
    graph.launch(stream.get());
    judge(fmt::format("replay {}", replay));
  }
}

// What a row has no room for is refused alike on every rank.
bool is_refused(const Bench& bench, const Cell& cell) {
  const Collective collective = bench.collective;
  const auto pieces = has_pieces(collective) ? static_cast<std::size_t>(cell.ranks) : 1;
  const std::size_t rows = ReductionBench::rows(collective, cell);
  const auto plan = bench.rank.group.plan(
      to_string(collective),
      {.count = cell.count * pieces,
       .dtype = cell.dtype,
       .op = {.kind = cell.op},
       .hidden = rows > 1 ? cell.count / rows * pieces : 0,
       .symmetric = cell.buffers != BufferKind::kPlain,
       .in_place = cell.in_place && runs_in_place(collective),
       .algorithm = cell.algorithm,
       .counts_on_device = is_uneven(collective) && ReductionBench::are_on_device(cell),
       .captured = cell.mode != Mode::kEager});
  if (plan.status().code() == StatusCode::kUnsupported) return true;
  if (windows_of(collective, cell.algorithm) == kNeedsNothing) return false;
  const ReductionBench::Call call = bench.by_kind.at(cell.buffers)->prepare(cell);
  return !windows_hold(cell.buffers, call.input, call.output);
}

void run_cells(Rank& rank, Collective collective, std::vector<Cell> cells, Backend backend) {
  for (Cell& cell : cells) {  // rows are not split in place
    cell.in_place = cell.in_place && !ReductionBench::is_for_rows(collective, cell);
    fit_windows(collective, cell);
  }
  const OwnedStream stream(rank.device);
  Bench bench{rank, collective, {}};
  for (const BufferKind kind : kAllBufferKinds) {
    if (kind == BufferKind::kRegisteredVirtual && backend == Backend::kHost) continue;
    const bool needed = std::any_of(cells.begin(), cells.end(),
                                    [kind](const Cell& cell) { return cell.buffers == kind; });
    if (!needed) continue;
    bench.by_kind[kind] = std::make_unique<ReductionBench>(rank, collective, kind, kMostElements);
  }
  prepare_nccl_for(rank.group, collective, cells);
  run_possible(
      cells, [&](const Cell& cell) { return is_refused(bench, cell); },
      [&](const Cell& cell) { run_once(bench, cell, stream); });
}

int run_collective(Collective collective, const SelectionOptions& options) {
  Space space;
  space.most_elements = kMostElements;
  space.over_network = !options.topology.empty();
  if (space.over_network) space.buffers = {BufferKind::kPlain};
  // Around tiles, blocks of them, and passes through staging.
  space.counts = {0, 1, 7, 8, 15, 16, 17, 255, 256, 1000, 4095, 4096, 20'001};
  const Backend backend = take(parse_backend(options.backend));
  fmt::print("{}\n", to_string(collective));
  return run_selections(space, collective, options,
                        [=](Rank& rank, const std::vector<Cell>& cells) {
                          run_cells(rank, collective, cells, backend);
                        });
}

// The worst exit code.
int run(const std::vector<std::string>& names, const SelectionOptions& options) {
  int worst = 0;
  for (const std::string& name : names) {
    const Collective collective = take(parse_collective(name));
    const bool known = collective == Collective::kReduceScatter ||
                       collective == Collective::kReduceScatterV ||
                       collective == Collective::kReduce;
    require(known, fmt::format("{} gives no rank a part of a reduction", name));
    const int code = run_collective(collective, options);
    if (code != 0 && (worst == 0 || worst == kSkipped)) worst = code;
  }
  return worst;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  // Little staging, so that messages take several passes through it.
  ::setenv("TUTTI_STAGING_BYTES", "16K", 0);
  ::setenv("TUTTI_CAPTURE_STAGING_BYTES", "8K", 0);
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  std::vector<std::string> names = {"reduce_scatter", "reduce_scatter_v", "reduce"};
  return tutti::test::main_of_selections(
      argc, argv, "Every row of reduce_scatter, reduce_scatter_v and reduce, bit for bit",
      [&](const tutti::test::SelectionOptions& options) {
        return tutti::test::run(names, options);
      },
      [&](CLI::App& app, tutti::test::SelectionOptions&) {
        app.add_option("--collective", names,
                       "reduce_scatter,reduce_scatter_v,reduce: all, unless some are named")
            ->delimiter(',');
      });
}
