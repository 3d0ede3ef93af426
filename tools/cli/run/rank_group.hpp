// Ranks of a job, wherever they run, as who has started them sees them.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/status.hpp"

namespace tutti::cli {

// The two that a rank writes to.
inline constexpr std::size_t kStandardOutput = 0, kStandardError = 1, kRankStreams = 2;

class RankEvents {
 public:
  virtual ~RankEvents() = default;
  virtual void printed(int rank, std::size_t stream, std::string_view bytes) = 0;
  // How, as waitpid(2) tells. All that the rank printed has been told before.
  virtual void ended(int rank, int wait_status) = 0;
};

class RankGroup {
 public:
  virtual ~RankGroup() = default;
  virtual std::vector<int> running() const = 0;
  // What is ready when look() has something to do.
  virtual void add_descriptors(std::vector<pollfd>& descriptors) const = 0;
  // Tells what has happened; never blocks. A failure is not a rank's, but of what starts or reaches
  // ranks; each is returned once, and the ranks that are lost with it no longer count as running.
  virtual Status look(RankEvents& events) = 0;
  virtual void signal(int number) = 0;  // to all that run, and to what they have started
  // " on b": where a rank runs, if that has to be said.
  virtual std::string place_of(int rank) const = 0;
};

}  // namespace tutti::cli
