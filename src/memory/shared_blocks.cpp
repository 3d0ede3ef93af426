#include "memory/shared_blocks.hpp"

#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti {
namespace {
constexpr std::size_t kPieceUnit = 256;
}

SharedBlocks& SharedBlocks::process() {
  static SharedBlocks& blocks = *new SharedBlocks;  // for threads that end after main()
  return blocks;
}

Result<SharedBlocks::Piece> SharedBlocks::take(
    const Place& place, std::size_t bytes, std::size_t block_bytes,
    const std::function<Result<MappingRegistry::Handle>()>& make) {
  bytes = round_up(bytes, kPieceUnit);
  {
    const std::lock_guard lock(mutex_);
    Block& block = latest_[place];
    if (auto mapping = block.mapping.lock(); mapping != nullptr) {
      if (bytes <= block_bytes - block.used) {
        const std::size_t offset = block.used;
        block.used += bytes;
        return Piece{std::move(mapping), offset};
      }
    }
  }
  TUTTI_ASSIGN(auto made, make());
  const std::lock_guard lock(mutex_);
  latest_[place] = {made, bytes};
  return Piece{std::move(made), 0};
}

}  // namespace tutti
