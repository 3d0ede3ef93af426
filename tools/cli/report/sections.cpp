#include "report/sections.hpp"

#include <algorithm>

#include "bench/matmul/print.hpp"
#include "bench/overlap/print.hpp"

namespace tutti::cli {
namespace {

// Whether `host` has a table for `row`, of file `from`, and no column of that name in it.
bool takes(const Section& host, const ResultFile& from, const Row& row) {
  if (host.file == &from || host.file->machine != from.machine) return false;
  const std::string& what = host.file->what;  // all_reduce, or all_reduce_registered
  if (what != row.collective && what != row.collective + '_' + row.buffers) return false;
  const auto of_table = [&](const Row& own) { return same_group(own, row); };
  const auto same_column = [&](const Row& own) {
    return of_table(own) && own.algorithm == row.algorithm;
  };
  const auto others_column = [&](const Guest& guest) {
    return guest.file != &from && same_column(guest.row);
  };
  return std::any_of(host.rows.begin(), host.rows.end(), of_table) &&
         std::none_of(host.rows.begin(), host.rows.end(), same_column) &&
         std::none_of(host.guests.begin(), host.guests.end(), others_column);
}

void place_guest(std::vector<Section>& sections, Section& home, const Row& row) {
  const auto host = std::find_if(sections.begin(), sections.end(), [&](const Section& section) {
    return takes(section, *home.file, row);
  });
  if (host == sections.end()) {
    home.rows.push_back(row);
    return;
  }
  host->guests.push_back({.file = home.file, .row = row});
  host->guests.back().row.chosen = false;
}

void add_once(const ResultFile* file, std::vector<const ResultFile*>& files) {
  if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
}

}  // namespace

std::vector<const Guest*> Section::beside(const Group& group) const {
  std::vector<const Guest*> found;
  for (const Guest& guest : guests) {
    if (same_group(guest.row, group.first())) found.push_back(&guest);
  }
  return found;
}

std::vector<const Row*> Section::rows_beside(const Group& group) const {
  std::vector<const Row*> found;
  for (const Guest* guest : beside(group)) found.push_back(&guest->row);
  return found;
}

std::vector<const ResultFile*> Section::files_of(const Group& group) const {
  std::vector<const ResultFile*> files = {file};
  for (const Guest* guest : beside(group)) add_once(guest->file, files);
  return files;
}

std::vector<const ResultFile*> Section::all_files() const {
  std::vector<const ResultFile*> files = {file};
  for (const Guest& guest : guests) add_once(guest.file, files);
  return files;
}

std::string Section::multicast(const Group& group) const {
  std::vector<const Record*> records;
  for (const ResultFile* each : files_of(group)) records.push_back(&each->record);
  return multicast_text(group, records);
}

std::string how_to_read() {
  return "Times are those of the slowest rank, p50, in microseconds; 1 GB = 1e9 bytes. NCCL is the "
         "faster of nccl and torch_nccl, NCCL symmetric the faster of nccl_window and "
         "nccl_copy_engine, torch symm_mem the faster of its algorithms, vLLM its custom "
         "all-reduce. The best other library is the fastest of these at a size.";
}

Table Section::table(const Group& group) const {
  if (group.first().matmul) return matmul_table_of(group);
  return group.first().overlap ? overlap_table_of(group, multicast(group))
                               : table_of(group, rows_beside(group), multicast(group));
}

std::vector<Section> sections_of(const std::vector<ResultFile>& files) {
  std::vector<Section> sections;
  sections.reserve(files.size());
  for (const ResultFile& file : files) sections.push_back({.file = &file, .rows = {}});
  const auto is_host = [](const Section& section, const Row& row) {
    return section.file->what == row.collective;
  };
  for (Section& section : sections) {  // before all guests, which depend on what is here
    const std::vector<Row>& rows = section.file->record.rows;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(section.rows),
                 [&](const Row& row) { return is_host(section, row); });
  }
  for (Section& section : sections) {
    for (const Row& row : section.file->record.rows) {
      if (!is_host(section, row)) place_guest(sections, section, row);
    }
  }
  std::erase_if(sections, [](const Section& section) {
    return section.rows.empty() && !section.file->record.rows.empty();
  });
  return sections;
}

}  // namespace tutti::cli
