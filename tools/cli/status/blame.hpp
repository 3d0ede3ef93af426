// Whose fault it is that a group waits or has failed.
#pragma once

#include <vector>

#include "status/verdict.hpp"

namespace tutti::cli {

// From those for whom others wait or whose end the others were told of (else those without a page,
// else those that are behind; but where all of these are without a page and others are stopped,
// from the stopped ones), as long as some are left: who is stopped or gone; who runs another
// operation than most; who waits for nobody; who is furthest behind; for whom most wait. More than
// one where they cannot be told apart, none where nobody stands out.
std::vector<Culprit> blame(const std::vector<Member>& members);

}  // namespace tutti::cli
