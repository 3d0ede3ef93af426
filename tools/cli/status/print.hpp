// Verdicts for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "status/verdict.hpp"

namespace tutti::cli {

// Each with the last `operations` of every rank.
std::string print_verdicts(const std::vector<Verdict>& verdicts, int operations);
// Schema tutti.status/1.
std::string print_verdicts_json(const std::vector<Verdict>& verdicts, int operations);

// The worst of them; healthy if there is none.
Health worst_of(const std::vector<Verdict>& verdicts);

}  // namespace tutti::cli
