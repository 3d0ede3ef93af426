// Finds out by the pages of two ranks whether they run the same operations.
//
// What is compared are eager operations of all ranks that have a signature: those that peers run in
// each other's memory. Messages, captured operations and those of other executors have no number:
// ranks do not count them alike, or their executor compares them. Equal numbers stand for the same
// operation on all ranks, whatever their sequence numbers are. A chain of hashes stands for all
// operations up to a number, so one comparison also finds a difference that was overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "group/recorder/snapshot.hpp"

namespace tutti {

// The first operation that differs, as each rank has noted it.
struct DifferentOperations {
  RecordedOperation own;
  // Nothing where no page has it any more: then ranks differed before `own`.
  std::optional<RecordedOperation> other;
};

class PageComparison {
 public:
  // Both pages outlive it. Their writers may go on.
  PageComparison(const std::byte* own, const std::byte* other) : own_(own), other_(other) {}

  // Compares the latest operation that both ranks have begun. Nothing: it is the same, or one of
  // the pages has no room for it any more. From one thread at a time.
  std::optional<DifferentOperations> look();

 private:
  std::optional<DifferentOperations> difference_until(std::uint64_t number) const;

  const std::byte* own_;
  const std::byte* other_;
  std::uint64_t compared_ = 0;  // the number at the last look
};

}  // namespace tutti
