// What the facts mean: each a line, and where something is wrong what mends it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/facts.hpp"

namespace tutti::cli {

enum class Severity : std::uint8_t {
  kGood,
  kNote,    // worth knowing; nothing is wrong
  kBroken,  // something that should work here does not: a red line
};
std::string_view to_string(Severity severity);  // "ok", "note", "BROKEN"

struct Finding {
  Severity severity = Severity::kGood;
  std::string subject;  // "peer access"
  std::string text;
  std::string fix;  // never empty for kBroken
};

std::vector<Finding> judge(const Facts& facts);

// Lines for people, red where broken if `colour`.
std::string print_findings(const std::vector<Finding>& findings, bool colour);
std::string print_findings_json(const std::vector<Finding>& findings, const Facts& facts);

}  // namespace tutti::cli
