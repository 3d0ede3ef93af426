// Which rows stand in which section of the page.
#pragma once

#include <vector>

#include "bench/printers/printers.hpp"
#include "report/pages.hpp"

namespace tutti::cli {

// A row that a section shows beside its own; never one that auto takes.
struct Guest {
  const ResultFile* file;
  Row row;
};

struct Section {
  const ResultFile* file;
  std::vector<Row> rows;  // the file's, less those that are another's guests
  std::vector<Guest> guests = {};

  // Of those guests that belong into the table of `group`.
  std::vector<const Guest*> beside(const Group& group) const;
};

// One for each file that has rows left. The file that is called as a collective shows, in columns
// of their own, what other files of its machine measured of that collective in the same way, under
// names of algorithms that it does not have. `files` must outlive what is returned.
std::vector<Section> sections_of(const std::vector<ResultFile>& files);

}  // namespace tutti::cli
