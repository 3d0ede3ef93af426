// What each rank's latest call of a pipeline is, in memory that all ranks read: so that a rank that
// waits finds out that another one runs something else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "memory/symmetric_heap.hpp"

namespace tutti {

// Ranks count calls alike. A notice is overwritten by the next call but one: a rank makes that only
// after all ranks have made the next one, since each call gathers from all.
class PipelineNotices {
 public:
  static constexpr std::size_t kMostText = 504;  // bytes; the rest is not compared
  static constexpr std::size_t kBytes = 2 * (sizeof(std::uint64_t) + kMostText);

  // At least kBytes on each rank, all 0.
  PipelineNotices(std::shared_ptr<SymmetricSegment> memory, int rank)
      : memory_(std::move(memory)), rank_(rank) {}

  // This rank begins its next call.
  void tell(std::string_view text);
  // A rank whose call of the same number is another one, or -1; and what that is.
  std::pair<int, std::string> find_other(std::string_view text) const;

 private:
  // The call's number, then its text with zeros behind.
  static constexpr std::size_t kTextWords = kMostText / sizeof(std::uint64_t);
  std::uint64_t* notice_of(int rank) const;

  std::shared_ptr<SymmetricSegment> memory_;
  int rank_;
  std::uint64_t call_ = 0;
};

}  // namespace tutti
