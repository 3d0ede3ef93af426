#include "group/recorder/comparison.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

namespace tutti {
namespace {

using RecordWords = std::array<std::uint64_t, sizeof(PageRecord) / sizeof(std::uint64_t)>;

// The pages are mapped for writing; a load changes nothing.
template <class T>
T load(const T& word) {
  return std::atomic_ref(const_cast<T&>(word)).load(std::memory_order_acquire);
}

const PageHeader& header_of(const std::byte* page) {
  return *reinterpret_cast<const PageHeader*>(page);
}

// Nothing while it is written.
std::optional<PageRecord> record_in(const std::byte* page, std::uint64_t sequence) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(
      page + sizeof(PageHeader) + sequence % kPageRecords * sizeof(PageRecord));
  RecordWords copy;
  for (std::size_t k = 0; k < copy.size(); ++k) copy[k] = load(words[k]);
  const auto record = std::bit_cast<PageRecord>(copy);
  const bool is_whole = record.version % 2 == 0 && load(words[0]) == record.version;
  return is_whole ? std::optional(record) : std::nullopt;
}

// Numbers grow with sequence numbers, and not faster.
std::optional<PageRecord> numbered(const std::byte* page, std::uint64_t number) {
  const std::uint64_t latest = load(header_of(page).numbered);
  const auto last = record_in(page, latest);
  if (latest == 0 || !last || last->sequence != latest || last->number < number) {
    return std::nullopt;
  }
  for (std::uint64_t ahead = last->number - number;
       ahead < std::min<std::uint64_t>(latest, kPageRecords); ++ahead) {
    const auto record = record_in(page, latest - ahead);
    if (!record || record->sequence > latest) return std::nullopt;  // overwritten meanwhile
    if (record->sequence != latest - ahead || record->number == 0) continue;
    if (record->number > number) continue;
    return record->number == number ? record : std::nullopt;
  }
  return std::nullopt;
}

std::uint64_t latest_number(const std::byte* page) {
  const std::uint64_t sequence = load(header_of(page).numbered);
  if (sequence == 0) return 0;
  const auto record = record_in(page, sequence);
  return record && record->sequence == sequence ? record->number : 0;
}

std::optional<RecordedOperation> operation_in(const PageRecord& record) {
  return parse_record(record, record.sequence % kPageRecords);
}

}  // namespace

std::optional<DifferentOperations> PageComparison::look() {
  const std::uint64_t number = std::min(latest_number(own_), latest_number(other_));
  if (number <= compared_) return std::nullopt;
  const auto own = numbered(own_, number), other = numbered(other_, number);
  if (!own || !other) return std::nullopt;
  if (own->chain != other->chain) return difference_until(number);
  compared_ = number;
  return std::nullopt;
}

// The oldest one that both pages still have.
std::optional<DifferentOperations> PageComparison::difference_until(std::uint64_t number) const {
  std::optional<PageRecord> first_own, first_other, last_own;
  for (; number > compared_; --number) {
    const auto own = numbered(own_, number), other = numbered(other_, number);
    if (!own || !other) break;
    last_own = own;
    if (own->signature == other->signature) continue;
    first_own = own;
    first_other = other;
  }
  const auto& shown = first_own ? first_own : last_own;
  const auto own = shown ? operation_in(*shown) : std::nullopt;
  if (!own) return std::nullopt;  // at the next look
  return DifferentOperations{*own, first_other ? operation_in(*first_other) : std::nullopt};
}

}  // namespace tutti
