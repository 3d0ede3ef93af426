#include "group/pipeline_notices.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace tutti {

std::uint64_t* PipelineNotices::notice_of(int rank) const {
  auto* const words = reinterpret_cast<std::uint64_t*>(memory_->at[static_cast<std::size_t>(rank)]);
  return words + call_ % 2 * (1 + kTextWords);
}

// The text is complete when its number is there.
void PipelineNotices::tell(std::string_view text) {
  ++call_;
  std::array<std::uint64_t, kTextWords> words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), kMostText));
  std::uint64_t* const notice = notice_of(rank_);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::atomic_ref(notice[1 + i]).store(words[i], std::memory_order_relaxed);
  }
  std::atomic_ref(notice[0]).store(call_, std::memory_order_release);
}

std::pair<int, std::string> PipelineNotices::find_other(std::string_view text) const {
  for (std::size_t rank = 0; rank < memory_->at.size(); ++rank) {
    std::uint64_t* const notice = notice_of(static_cast<int>(rank));
    if (std::atomic_ref(notice[0]).load(std::memory_order_acquire) != call_) continue;
    std::array<std::uint64_t, kTextWords> words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = std::atomic_ref(notice[1 + i]).load(std::memory_order_relaxed);
    }
    std::string other(reinterpret_cast<const char*>(words.data()), kMostText);
    other.resize(std::min(other.find('\0'), kMostText));
    if (other != text.substr(0, kMostText)) return {static_cast<int>(rank), std::move(other)};
  }
  return {-1, {}};
}

}  // namespace tutti
