// Memory mapped into this process, shared by everyone here who uses it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "tutti/status.hpp"

namespace tutti {

// Open until its last owner is gone.
class Mapping {
 public:
  enum class Origin : std::uint8_t { kThisProcess, kPeerProcess };

  Mapping(std::byte* address, Origin origin, std::function<void()> close)
      : address_(address), origin_(origin), close_(std::move(close)), number_(next_number()) {}
  ~Mapping() { close_(); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* address() const { return address_; }
  Origin origin() const { return origin_; }
  // No other mapping of this process has had it or will have it.
  std::uint64_t number() const { return number_; }

 private:
  static std::uint64_t next_number();

  std::byte* address_;
  Origin origin_;
  std::function<void()> close_;
  std::uint64_t number_;
};

// Names memory for as long as its owner's process lives.
struct MappingKey {
  enum class Space : std::uint8_t { kOwned, kMalloc, kVirtual, kRetained };

  const void* driver = nullptr;     // who maps it
  std::uint64_t process_token = 0;  // whose memory it is
  Space space = Space::kOwned;      // of `identity`
  std::uint64_t identity = 0;       // not reused in the owner's process while anything is open
  std::array<std::byte, 64> handle{};
  std::vector<int> devices;  // that can reach it through this mapping

  auto tied() const { return std::tie(driver, process_token, space, identity, handle, devices); }
  friend bool operator<(const MappingKey& a, const MappingKey& b) { return a.tied() < b.tied(); }
};

// What is mapped in this process now. Ranks that are threads thereby use one virtual address for
// one piece of memory, and memory that several registrations share is opened once.
class MappingRegistry {
 public:
  using Handle = std::shared_ptr<Mapping>;

  static MappingRegistry& process();

  // The mapping that is open under `key`, or the one that `open` makes.
  Result<Handle> find_or_open(const MappingKey& key, const std::function<Result<Handle>()>& open);

  // Null where nothing is open under `key`.
  Handle find(const MappingKey& key);

  // Makes a mapping that exists already known to the other ranks of this process.
  void publish(const MappingKey& key, const Handle& mapping);

 private:
  void forget_closed();

  std::mutex mutex_;
  std::map<MappingKey, std::weak_ptr<Mapping>> open_;
};

}  // namespace tutti
