#include "support/run_ranks.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/device.hpp"

namespace tutti::test {
namespace {

std::string report(const Children::Child& child) {
  std::string text = child.describe_end();
  if (!child.lines.empty()) text += ": " + child.lines.back();
  return text;
}

std::string run_processes(int ranks, const RankFunction& function, std::chrono::seconds limit) {
  Children children(ranks, [&](int rank, Wire&) { function(rank); });
  std::string failures;
  int rank = 0;
  for (const Children::Child& child : children.finish(limit)) {
    if (!child.succeeded()) failures += fmt::format("rank {}: {}\n", rank, report(child));
    ++rank;
  }
  return failures;
}

// Which threads have come back, and with what.
class Roll {
 public:
  explicit Roll(int ranks) : texts_(static_cast<std::size_t>(ranks)), back_(texts_.size()) {}

  void come_back(int rank, std::string text) {
    const std::lock_guard lock(mutex_);
    texts_[static_cast<std::size_t>(rank)] = std::move(text);
    back_[static_cast<std::size_t>(rank)] = true;
    ++count_;
    changed_.notify_all();
  }

  void wait_for_all(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit, [&] { return count_ == back_.size(); })) return;
    for (std::size_t r = 0; r < back_.size(); ++r) {
      if (!back_[r]) fmt::print(stderr, "rank {} has not come back after {} s\n", r, limit.count());
    }
    std::abort();
  }

  std::string failures() const {
    std::string all;
    for (std::size_t r = 0; r < texts_.size(); ++r) {
      if (!texts_[r].empty()) all += fmt::format("rank {}: {}\n", r, texts_[r]);
    }
    return all;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
  std::vector<bool> back_;
  std::size_t count_ = 0;
};

std::string run_threads(int ranks, const RankFunction& function, std::chrono::seconds limit) {
  Roll roll(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::string text;
      try {
        function(rank);
      } catch (const std::exception& failure) {
        text = failure.what();
      }
      roll.come_back(rank, std::move(text));
    });
  }
  roll.wait_for_all(limit);
  for (std::thread& thread : threads) thread.join();
  return roll.failures();
}

}  // namespace

std::string_view to_string(RankKind kind) {
  return kind == RankKind::kThreads ? "threads" : "processes";
}

std::string run_ranks(RankKind kind, int ranks, const RankFunction& function,
                      std::chrono::seconds limit) {
  return kind == RankKind::kThreads ? run_threads(ranks, function, limit)
                                    : run_processes(ranks, function, limit);
}

std::string run_isolated(const std::function<void()>& function, std::chrono::seconds limit) {
  Children child(1, [&](int, Wire&) { function(); });
  const Children::Child& end = child.finish(limit).front();
  return end.succeeded() ? std::string() : report(end);
}

bool has_gpus(int ranks) {
  return run_isolated([&] { require(why_no_gpus(ranks).empty(), ""); }, kPatience).empty();
}

}  // namespace tutti::test
