// The tables that are part of the library: tables/*.json, and those of others, compiled in.
#pragma once

#include <span>
#include <string_view>

namespace tutti {

struct ShippedTable {
  std::string_view name;  // "h200.json"
  std::string_view json;
  bool published = false;  // in tables/published/
};

std::span<const ShippedTable> shipped_tables();

}  // namespace tutti
