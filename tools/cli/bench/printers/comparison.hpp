// What `auto` takes next to what other libraries take for the same message.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/printers/printers.hpp"

namespace tutti::cli {

// Who moves the bytes, whoever calls it: `torch_nccl` is NCCL.
enum class Library : std::uint8_t { kNccl, kNcclSymmetric, kTorch, kVllm, kTutti };
inline constexpr std::array kOtherLibraries = {Library::kNccl, Library::kNcclSymmetric,
                                               Library::kTorch, Library::kVllm};
Library library_of(std::string_view algorithm);
std::string_view to_string(Library library);  // "NCCL symmetric"

// One message size of a table.
struct Compared {
  std::size_t bytes = 0;
  const Row* chosen = nullptr;                                // null: was not measured
  std::array<const Row*, kOtherLibraries.size()> other = {};  // each library's fastest, or null
  // Whether every other library was measured here that was measured with smaller and with larger
  // messages: a curve through sizes without one of them would jump.
  bool complete = true;

  const Row* of(Library library) const { return other[static_cast<std::size_t>(library)]; }
  const Row* best_other() const;           // null: none
  std::optional<double> speed_up() const;  // of `chosen` over best_other()
};

// One for each size, in order. `beside`: rows of the same kind from elsewhere.
std::vector<Compared> compare(const Group& group, const std::vector<const Row*>& beside = {});

}  // namespace tutti::cli
