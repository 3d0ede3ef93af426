// The table of the README.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/try.hpp"
#include "base/units.hpp"
#include "bench/printers/comparison.hpp"
#include "report/pages.hpp"
#include "report/sections.hpp"

namespace tutti::cli {
namespace {

// The group a reader asks for first: most ranks, then graph before eager.
const Group* headline_group(const std::vector<Group>& groups) {
  const auto better = [](const Group& a, const Group& b) {
    return std::pair(a.first().ranks, a.first().mode == "graph") <
           std::pair(b.first().ranks, b.first().mode == "graph");
  };
  const auto best = std::max_element(groups.begin(), groups.end(), better);
  return best == groups.end() ? nullptr : &*best;
}

// Of the sizes that can be compared those next to these, each once.
std::vector<Compared> headline_sizes(const std::vector<Compared>& all) {
  constexpr std::array<std::size_t, 6> kSizes = {1 * KiB, 16 * KiB, 128 * KiB,
                                                 1 * MiB, 16 * MiB, 256 * MiB};
  std::vector<Compared> able, sizes;
  std::copy_if(all.begin(), all.end(), std::back_inserter(able), [](const Compared& size) {
    return size.bytes > 0 && size.complete && size.speed_up().has_value();
  });
  if (able.empty()) return sizes;
  for (const std::size_t wanted : kSizes) {
    const auto distance = [wanted](const Compared& size) {
      return std::abs(std::log2(static_cast<double>(size.bytes) / static_cast<double>(wanted)));
    };
    const auto nearest = std::min_element(
        able.begin(), able.end(),
        [&](const Compared& a, const Compared& b) { return distance(a) < distance(b); });
    if (sizes.empty() || sizes.back().bytes != nearest->bytes) sizes.push_back(*nearest);
  }
  return sizes;
}

// Those that were measured at any of these sizes.
std::vector<Library> libraries_of(const std::vector<Compared>& sizes) {
  std::vector<Library> found;
  std::copy_if(kOtherLibraries.begin(), kOtherLibraries.end(), std::back_inserter(found),
               [&](Library library) {
                 return std::any_of(sizes.begin(), sizes.end(), [&](const Compared& size) {
                   return size.of(library) != nullptr;
                 });
               });
  return found;
}

std::string line_of(const Compared& size, const std::vector<Library>& libraries) {
  std::string text = fmt::format("| {} | {} | {} |", format_bytes(size.bytes),
                                 time_text(size.chosen->time_us.p50), size.chosen->algorithm);
  for (const Library library : libraries) {
    const Row* row = size.of(library);
    text += fmt::format(" {} |", row == nullptr ? "n/a" : time_text(row->time_us.p50));
  }
  return text + fmt::format(" {:.2f}x |\n", *size.speed_up());
}

std::string sources_of(const Section& section, const Group& group) {
  std::string text;
  for (const ResultFile* file : section.files_of(group)) {
    text += fmt::format("{} [{}]({}): {}.\n", text.empty() ? "\nFrom" : "And", file->path,
                        file->path, provenance(*file));
  }
  return text +
         "\nNCCL is the faster of `nccl` and `torch_nccl`, NCCL symmetric the faster of "
         "`nccl_window` and `nccl_copy_engine`.\n";
}

}  // namespace

Result<std::string> render_headline(const std::vector<ResultFile>& files, const std::string& path) {
  const auto lacks = [&path](std::string_view what) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} has no {} for the headline", path, what));
  };
  const std::vector<Section> sections = sections_of(files);
  const auto section = std::find_if(sections.begin(), sections.end(),
                                    [&](const Section& each) { return each.file->path == path; });
  if (section == sections.end()) return lacks("results of its own");
  const std::vector<Group> groups = groups_of(section->rows);
  const Group* group = headline_group(groups);
  if (group == nullptr || group->first().overlap) return lacks("results of a collective");
  const auto sizes = headline_sizes(compare(*group, section->rows_beside(*group)));
  if (sizes.empty()) return lacks("choice of auto next to another library");
  const std::string multicast = section->multicast(*group);
  std::string text = fmt::format("{}{}{}.\n\n| bytes | tutti us | algorithm |", title_of(*group),
                                 multicast.empty() ? "" : ". ", multicast);
  const std::vector<Library> libraries = libraries_of(sizes);
  std::string rule = "|---:|---:|---|---:|";
  for (const Library library : libraries) {
    text += fmt::format(" {} us |", to_string(library));
    rule += "---:|";
  }
  text += " speed-up over the best other |\n" + rule + '\n';
  for (const Compared& size : sizes) text += line_of(size, libraries);
  return text + sources_of(*section, *group);
}

Result<std::optional<Headline>> find_headline(const std::string& readme) {
  const std::string begin_marker = "<!-- headline from ", end_marker = "<!-- end of headline -->";
  const std::size_t begin = readme.find(begin_marker), end = readme.find(end_marker);
  if (begin == std::string::npos && end == std::string::npos) return std::optional<Headline>();
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
  return std::optional(Headline{readme.substr(name, colon - name), text, end});
}

}  // namespace tutti::cli
