// Entries of all_gather_matmul in a tuning table, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "planning/all_gather_matmul.hpp"

namespace tutti {

// Whether `json` says that it is one.
bool is_all_gather_matmul_entry(const nlohmann::ordered_json& json);
// kInvalidArgument names the field.
Result<AllGatherMatmulEntry> parse_all_gather_matmul_entry(const nlohmann::ordered_json& json);
nlohmann::ordered_json to_json_value(const AllGatherMatmulEntry& entry);

}  // namespace tutti
