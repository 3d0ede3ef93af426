// The tables that are part of the library: tables/*.json, compiled in.
#pragma once

#include <span>
#include <string_view>

namespace tutti {

struct ShippedTable {
  std::string_view name;  // "h200.json"
  std::string_view json;
};

std::span<const ShippedTable> shipped_tables();

}  // namespace tutti
