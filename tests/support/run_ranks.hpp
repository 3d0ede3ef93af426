// The ranks of a group, as threads of this process or as processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "support/children.hpp"
#include "support/patience.hpp"
#include "tutti/status.hpp"

namespace tutti::test {

enum class RankKind : std::uint8_t { kThreads, kProcesses };
std::string_view to_string(RankKind kind);  // "threads", "processes"
inline void PrintTo(RankKind kind, std::ostream* out) { *out << to_string(kind); }  // GoogleTest's

// Throws where something is wrong.
using RankFunction = std::function<void(int rank)>;

// Runs `function` once per rank, at the same time, and returns what went wrong, one line per rank:
// "rank 2: ...", "rank 3: was killed by signal 9 (Killed)". Empty: nothing did. After `limit` a
// process is killed and reported; a thread cannot be stopped, so this process aborts with the ranks
// that are late.
std::string run_ranks(RankKind kind, int ranks, const RankFunction& function,
                      std::chrono::seconds limit = 2 * kPatience);

// Runs `function` in a process of its own, for what it may break. Empty if nothing did.
std::string run_isolated(const std::function<void()>& function, std::chrono::seconds limit);

// Whether this machine has so many, asked in a process of its own: one that has used CUDA cannot
// fork ranks any more.
bool has_gpus(int ranks);

}  // namespace tutti::test
