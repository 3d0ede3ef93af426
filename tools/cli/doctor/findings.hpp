// What the facts mean: each a line, and what to do where something is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts.hpp"

namespace tutti::cli {

enum class Severity : std::uint8_t {
  kOk,
  kWarning,  // it works, but less well than it could
  kFailure,  // something that should work here does not
};
std::string_view to_string(Severity severity);  // "ok", "warn", "fail"

inline constexpr std::string_view kGpuGroup = "GPUs";

struct Finding {
  Severity severity = Severity::kOk;
  std::string subject;  // "peer access"
  std::string text;
  std::string fix;              // one line; never empty but for kOk
  std::string_view group = {};  // "machine", "GPUs", "libraries" or "limits"
};

std::vector<Finding> judge(const Facts& facts);  // by group

// Lines for people, group by group, with the matrices of copies after those of GPUs; in colours if
// `colour`.
std::string print_findings(const std::vector<Finding>& findings, const Facts& facts, bool colour);
std::string print_findings_json(const std::vector<Finding>& findings, const Facts& facts);

}  // namespace tutti::cli
