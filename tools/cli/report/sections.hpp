// Which rows stand in which section of the page.
#pragma once

#include <string>
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

  // Of the guests, those that belong into the table of `group`; their rows; and all files that the
  // table shows, the section's own first.
  std::vector<const Guest*> beside(const Group& group) const;
  std::vector<const Row*> rows_beside(const Group& group) const;
  std::vector<const ResultFile*> files_of(const Group& group) const;
  std::vector<const ResultFile*> all_files() const;  // the same, of all its tables
  // multicast_text() of these files.
  std::string multicast(const Group& group) const;
  Table table(const Group& group) const;
};

// What the names of libraries and the times of all sections mean.
std::string how_to_read();

// One for each file that has rows left. The file that is called as a collective shows, in columns
// of their own, what other files of its machine measured of that collective in the same way, under
// names of algorithms that it does not have. `files` must outlive what is returned.
std::vector<Section> sections_of(const std::vector<ResultFile>& files);

}  // namespace tutti::cli
