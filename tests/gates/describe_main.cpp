// tutti_describe table: the table of docs/reference/algorithms.md, of what descriptors say.
// tutti_describe promises: what their kernels promise, as JSON for check_kernels.py.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <string>

#include "gates/described.hpp"

namespace tutti::test {
namespace {

std::string order_of(const Algorithm& row) {
  if (!reduces(row.collective)) return "no reduction";
  if (row.family == Family::kNccl) return "NCCL's own";
  if (row.order == Order::kRankOrder) return "rank order";
  if (row.order == Order::kSameOnAllRanks) return "same on all ranks";
  return row.ring_directions > 0 || row.name() == "network_ring" ? "the ring's" : "none";
}

std::string ranks_of(const Algorithm& row) {
  if (row.max_ranks_cuda > kMaxRanks) return "any";
  const std::string gpu = fmt::format("GPU {}", row.max_ranks_cuda);
  return row.max_ranks_host == 0 ? gpu : fmt::format("host {}, {}", row.max_ranks_host, gpu);
}

std::string needs_of(const Algorithm& row) {
  const struct {
    bool needed;
    const char* what;
  } all[] = {
      {(row.needs & kNeedsPeerAccess) != 0, "peer access"},
      {(row.needs & kNeedsMulticast) != 0, "multicast"},
      {(row.needs & kNeedsNetwork) != 0, "network"},
      {(row.needs & kNeedsEvenNodes) != 0, "nodes with equally many ranks"},
      {row.packets != nullptr, "packet buffers"},
      {row.least_compute == 90, "Hopper or newer on GPUs"},
      {(row.needs & kNeedsNcclWindows) != 0, "NCCL 2.27 or newer at run time"},
      {(row.needs & kNeedsNcclCopyEngines) != 0, "NCCL 2.28 or newer at run time"},
      {(row.needs & kNeedsNccl) != 0 && (row.needs & kNeedsAnyWindows) == 0, "NCCL at run time"},
  };
  std::string text;
  for (const auto& [needed, what] : all) {
    if (needed) text += fmt::format("{}{}", text.empty() ? "" : ", ", what);
  }
  return text;
}

void print_table() {
  fmt::print(
      "| id | hops | wire | order of the sum | ranks | needs |\n|---|---|---|---|---|---|\n");
  for (const auto& [row, traffic] : described_algorithms()) {
    fmt::print("| `{}` | {} | {} | {} | {} | {} |\n", row.id, traffic.hops, traffic.wire,
               order_of(row), ranks_of(row), needs_of(row));
  }
}

void print_promises() {
  nlohmann::json all;
  for (const auto& [body, promises] : promised_kernels()) {
    all[std::string(body)] = {
        {"loads", promises.loads},           {"stores", promises.stores},
        {"barriers", promises.barriers},     {"narrow", promises.narrow},
        {"loops", promises.loops},           {"stack_bytes", promises.stack_bytes},
        {"local", promises.local},           {"block_fences", promises.block_fences},
        {"bulk_loads", promises.bulk_loads}, {"bulk_stores", promises.bulk_stores}};
  }
  fmt::print("{}\n", all.dump(1));
}

}  // namespace
}  // namespace tutti::test

int main(int count, char** words) {
  if (count == 2 && std::strcmp(words[1], "table") == 0) {
    tutti::test::print_table();
  } else if (count == 2 && std::strcmp(words[1], "promises") == 0) {
    tutti::test::print_promises();
  } else {
    fmt::print(stderr, "usage: tutti_describe table|promises\n");
    return 2;
  }
  return 0;
}
