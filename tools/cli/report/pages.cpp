#include "report/pages.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/units.hpp"
#include "bench/overlap/print.hpp"
#include "bench/printers/printers.hpp"
#include "report/sections.hpp"

namespace tutti::cli {
namespace {

std::string provenance(const ResultFile& file) {
  const Environment& e = file.record.environment;
  std::string text;
  if (e.gpus > 0) {
    text = fmt::format("{} x {}, driver {}, CUDA {}, NCCL {}, ", e.gpus, e.gpu, e.driver, e.cuda,
                       e.nccl.empty() ? "not found" : e.nccl);
  }
  text += e.torch.empty() ? fmt::format("tutti {}, {}", file.record.tutti, e.date)
                          : fmt::format("torch {}, {}", e.torch, e.date);
  if (e.calibration.kernel_gap_us > 0) {
    text += fmt::format(
        "; {:.2f} us between empty kernels in a graph, {:.2f} us one way between "
        "two GPUs",
        e.calibration.kernel_gap_us, e.calibration.hop_us);
  }
  return text;
}

bool has_curve(const Group& group) {
  if (group.first().overlap) return false;
  std::set<std::size_t> sizes;
  for (const Row* row : group.rows) sizes.insert(row->bytes);
  return sizes.size() > 1;
}

// The group a reader asks for first: most ranks, then graph before eager.
const Group* headline_group(const std::vector<Group>& groups) {
  const auto better = [](const Group& a, const Group& b) {
    return std::pair(a.first().ranks, a.first().mode == "graph") <
           std::pair(b.first().ranks, b.first().mode == "graph");
  };
  const auto best = std::max_element(groups.begin(), groups.end(), better);
  return best == groups.end() ? nullptr : &*best;
}

std::vector<const Row*> rows_of(const std::vector<const Guest*>& guests) {
  std::vector<const Row*> rows;
  rows.reserve(guests.size());
  for (const Guest* guest : guests) rows.push_back(&guest->row);
  return rows;
}

// In order of appearance.
std::vector<const ResultFile*> files_of(const std::vector<const Guest*>& guests) {
  std::vector<const ResultFile*> files;
  for (const Guest* guest : guests) {
    if (std::find(files.begin(), files.end(), guest->file) == files.end()) {
      files.push_back(guest->file);
    }
  }
  return files;
}

// A table, and under it where the columns come from that are of other files.
std::string render_table(const Section& section, const Group& group) {
  if (group.first().overlap) return print_overlap_markdown(group);
  const std::vector<const Guest*> guests = section.beside(group);
  std::string text = print_markdown(group, rows_of(guests));
  for (const ResultFile* file : files_of(guests)) {
    std::vector<const Row*> rows;
    for (const Guest* guest : guests) {
      if (guest->file == file) rows.push_back(&guest->row);
    }
    std::string names;
    for (const Series& series : series_of(rows)) {
      names += (names.empty() ? "" : ", ") + series.title();
    }
    text += fmt::format("\nFrom `{}`: {}. The best is that of `{}` alone.\n", file->path, names,
                        section.file->path);
  }
  return text;
}

std::string introduction(const Section& section) {
  const auto source = [](const ResultFile& file) {
    return fmt::format("{}.\nFile: `{}`. Command: `{}`.\n", provenance(file), file.path,
                       file.record.environment.command);
  };
  std::string text = source(*section.file);
  std::vector<const Guest*> guests;
  guests.reserve(section.guests.size());
  for (const Guest& guest : section.guests) guests.push_back(&guest);
  for (const ResultFile* file : files_of(guests)) text += "\nBeside it: " + source(*file);
  return text;
}

std::string render(const Section& section, const std::string& plots, std::vector<Page>& pages) {
  const std::string folder = std::filesystem::path(plots).filename().string();
  const std::string &what = section.file->what, &machine = section.file->machine;
  std::string text = fmt::format("\n## {} on {}\n\n{}", what, machine, introduction(section));
  const std::vector<Group> groups = groups_of(section.rows);
  if (const Group* group = headline_group(groups); group != nullptr && has_curve(*group)) {
    const std::string name = fmt::format("{}_{}.svg", machine, what);
    std::vector<const Row*> rows = group->rows;
    for (const Guest* guest : section.beside(*group)) rows.push_back(&guest->row);
    pages.push_back({fmt::format("{}/{}", plots, name), render_plot(rows, title_of(*group))});
    text += fmt::format("\n![{} on {}, time over size]({}/{})\n", what, machine, folder, name);
  }
  for (const Group& group : groups) text += "\n" + render_table(section, group);
  return text;
}

}  // namespace

std::vector<Page> render_docs(const std::vector<ResultFile>& files, const std::string& docs) {
  std::vector<Page> pages(1);
  std::string text =
      "# Benchmarks\n\nRendered by `tutti report` from the files under `results/`, which hold what "
      "`tutti bench` and\nthe scripts of `tools/peers/` wrote. Times are those of the slowest "
      "rank, p50, in microseconds; GB = 1e9 "
      "bytes. How they are taken: [performance_notes.md](internals/performance_notes.md).\n";
  if (files.empty()) text += "\nNothing has been measured yet.\n";
  const std::string plots = std::filesystem::path(docs).replace_extension().string();
  for (const Section& section : sections_of(files)) text += render(section, plots, pages);
  pages.front() = {docs, std::move(text)};
  return pages;
}

std::string render_headline(const ResultFile& file) {
  const std::vector<Group> groups = groups_of(file.record.rows);
  const Group* group = headline_group(groups);
  if (group == nullptr) return "";
  std::string text = fmt::format(
      "{}:\n\n| bytes | time us | algorithm | NCCL us | speed-up |\n"
      "|---:|---:|---|---:|---:|\n",
      title_of(*group));
  for (const SizeView& size : sizes_of(*group)) {
    const Row* row = chosen_or_fastest(size.out_of_place);
    if (row == nullptr) continue;
    const Row* nccl = row_of_algorithm(size.out_of_place, "nccl");
    const bool comparable = nccl != nullptr && row->time_us.p50 > 0;
    text += fmt::format(
        "| {} | {} | {} | {} | {} |\n", format_bytes(size.bytes), time_text(row->time_us.p50),
        row->algorithm, nccl == nullptr ? "n/a" : time_text(nccl->time_us.p50),
        comparable ? fmt::format("{:.2f}x", nccl->time_us.p50 / row->time_us.p50) : "n/a");
  }
  return text + fmt::format("\nFrom [{}]({}); {}.\n", file.path, file.path, provenance(file));
}

Result<std::string> replace_headline(const std::string& readme,
                                     const std::vector<ResultFile>& files) {
  const std::string begin_marker = "<!-- headline from ", end_marker = "<!-- end of headline -->";
  const std::size_t begin = readme.find(begin_marker), end = readme.find(end_marker);
  const std::size_t colon = readme.find(':', begin), text = readme.find("-->\n", begin) + 4;
  const bool once = begin == readme.rfind(begin_marker) && end == readme.rfind(end_marker);
  if (begin == std::string::npos || end == std::string::npos || !once || colon > text ||
      text > end) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("needs the lines '{}FILE: ... -->' and '{}', once each, around the "
                              "headline",
                              begin_marker, end_marker));
  }
  const std::size_t name = begin + begin_marker.size();
  const std::string path = readme.substr(name, colon - name);
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const ResultFile& each) { return each.path == path; });
  const std::string headline = file == files.end() ? "" : render_headline(*file);
  return readme.substr(0, text) + headline + readme.substr(end);
}

}  // namespace tutti::cli
