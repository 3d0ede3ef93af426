// How long tests wait.
#pragma once

#include <chrono>

namespace tutti::test {

// For what must happen: enough on a machine that has twenty times as much to do as it can. Only a
// test that hangs waits so long.
inline constexpr std::chrono::seconds kPatience{300};

// A deadline that must not be what ends a wait: a test that waits for it is killed first.
inline constexpr std::chrono::hours kNever{2};

}  // namespace tutti::test
