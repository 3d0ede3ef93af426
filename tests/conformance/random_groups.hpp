// Random groups of calls of several communicators: every rank lists what the group has for it in an
// order of its own, on streams of its own.
#pragma once

#include <cstdint>

#include "support/group.hpp"

namespace tutti::test {

// Runs so many of them, and checks what each leaves. Collective; throws at the first that is wrong.
void run_random_groups(Rank& rank, int groups, std::uint64_t seed);

}  // namespace tutti::test
