// The table that `tutti tune` writes, beside what others have put there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "planning/table.hpp"

namespace tutti::cli {

// Nothing where there is no such file. An error where it is no table that could be used.
Result<TuningEntries> read_table(const std::string& file);

// Whether `like` was measured: its machine, ranks and driver, at its max_bytes.
bool is_measured(std::span<const TuningEntry> entries, const TuningEntry& like);

// Where the range that is measured by a message of `bytes` begins: behind the largest smaller one
// of `sizes`. The first begins at 0 if it is so small that time does not depend on its size, else
// it reaches down to half of it.
std::size_t range_begin(std::size_t bytes, std::span<const std::size_t> sizes);

// Takes the place of what was measured at its max_bytes. Of other entries for its machine and
// ranks, smaller ones keep their range, and larger ones begin behind it.
void put_entry(std::vector<TuningEntry>& entries, TuningEntry entry);

// Whether the size of `like` was measured: its machine, ranks, elements and driver.
bool is_measured(std::span<const AllGatherMatmulEntry> entries, const AllGatherMatmulEntry& like);
// Takes the place of what was measured at its size.
void put_entry(std::vector<AllGatherMatmulEntry>& entries, AllGatherMatmulEntry entry);

// The same in the file, which is read again before, and written whole or not at all.
Status add_to_table(const std::string& file, const TuningEntry& entry);
Status add_to_table(const std::string& file, const AllGatherMatmulEntry& entry);

}  // namespace tutti::cli
