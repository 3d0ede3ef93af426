// What the `tutti` command ends with.
#pragma once

namespace tutti::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;  // it ran, and something is wrong: a result, a rank, a machine
inline constexpr int kUsage = 2;    // what was asked cannot be right; nothing was run

}  // namespace tutti::cli
