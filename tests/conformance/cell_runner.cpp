#include "conformance/cell_runner.hpp"

#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/cuda_graph.hpp"

namespace tutti::test {
namespace {

// Rows that do not take every size, type and operation.
bool is_choosy(std::string_view algorithm) {
  const auto row = find_algorithm(Collective::kAllReduce, algorithm);
  constexpr unsigned kOptional = kNeedsNccl | kNeedsNetwork;
  return row.is_ok() && (((*row)->needs & kOptional) != 0 || (*row)->packets != nullptr);
}

bool needs(const Cell& cell, Needs need) {
  const auto row = find_algorithm(Collective::kAllReduce, cell.algorithm);
  return row.is_ok() && ((*row)->needs & need) != 0;
}

bool any_needs(const std::vector<Cell>& cells, Needs need) {
  return std::any_of(cells.begin(), cells.end(),
                     [need](const Cell& cell) { return needs(cell, need); });
}

}  // namespace

CellRunner::CellRunner(Rank& rank, const std::vector<Cell>& cells)
    : rank_(rank), stream_(rank.device) {
  const auto oracle = std::make_shared<Oracle>(rank.number());
  for (const BufferKind kind : kAllBufferKinds) {
    std::size_t bytes = 0;
    for (const Cell& cell : cells) {
      if (cell.buffers == kind) bytes = std::max(bytes, cell.payload_bytes() + 1);
    }
    if (bytes == 0) continue;
    benches_[kind] = std::make_unique<Workbench>(rank.group, rank.device, kind, bytes, oracle);
  }
  // Made here: it cannot be made inside a capture. Where NCCL is missing its cells are skipped.
  if (any_needs(cells, kNeedsNccl)) (void)rank.group.prepare_nccl();
  if (any_needs(cells, kNeedsNcclWindows))
    (void)rank.group.impl().prepare_executor(kNcclExecutor, kNeedsNcclWindows);
}

std::string CellRunner::why_not(const Cell& cell) const {
  const bool captured = cell.mode != Mode::kEager;
  const bool shared = captured && rank_.shares_gpu();
  if (!is_choosy(cell.algorithm) && !shared) return {};
  const bool aligned = cell.offset * size_of(cell.dtype) % 16 == 0;
  if (needs(cell, kNeedsNcclWindows) && !(aligned && cell.buffers == BufferKind::kSymmetric)) {
    return "windows of NCCL's hold no such buffers";
  }
  const auto plan = rank_.group.plan("all_reduce", {.count = cell.count,
                                                    .dtype = cell.dtype,
                                                    .op = {.kind = cell.op},
                                                    .in_place = cell.in_place,
                                                    .algorithm = cell.algorithm,
                                                    .captured = captured});
  return plan.status().code() == StatusCode::kUnsupported ? plan.status().message() : "";
}

std::string CellRunner::run(const Cell& cell) {
  Workbench& bench = *benches_.at(cell.buffers);
  return cell.mode == Mode::kEager ? run_eager(cell, bench) : run_graph(cell, bench);
}

void CellRunner::finish() {
  stream_.wait();
  require_ok(rank_.group.status());
}

std::string CellRunner::run_eager(const Cell& cell, Workbench& bench) {
  require_ok(all_reduce(rank_.group, bench.prepare(cell.trial(), stream_.get())));
  finish();
  return bench.check(cell.trial());
}

std::string CellRunner::run_graph(const Cell& cell, Workbench& bench) {
  Trial trial = cell.trial();
  const AllReduce call = bench.prepare(trial, stream_.get());
  const bool late = cell.mode == Mode::kGraphRegistered;
  if (late) require_ok(rank_.group.start_capture());
  const CapturedGraph graph(*rank_.device.cuda(), stream_.get(),
                            [&] { require_ok(all_reduce(rank_.group, call)); });
  if (late) require_ok(rank_.group.finish_capture());
  graph.instantiate(rank_);
  for (int replay = 0; replay < 2; ++replay) {
    if (replay > 0) trial.seed += 1000;
    (void)bench.prepare(trial, stream_.get());
    graph.launch(stream_.get());
    finish();
    std::string text = bench.check(trial);
    if (!text.empty()) return fmt::format("replay {}: {}", replay, text);
  }
  return {};
}

}  // namespace tutti::test
