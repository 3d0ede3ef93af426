#include "memory/pool.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tutti {
namespace {

std::vector<FreeBlock> free_on_every_rank(std::span<const std::vector<FreeBlock>> free_blocks) {
  if (free_blocks.empty()) return {};
  std::vector<FreeBlock> common = free_blocks.front();
  for (const auto& blocks : free_blocks.subspan(1)) {
    std::vector<FreeBlock> both;
    std::set_intersection(common.begin(), common.end(), blocks.begin(), blocks.end(),
                          std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

}  // namespace

PoolDecision decide_pool(std::span<const std::vector<FreeBlock>> free_blocks, std::uint64_t bytes) {
  std::vector<FreeBlock> common = free_on_every_rank(free_blocks);
  PoolDecision decision;
  const auto fitting = std::find_if(common.begin(), common.end(),
                                    [bytes](const FreeBlock& b) { return b.bytes == bytes; });
  if (fitting != common.end()) {
    decision.reuse = fitting->number;
    common.erase(fitting);
  }
  std::uint64_t kept_bytes = 0;
  for (const FreeBlock& block : common) kept_bytes += block.bytes;
  std::size_t kept_blocks = common.size();
  for (const FreeBlock& block : common) {
    if (kept_blocks > kMaxPooledBlocks || kept_bytes > kMaxPooledBytes) {
      decision.drop.push_back(block.number);
      kept_bytes -= block.bytes;
      --kept_blocks;
    } else {
      decision.keep.push_back(block.number);
    }
  }
  return decision;
}

Pool::Room Pool::room_for(FreeBlock block) {
  Entries one;
  one.emplace(block.number, Entry{block.bytes, {}});
  return one.extract(one.begin());
}

void Pool::put(Room room, Parts parts) {
  bytes_ += room.mapped().bytes;
  room.mapped().parts = std::move(parts);
  entries_.insert(std::move(room));
}

Parts Pool::take(std::uint32_t number) {
  auto node = entries_.extract(number);
  bytes_ -= node.mapped().bytes;
  return std::move(node.mapped().parts);
}

std::vector<Parts> Pool::take_all(std::span<const std::uint32_t> numbers) {
  std::vector<Parts> taken;
  for (const std::uint32_t number : numbers) taken.push_back(take(number));
  return taken;
}

std::vector<FreeBlock> Pool::blocks() const {
  std::vector<FreeBlock> blocks;
  for (const auto& [number, entry] : entries_) blocks.push_back({number, entry.bytes});
  return blocks;
}

}  // namespace tutti
