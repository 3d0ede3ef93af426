// What is drawn of a section of the page.
#pragma once

#include <string>
#include <vector>

#include "report/sections.hpp"

namespace tutti::cli {

struct Plot {
  std::string name;  // of its file: "h200x4_all_reduce_4_speedup.svg"
  std::string text;  // what it shows, for those who do not see it
  std::string svg;
};

// Of the group: the speed-up of each algorithm over the best other library, if another library was
// measured, and the bus bandwidth of large messages; or bars of a matmul and what an all_gather
// adds. None where there are fewer than two sizes.
std::vector<Plot> plots_of(const Section& section, const Group& group);

// Those of the section that are drawn: of each rank count one, of graphs before eager calls.
std::vector<const Group*> drawn_groups(const std::vector<Group>& groups);

}  // namespace tutti::cli
