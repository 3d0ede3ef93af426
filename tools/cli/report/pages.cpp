#include "report/pages.hpp"

#include <fmt/core.h>

#include <filesystem>

#include "bench/printers/printers.hpp"
#include "report/plot.hpp"
#include "report/sections.hpp"

namespace tutti::cli {
namespace {

std::string introduction(const Section& section) {
  std::string text;
  for (const ResultFile* file : section.all_files()) {
    text += fmt::format("\n{}{}.\nFile: `{}`. Command: `{}`.\n",
                        file == section.file ? "" : "Next to it: ", provenance(*file), file->path,
                        file->record.environment.command);
  }
  return text;
}

// The table, and which of its columns are of other files.
std::string render_group(const Section& section, const Group& group) {
  std::string text = "\n" + to_markdown(section.table(group));
  for (const ResultFile* file : section.files_of(group)) {
    if (file == section.file) continue;
    std::vector<const Row*> rows;
    for (const Guest* guest : section.beside(group)) {
      if (guest->file == file) rows.push_back(&guest->row);
    }
    std::string names;
    for (const Series& series : series_of(rows)) {
      names += (names.empty() ? "" : ", ") + series.title();
    }
    text += fmt::format("\nFrom `{}`: {}.\n", file->path, names);
  }
  return text;
}

std::string render_section(const Section& section, const std::string& plots,
                           std::vector<Page>& pages) {
  const std::string folder = std::filesystem::path(plots).filename().string();
  const std::vector<Group> groups = groups_of(section.rows);
  std::string text = fmt::format("\n## {} on {}\n", section.file->what, section.file->machine) +
                     introduction(section);
  for (const Group* group : drawn_groups(groups)) {
    for (const Plot& plot : plots_of(section, *group)) {
      pages.push_back({fmt::format("{}/{}", plots, plot.name), plot.svg});
      text += fmt::format("\n![{}]({}/{})\n", plot.text, folder, plot.name);
    }
  }
  for (const Group& group : groups) text += render_group(section, group);
  return text;
}

}  // namespace

std::string provenance(const ResultFile& file) {
  const Environment& e = file.record.environment;
  std::string text = e.link.empty() ? "" : "Computed by `tutti model`, not measured, ";
  if (e.gpus > 0) {
    text += fmt::format("{} x {}, driver {}, CUDA {}, NCCL {}, ", e.gpus, e.gpu, e.driver, e.cuda,
                        e.nccl.empty() ? "not found" : e.nccl);
  }
  text += e.torch.empty() ? "tutti " + file.record.tutti : "torch " + e.torch;
  if (!e.vllm.empty()) text += fmt::format(", vLLM {}, tutti {}", e.vllm, file.record.tutti);
  text += ", " + e.date;
  if (e.calibration.kernel_gap_us > 0) {
    text += fmt::format(
        "; {:.2f} us between empty kernels in a graph, {:.2f} us one way between "
        "two GPUs",
        e.calibration.kernel_gap_us, e.calibration.hop_us);
  }
  return text;
}

std::vector<Page> render_docs(const std::vector<ResultFile>& files, const std::string& docs) {
  std::vector<Page> pages(1);
  std::string text = fmt::format(
      "# Benchmarks\n\nRendered by `tutti report` from the files under `results/`, which hold what "
      "`tutti bench` and\nthe scripts of `tools/peers/` wrote. {} How times are taken: "
      "[performance_notes.md](internals/performance_notes.md).\n",
      how_to_read());
  const std::string plots = std::filesystem::path(docs).replace_extension().string();
  for (const Section& section : sections_of(files)) text += render_section(section, plots, pages);
  pages.front() = {docs, std::move(text)};
  return pages;
}

}  // namespace tutti::cli
