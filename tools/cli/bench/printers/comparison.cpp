#include "bench/printers/comparison.hpp"

#include <algorithm>

namespace tutti::cli {
namespace {

// Out of place, or in place if the algorithm was measured in place alone.
std::vector<const Row*> rows_of_columns(const std::vector<const Row*>& all) {
  const std::vector<Series> columns = series_of(all);
  std::vector<const Row*> rows;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rows), [&](const Row* row) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const Series& column) { return column.shows(*row); });
  });
  return rows;
}

Compared compare_rows(std::size_t bytes, const std::vector<const Row*>& rows) {
  Compared size{.bytes = bytes};
  for (const Row* row : rows) {
    if (row->bytes != bytes) continue;
    if (row->chosen && size.chosen == nullptr) size.chosen = row;
    const Library library = library_of(row->algorithm);
    if (library == Library::kTutti || row->time_us.p50 <= 0) continue;
    const Row*& best = size.other[static_cast<std::size_t>(library)];
    if (best == nullptr || row->time_us.p50 < best->time_us.p50) best = row;
  }
  return size;
}

void mark_incomplete(std::vector<Compared>& sizes) {
  for (const Library library : kOtherLibraries) {
    const auto has = [&](const Compared& size) { return size.of(library) != nullptr; };
    const auto first = std::find_if(sizes.begin(), sizes.end(), has);
    const auto last = std::find_if(sizes.rbegin(), sizes.rend(), has).base();
    if (first == sizes.end()) continue;
    for (auto size = first; size != last; ++size) size->complete = size->complete && has(*size);
  }
}

}  // namespace

Library library_of(std::string_view algorithm) {
  if (algorithm == "nccl" || algorithm == "torch_nccl") return Library::kNccl;
  if (algorithm.starts_with("nccl_")) return Library::kNcclSymmetric;
  if (algorithm.starts_with("vllm_")) return Library::kVllm;
  return algorithm.starts_with("torch_") ? Library::kTorch : Library::kTutti;
}

std::string_view to_string(Library library) {
  switch (library) {
    case Library::kNccl:
      return "NCCL";
    case Library::kNcclSymmetric:
      return "NCCL symmetric";
    case Library::kTorch:
      return "torch symm_mem";
    case Library::kVllm:
      return "vLLM";
    case Library::kTutti:
      return "tutti";
  }
  return "?";
}

const Row* Compared::best_other() const {
  const Row* best = nullptr;
  for (const Row* row : other) {
    if (row != nullptr && (best == nullptr || row->time_us.p50 < best->time_us.p50)) best = row;
  }
  return best;
}

std::optional<double> Compared::speed_up() const {
  const Row* best = best_other();
  if (best == nullptr || chosen == nullptr || chosen->time_us.p50 <= 0) return std::nullopt;
  return best->time_us.p50 / chosen->time_us.p50;
}

std::vector<Compared> compare(const Group& group, const std::vector<const Row*>& beside) {
  Group all = group;
  all.rows.insert(all.rows.end(), beside.begin(), beside.end());
  const std::vector<const Row*> rows = rows_of_columns(all.rows);
  std::vector<Compared> sizes;
  for (const SizeView& size : sizes_of(all)) sizes.push_back(compare_rows(size.bytes, rows));
  mark_incomplete(sizes);
  return sizes;
}

}  // namespace tutti::cli
