// Runs cells of one number and kind of ranks in one communicator, in a process of its own.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "conformance/cell.hpp"

namespace tutti::test {

enum class Verdict : std::uint8_t { kPassed, kFailed, kSkipped };

struct CellOutcome {
  Verdict verdict = Verdict::kFailed;
  std::string text;
};

// Element k of the answer belongs to element k of `cells`. A cell after which the group cannot go
// on has failed; the others then run in a new group.
std::vector<CellOutcome> run_session(Backend backend, const std::vector<Cell>& cells,
                                     std::chrono::seconds silence);

}  // namespace tutti::test
