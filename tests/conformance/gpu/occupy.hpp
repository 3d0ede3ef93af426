// A kernel that keeps a GPU's multiprocessors from everybody else for a while.
#pragma once

#include <chrono>

#include "tutti/types.hpp"

namespace tutti::test {

// Fills every multiprocessor of the current device, in stream order. False where CUDA refuses.
bool occupy_all_multiprocessors(Stream stream, std::chrono::milliseconds time);
// Likewise, but one block on each, which has shared memory as a matmul has: half of the threads are
// left to others.
bool occupy_half_of_all_multiprocessors(Stream stream, std::chrono::milliseconds time);
// A single thread: nobody waits for it but what is behind it on this stream.
bool occupy_stream(Stream stream, std::chrono::milliseconds time);

}  // namespace tutti::test
