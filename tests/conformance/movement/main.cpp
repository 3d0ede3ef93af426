// tutti_conformance_movement: every row of the collectives that move bits, byte for byte. In each
// round every pair of values of any two dimensions occurs.
#include <cstdlib>
#include <map>

#include "conformance/grouped.hpp"
#include "conformance/movement/bench.hpp"
#include "group/communicator_impl.hpp"
#include "support/cuda_graph.hpp"
#include "tickets/ticket_executor.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

// To the next rank, from the one before.
Status send_around(Communicator& group, const AllGather& sides) {
  const int rank = group.rank(), ranks = group.size();
  group_start();
  require_ok(recv(group, {.buffer = sides.output,
                          .count = sides.count,
                          .dtype = sides.dtype,
                          .peer = (rank + ranks - 1) % ranks,
                          .stream = sides.stream,
                          .options = sides.options}));
  require_ok(send(group, {.buffer = sides.input,
                          .count = sides.count,
                          .dtype = sides.dtype,
                          .peer = (rank + 1) % ranks,
                          .stream = sides.stream,
                          .options = sides.options}));
  return group_end();
}

Status move(Communicator& group, const MovementCell& cell, const MovementBench::Buffers& buffers,
            const DeviceCounts& device, Stream stream) {
  const CallOptions how{
      .algorithm = cell.algorithm, .blocks = cell.blocks, .threads = cell.threads};
  const auto fill = [&](auto call) {
    call.input = buffers.input;
    call.output = buffers.output;
    if constexpr (requires { call.count; }) call.count = cell.count;
    call.dtype = cell.dtype;
    call.stream = stream;
    call.options = how;
    if constexpr (requires { call.root; }) call.root = cell.root;
    return call;
  };
  const UnevenCounts counts = cell.counts(group.rank());
  const auto fill_uneven = [&](auto call) {
    call = fill(call);
    call.device_counts = device;
    if (!cell.counts_on_device) give_counts(call, counts, cell.count);
    return call;
  };
  switch (cell.collective) {
    case Collective::kAllGatherV:
      return all_gather_v(group, fill_uneven(AllGatherV{}));
    case Collective::kAllToAllV:
      return all_to_all_v(group, fill_uneven(AllToAllV{}));
    case Collective::kSendRecv:
      return send_around(group, fill(AllGather{}));
    case Collective::kAllToAll:
      return all_to_all(group, fill(AllToAll{}));
    case Collective::kBroadcast:
      return broadcast(group, fill(Broadcast{}));
    case Collective::kGather:
      return gather(group, fill(Gather{}));
    case Collective::kScatter:
      return scatter(group, fill(Scatter{}));
    default:
      return all_gather(group, fill(AllGather{}));
  }
}

void run_once(Rank& rank, MovementBench& bench, MovementCell cell, const OwnedStream& stream) {
  const MovementBench::Buffers buffers = bench.prepare(cell);
  const auto enqueue = [&] {
    require_ok(move(rank.group, cell, buffers, bench.device_counts(cell), stream.get()));
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
    cell.seed += 100'000;
    if (cell.counts_on_device) ++cell.counts_seed;
    (void)bench.prepare(cell);
    graph.launch(stream.get());
    judge(fmt::format("replay {}", replay));
  }
}

// What a row has no room for is refused alike on every rank.
bool is_refused(const Rank& rank, MovementBench& bench, const MovementCell& cell) {
  const auto plan = rank.group.impl().plan(
      cell.collective, {.count = cell.larger(),
                        .dtype = cell.dtype,
                        .symmetric = cell.buffers != BufferKind::kPlain,
                        .in_place = cell.in_place && runs_in_place(cell.collective),
                        .algorithm = cell.algorithm,
                        .counts_on_device = cell.counts_on_device,
                        .captured = cell.mode != Mode::kEager});
  if (plan.status().code() == StatusCode::kUnsupported) return true;
  if (windows_of(cell.collective, cell.algorithm) == kNeedsNothing) return false;
  const MovementBench::Buffers buffers = bench.prepare(cell);
  return !windows_hold(cell.buffers, buffers.input, buffers.output);
}

void run_cells(Rank& rank, std::vector<MovementCell> cells, Backend backend) {
  for (MovementCell& cell : cells) fit_windows(cell.collective, cell);
  const OwnedStream stream(rank.device);
  std::map<BufferKind, std::unique_ptr<MovementBench>> benches;
  for (const BufferKind kind : kAllBufferKinds) {
    if (kind == BufferKind::kRegisteredVirtual && backend == Backend::kHost) continue;
    const bool needed = std::any_of(cells.begin(), cells.end(), [kind](const MovementCell& cell) {
      return cell.buffers == kind;
    });
    if (!needed) continue;
    benches[kind] = std::make_unique<MovementBench>(rank, kind, MovementSpace::kMostBytes);
  }
  prepare_nccl_for(rank.group, cells.front().collective, cells);
  run_possible(
      cells,
      [&](const MovementCell& cell) { return is_refused(rank, *benches.at(cell.buffers), cell); },
      [&](const MovementCell& cell) { run_once(rank, *benches.at(cell.buffers), cell, stream); });
}

int run_collective(Collective collective, const SelectionOptions& options) {
  const Backend backend = take(parse_backend(options.backend));
  fmt::print("{}\n", to_string(collective));
  return run_selections(MovementSpace{.collective = collective}, collective, options,
                        [&](Rank& rank, std::vector<MovementCell> cells) {
                          if (options.tickets) keep_plain(cells);
                          run_cells(rank, std::move(cells), backend);
                        });
}

bool moves_bits(Collective collective) {
  return !reduces(collective) && collective != Collective::kBarrier;
}

// Of those that are named, or of all: the worst exit code.
int run(const std::vector<std::string>& names, const SelectionOptions& options) {
  if (options.tickets) register_ticket_executor();
  std::vector<Collective> collectives;
  for (const std::string& name : names) collectives.push_back(take(parse_collective(name)));
  for (const Collective each : kAllCollectives) {
    if (names.empty() && moves_bits(each)) collectives.push_back(each);
  }
  int worst = 0;
  for (const Collective collective : collectives) {
    require(moves_bits(collective), fmt::format("{} does not move bits", to_string(collective)));
    const int code = run_collective(collective, options);
    if (code != 0 && (worst == 0 || worst == kSkipped)) worst = code;
  }
  return worst;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  // Little staging, so that messages take several passes through it.
  ::setenv("TUTTI_STAGING_BYTES", "64K", 0);
  ::setenv("TUTTI_CAPTURE_STAGING_BYTES", "16K", 0);
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  std::vector<std::string> names;
  return tutti::test::main_of_selections(
      argc, argv, "Every row of the collectives that move bits, byte for byte",
      [&](const tutti::test::SelectionOptions& options) {
        return tutti::test::run(names, options);
      },
      [&](CLI::App& app, tutti::test::SelectionOptions& options) {
        app.add_flag("--tickets", options.tickets,
                     "on plain buffers, also on the executor of the tests' own");
        app.add_option("--collective", names,
                       "all_gather,all_to_all,broadcast,gather,scatter,send_recv,all_gather_v,"
                       "all_to_all_v: all, unless some are named")
            ->delimiter(',');
      });
}
