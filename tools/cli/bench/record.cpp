#include "bench/record.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/try.hpp"

namespace tutti::cli {
namespace {

// What rank 0 and the others must have in common for their samples to be of one operation.
auto identity_of(const Measurement& m) { return std::tie(m.size, m.algorithm, m.in_place, m.plan); }

Row describe(const Measurement& m, const BenchOptions& options, int ranks) {
  const bool graph = options.mode == Mode::kGraph;
  const std::size_t bytes = options.message_bytes(m.size, ranks);
  return {
      .collective = std::string(to_string(options.collective)),
      .algorithm = m.algorithm,
      .backend = std::string(to_string(options.backend)),
      .ranks = ranks,
      .dtype = std::string(to_string(options.dtype)),
      .op = std::string(reduces(options.collective) ? to_string(options.op) : kNoOp),
      .bytes = bytes,
      .count = bytes / size_of(options.dtype),
      .hidden = options.hidden,
      .root = options.root,
      .in_place = m.in_place,
      .buffers = std::string(to_string(m.plain ? BufferKind::kPlain : options.wanted_buffers())),
      .mode = std::string(to_string(options.mode)),
      .graph_operations = graph ? options.graph_operations : 0,
      .chained = options.chained,
      .cache = std::string(to_string(options.cache)),
      .launch = std::string(to_string(options.launch)),
      .blocks = m.plan.blocks,
      .threads = m.plan.threads,
      .chunk_bytes = m.plan.chunk_bytes,
      .wrong = m.wrong,
      .chosen = m.chosen,
      .emulated = m.plan.emulated};
}

Result<Row> row_of(const std::vector<const Measurement*>& ranks, const BenchOptions& options) {
  const Measurement& first = *ranks.front();
  Row row = describe(first, options, static_cast<int>(ranks.size()));
  std::vector<std::vector<double>> samples, unstaged;
  if (row.wrong) row.wrong = 0;
  for (const Measurement* m : ranks) {
    samples.push_back(m->samples_us);
    unstaged.push_back(m->unstaged_us);
    row.per_rank_p50_us.push_back(summarize(m->samples_us).p50);
    row.sent_bytes = std::max(row.sent_bytes, m->sent_bytes);
    row.cpu_share = std::max(row.cpu_share, m->cpu_share);
    if (row.wrong) *row.wrong += m->wrong.value_or(0);
  }
  TUTTI_ASSIGN(std::vector<double> slowest, slowest_rank(samples));
  TUTTI_ASSIGN(std::vector<double> slowest_unstaged, slowest_rank(unstaged));
  row.time_us = summarize(std::move(slowest));
  if (!slowest_unstaged.empty()) {
    const double without = summarize(std::move(slowest_unstaged)).p50;
    row.copy_us = std::max(0.0, row.time_us.p50 - without);
  }
  row.algbw_gbps = algorithm_bandwidth(row.bytes, row.time_us.p50);
  row.busbw_gbps = bus_bandwidth(options.collective, row.algbw_gbps, row.ranks);
  return row;
}

// Each once, in order.
std::string joined(const std::string& before, const std::string& added) {
  if (before.find(added) != std::string::npos) return before;
  return before.empty() ? added : before + "; " + added;
}

auto key_of(const Row& r) {
  return std::tie(r.collective, r.algorithm, r.backend, r.ranks, r.dtype, r.op, r.bytes, r.hidden,
                  r.root, r.in_place, r.buffers, r.mode, r.graph_operations, r.chained, r.cache,
                  r.launch);
}

}  // namespace

Result<std::vector<Row>> rows_of(const GroupOutcome& outcome, const BenchOptions& options,
                                 Range range) {
  std::vector<Row> rows;
  const std::vector<Measurement>& first = outcome.measurements.front();
  for (std::size_t k = range.begin; k < range.end; ++k) {
    std::vector<const Measurement*> same;
    for (const std::vector<Measurement>& rank : outcome.measurements) {
      if (k >= rank.size() || identity_of(rank[k]) != identity_of(first[k])) {
        return Status(StatusCode::kMismatch, fmt::format("rank {} did not measure {} as rank 0 did",
                                                         same.size(), first[k].algorithm));
      }
      same.push_back(&rank[k]);
    }
    TUTTI_ASSIGN(Row row, row_of(same, options));
    rows.push_back(std::move(row));
  }
  return rows;
}

bool same_matmul(const Row& a, const Row& b) {
  if (a.overlap.has_value() != b.overlap.has_value()) return false;
  if (a.matmul.has_value() != b.matmul.has_value()) return false;
  if (a.matmul) return a.matmul->same_kind(*b.matmul);
  return !a.overlap || a.overlap->same_matmul(*b.overlap);
}

bool same_key(const Row& a, const Row& b) {
  if (key_of(a) != key_of(b) || !same_matmul(a, b)) return false;
  if (a.matmul) return a.matmul->same_extents(*b.matmul) && a.matmul->same_options(*b.matmul);
  return !a.overlap || a.overlap->phase == b.overlap->phase;
}

Status check_same_machine(const Record& old_record, const Record& new_record) {
  const Environment& a = old_record.environment;
  const Environment& b = new_record.environment;
  // Machines with GPUs are of one kind by their GPUs and driver, others by their name.
  const std::string host_a = a.gpus > 0 ? "" : a.host, host_b = b.gpus > 0 ? "" : b.host;
  const std::tuple<std::string_view, std::string, std::string> pairs[] = {
      {"tutti", old_record.tutti, new_record.tutti},
      {"gpu", a.gpu, b.gpu},
      {"gpus", fmt::format("{}", a.gpus), fmt::format("{}", b.gpus)},
      {"driver", a.driver, b.driver},
      {"cuda", a.cuda, b.cuda},
      {"nccl", a.nccl, b.nccl},
      {"torch", a.torch, b.torch},
      {"vllm", a.vllm, b.vllm},
      {"host", host_a, host_b}};
  for (const auto& [name, was, is] : pairs) {
    if (was == is) continue;
    return {StatusCode::kInvalidArgument,
            fmt::format("--append: the file was measured with {} '{}', here it is '{}'; write to "
                        "another file",
                        name, was, is)};
  }
  return Status::ok();
}

Record merge(const Record& old_record, Record added) {
  std::vector<Row> rows = old_record.rows;
  for (const Row& row : added.rows) {
    const auto before = std::find_if(rows.begin(), rows.end(),
                                     [&](const Row& other) { return same_key(row, other); });
    if (before == rows.end()) {
      rows.push_back(row);
    } else {
      *before = row;
    }
  }
  added.rows = std::move(rows);
  added.environment.command = joined(old_record.environment.command, added.environment.command);
  const bool unknown = old_record.commit.empty() && !old_record.rows.empty();
  if (!added.commit.empty() && unknown) {
    added.commit = joined("unknown", added.commit);
  } else {
    added.commit = joined(old_record.commit, added.commit);
  }
  return added;
}

}  // namespace tutti::cli
