// Ranks as threads of a test.
#pragma once

#include <thread>
#include <vector>

namespace tutti::test {

// Runs body(rank) for every rank at the same time, each on a thread of its own, and waits for all.
template <class Body>
void on_all_ranks(int size, const Body& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

}  // namespace tutti::test
