#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "bench/printers/printers.hpp"

namespace tutti::cli {
namespace {

auto group_key(const Row& r) {
  return std::tie(r.collective, r.backend, r.ranks, r.dtype, r.op, r.hidden, r.root, r.buffers,
                  r.mode, r.graph_operations, r.chained, r.cache, r.launch);
}

}  // namespace

bool same_group(const Row& a, const Row& b) {
  return group_key(a) == group_key(b) && same_matmul(a, b);
}

std::vector<Group> groups_of(std::span<const Row> rows) {
  std::vector<Group> groups;
  for (const Row& row : rows) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& g) { return same_group(g.first(), row); });
    if (group == groups.end()) {
      groups.push_back({.rows = {&row}});
    } else {
      group->rows.push_back(&row);
    }
  }
  return groups;
}

std::vector<SizeView> sizes_of(const Group& group) {
  std::vector<SizeView> sizes;
  for (const Row* row : group.rows) {
    auto size = std::find_if(sizes.begin(), sizes.end(),
                             [&](const SizeView& view) { return view.bytes == row->bytes; });
    if (size == sizes.end()) size = sizes.insert(sizes.end(), SizeView{.bytes = row->bytes});
    (row->in_place ? size->in_place : size->out_of_place).push_back(row);
  }
  std::sort(sizes.begin(), sizes.end(),
            [](const SizeView& a, const SizeView& b) { return a.bytes < b.bytes; });
  return sizes;
}

std::vector<std::string> algorithms_of(const Group& group) {
  std::vector<std::string> names;
  for (const Row* row : group.rows) {
    if (std::find(names.begin(), names.end(), row->algorithm) == names.end()) {
      names.push_back(row->algorithm);
    }
  }
  return names;
}

bool Series::shows(const Row& row) const {
  return row.algorithm == algorithm && row.in_place == in_place;
}

std::string Series::title() const { return in_place ? algorithm + " (in place)" : algorithm; }

std::vector<Series> series_of(const std::vector<const Row*>& rows) {
  std::vector<Series> series;
  for (const std::string& name : algorithms_of({.rows = rows})) {
    const Series out_of_place{.algorithm = name};
    const bool any = std::any_of(rows.begin(), rows.end(),
                                 [&](const Row* row) { return out_of_place.shows(*row); });
    series.push_back({.algorithm = name, .in_place = !any});
  }
  return series;
}

const Row* row_of_algorithm(const std::vector<const Row*>& rows, std::string_view algorithm) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Row* r) { return r->algorithm == algorithm; });
  return row == rows.end() ? nullptr : *row;
}

const Row* fastest(const std::vector<const Row*>& rows) {
  const auto row = std::min_element(rows.begin(), rows.end(), [](const Row* a, const Row* b) {
    return std::pair(a->emulated, a->time_us.p50) < std::pair(b->emulated, b->time_us.p50);
  });
  return row == rows.end() ? nullptr : *row;
}

const Row* chosen_or_fastest(const std::vector<const Row*>& rows) {
  const auto row = std::find_if(rows.begin(), rows.end(), [](const Row* r) { return r->chosen; });
  return row == rows.end() ? fastest(rows) : *row;
}

std::string best_text(const std::vector<const Row*>& rows) {
  const Row* best = fastest(rows);
  const Row* nccl = row_of_algorithm(rows, "nccl");
  if (best == nullptr) return "n/a";
  if (nccl == nullptr || best->time_us.p50 <= 0) return best->algorithm;
  return fmt::format("{} ({:.2f}x)", best->algorithm, nccl->time_us.p50 / best->time_us.p50);
}

std::string shape_text(const Row& row) {
  if (row.hidden <= 0) return {};
  return fmt::format("{}x{}", row.count / static_cast<std::size_t>(row.hidden), row.hidden);
}

std::string time_text(double us) {
  if (us < 100) return fmt::format("{:.2f}", us);
  return fmt::format("{:.{}f}", us, us < 1000 ? 1 : 0);
}

std::string title_of(const Group& group) {
  const Row& r = group.first();
  std::string text =
      fmt::format("{}, {} ranks ({}), {}{}, backend {}, {} buffers, {}", r.collective, r.ranks,
                  r.launch, r.dtype, r.op == kNoOp ? "" : " " + r.op, r.backend, r.buffers, r.mode);
  if (r.root > 0) text += fmt::format(", root {}", r.root);
  if (r.graph_operations > 0) text += fmt::format(" of {} operations", r.graph_operations);
  if (r.chained) text += ", chained";
  return text + fmt::format(", cache {}", r.cache);
}

std::string multicast_text(const Group& group, const std::vector<const Record*>& records) {
  if (group.first().backend == to_string(Backend::kHost)) return {};
  const auto used = [](const Record* record) { return record->environment.multicast; };
  const std::string text = "NVLink multicast: ";
  if (std::none_of(records.begin(), records.end(), used)) {
    return text + "off for all libraries; with it: not measured";
  }
  if (std::all_of(records.begin(), records.end(), used)) return text + "on";
  std::string each;
  for (const Record* record : records) {
    each += fmt::format("{}{} for {}", each.empty() ? "" : ", ", used(record) ? "on" : "off",
                        record->environment.torch.empty() ? "tutti" : "torch");
  }
  return text + each;
}

}  // namespace tutti::cli
