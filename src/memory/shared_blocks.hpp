// Pieces of allocations that groups of one process share: an allocation of a GPU's driver takes
// 2 MiB or more, and a group needs a few KiB from its creation on.
//
// A piece is given out once: a peer that comes late, with a store or a signal for a group that has
// ended, finds nobody else's words there. A block ends with the last of its pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "memory/mapping.hpp"
#include "tutti/status.hpp"

namespace tutti {

class SharedBlocks {
 public:
  struct Place {
    const void* driver = nullptr;
    int device = 0;
    std::vector<int> devices;  // that reach it

    auto tied() const { return std::tie(driver, device, devices); }
    friend bool operator<(const Place& a, const Place& b) { return a.tied() < b.tied(); }
  };
  struct Piece {
    MappingRegistry::Handle block;  // keeps it
    std::size_t offset = 0;
  };

  static SharedBlocks& process();

  // `bytes` are at most `block_bytes`, of what `make` makes, which is zeroed. Two threads may make
  // a block at once: no lock is held meanwhile.
  Result<Piece> take(const Place& place, std::size_t bytes, std::size_t block_bytes,
                     const std::function<Result<MappingRegistry::Handle>()>& make);

 private:
  struct Block {
    std::weak_ptr<Mapping> mapping;
    std::size_t used = 0;
  };

  std::mutex mutex_;
  std::map<Place, Block> latest_;
};

}  // namespace tutti
