#include "simulator/weak_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tutti::simulated {
namespace {

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

std::string_view to_string(Breach breach) {
  switch (breach) {
    case Breach::kNone:
      return "nothing";
    case Breach::kEarlyLoad:
      return "early load";
    case Breach::kEarlyStore:
      return "early store";
    case Breach::kUnorderedStore:
      return "unordered stores";
    case Breach::kBulkSource:
      return "bulk source";
    case Breach::kBulkTarget:
      return "bulk target";
    case Breach::kDeadlock:
      return "deadlock";
    case Breach::kWrongResult:
      return "wrong result";
    case Breach::kCanary:
      return "canary";
    case Breach::kOutcome:
      break;
  }
  return "error";
}

WeakMemory::WeakMemory(int fibers) : fibers_(static_cast<std::size_t>(fibers)) {}

void WeakMemory::add_data(std::byte* base, std::size_t bytes, std::string name) {
  regions_.push_back({base, bytes, std::move(name), {}});
  regions_.back().shadows.resize((bytes + kWord - 1) / kWord);
}

void WeakMemory::add_flags(Flag* base, std::size_t count) {
  flag_blocks_.push_back({base, count, static_cast<std::int32_t>(told_.size())});
  told_.resize(told_.size() + count);
}

void WeakMemory::add_packets(std::uint64_t* base, std::size_t count) {
  std::int32_t first = kFirstPacket;
  for (const PacketBlock& block : packet_blocks_) {
    first += static_cast<std::int32_t>(block.count);
  }
  packet_blocks_.push_back({base, count, first});
  packet_seen_.resize(packet_seen_.size() + count);
}

void WeakMemory::reset() {
  for (Region& region : regions_) std::fill(region.shadows.begin(), region.shadows.end(), Shadow{});
  for (const FlagBlock& block : flag_blocks_) std::fill_n(block.base, block.count, Flag{});
  for (const PacketBlock& block : packet_blocks_) std::fill_n(block.base, block.count, 0);
  std::fill(told_.begin(), told_.end(), Told{});
  for (Own& fiber : fibers_) {
    fiber.buffer.clear();
    fiber.sent.clear();
    fiber.known = fiber.released = {};
    fiber.time = 1;
    fiber.fenced_at = fiber.releases = fiber.stores = 0;
  }
  violation_ = {};
  any_bulk_ = false;
}

// --- ordinary accesses ---

void WeakMemory::load(int fiber, std::byte* to, const std::byte* from, std::size_t bytes) {
  load_now(fiber, to, from, bytes);
  for (const Pending& entry : own(fiber).buffer) {
    if (entry.source != nullptr || !overlap(from, bytes, entry.to, entry.size)) continue;
    const std::byte* const begin = std::max<const std::byte*>(from, entry.to);
    const std::byte* const end = std::min<const std::byte*>(from + bytes, entry.to + entry.size);
    std::memcpy(to + (begin - from), entry.bytes.data() + (begin - entry.to),
                static_cast<std::size_t>(end - begin));
  }
}

void WeakMemory::load_now(int fiber, std::byte* to, const std::byte* from, std::size_t bytes) {
  judge_load(fiber, from, bytes);
  std::memcpy(to, from, bytes);
}

void WeakMemory::store(int fiber, std::byte* to, const std::byte* from, std::size_t bytes) {
  judge_store(fiber, to, bytes);
  std::memcpy(push(fiber, to, bytes).bytes.data(), from, bytes);
}

void WeakMemory::store_now(int fiber, std::byte* to, const std::byte* from, std::size_t bytes) {
  judge_store(fiber, to, bytes);
  std::memcpy(to, from, bytes);
}

void WeakMemory::store_packet(int fiber, std::uint64_t* to, std::uint64_t packet,
                              std::uint64_t epoch) {
  Pending& entry = push(fiber, reinterpret_cast<std::byte*>(to), sizeof packet);
  std::memcpy(entry.bytes.data(), &packet, sizeof packet);
  entry.packet = packet_index(to);
  entry.epoch = epoch;
}

Pending& WeakMemory::push(int fiber, std::byte* to, std::size_t bytes) {
  Own& writer = own(fiber);
  Pending& entry = writer.buffer.emplace_back();
  entry.id = writer.stores++;
  entry.release = writer.releases;
  entry.to = to;
  entry.size = static_cast<std::uint16_t>(bytes);
  return entry;
}

// --- flags ---

void WeakMemory::release(int fiber) {
  Own& writer = own(fiber);
  ++writer.releases;
  writer.released = writer.known;
  writer.released.loads.at[static_cast<std::size_t>(fiber)] = writer.time;
  writer.released.stores.at[static_cast<std::size_t>(fiber)] = writer.time;
}

void WeakMemory::send(int fiber, Publish publish) {
  Own& sender = own(fiber);
  const auto self = static_cast<std::size_t>(fiber);
  Knowledge& message = sender.sent.emplace_back(sender.released);
  if (publish != Publish::kEarlierKernels) message.loads.at[self] = sender.time;
  ++sender.time;
}

void WeakMemory::store_flag(int fiber, Flag* to, Flag value) {
  const std::int32_t flag = flag_index(to);
  Pending& check = push(fiber, reinterpret_cast<std::byte*>(&to->check), sizeof value.check);
  std::memcpy(check.bytes.data(), &value.check, sizeof value.check);
  check.flag = flag;
  Pending& epoch = push(fiber, reinterpret_cast<std::byte*>(&to->epoch), sizeof value.epoch);
  std::memcpy(epoch.bytes.data(), &value.epoch, sizeof value.epoch);
  epoch.flag = flag;
  epoch.message = static_cast<std::int32_t>(own(fiber).sent.size()) - 1;
}

Flag WeakMemory::read_flag(const Flag* flag) const { return *flag; }

void WeakMemory::acquire(int fiber, const Flag* flag) {
  const Told& told = told_[static_cast<std::size_t>(flag_index(flag))];
  if (told.message < 0) return;
  own(fiber).known.join(own(told.by).sent[static_cast<std::size_t>(told.message)]);
}

std::uint64_t WeakMemory::epoch_of(const Pending& entry) const {
  if (entry.message < 0) return entry.epoch;
  std::uint64_t epoch = 0;
  std::memcpy(&epoch, entry.bytes.data(), sizeof epoch);
  return epoch;
}

std::int32_t WeakMemory::flag_index(const Flag* flag) const {
  for (const FlagBlock& block : flag_blocks_) {
    if (flag >= block.base && flag < block.base + block.count) {
      return block.first + static_cast<std::int32_t>(flag - block.base);
    }
  }
  return -1;
}

std::int32_t WeakMemory::packet_index(const std::uint64_t* packet) const {
  for (const PacketBlock& block : packet_blocks_) {
    if (packet >= block.base && packet < block.base + block.count) {
      return block.first + static_cast<std::int32_t>(packet - block.base);
    }
  }
  return -1;
}

void WeakMemory::end_kernel(int first, int count) {
  Knowledge all;
  for (int f = first; f < first + count; ++f) {
    own(f).known.loads.at[static_cast<std::size_t>(f)] = own(f).time;
    own(f).known.stores.at[static_cast<std::size_t>(f)] = own(f).time;
    all.join(own(f).known);
  }
  for (int f = first; f < first + count; ++f) {
    own(f).known = own(f).released = all;
    ++own(f).time;
  }
}

// --- deliveries ---

bool WeakMemory::deliverable(int fiber, std::size_t index) const {
  const std::vector<Pending>& buffer = own(fiber).buffer;
  const Pending& entry = buffer[index];
  bool held = false;  // behind a release of which stores are still under way
  for (std::size_t i = 0; i < index && !held; ++i) {
    const Pending& earlier = buffer[i];
    if (earlier.source != nullptr) continue;  // no release waits for a bulk copy
    held = (earlier.release < entry.release && entry.source == nullptr) ||
           overlap(earlier.to, earlier.size, entry.to, entry.size);
  }
  return !held;
}

void WeakMemory::find_deliverable(int fiber, std::vector<bool>& may) {
  const std::vector<Pending>& buffer = own(fiber).buffer;
  may.resize(buffer.size());
  ++searches_;
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    const Pending& entry = buffer[i];
    if (entry.packet < 0 || entry.release != buffer.front().release) {
      may[i] = deliverable(fiber, i);
      continue;
    }
    std::uint32_t& seen = packet_seen_[static_cast<std::size_t>(entry.packet - kFirstPacket)];
    may[i] = seen != searches_;
    seen = searches_;
  }
}

void WeakMemory::deliver(int fiber, std::size_t index) {
  std::vector<Pending>& buffer = own(fiber).buffer;
  const Pending entry = buffer[index];
  buffer.erase(buffer.begin() + static_cast<std::ptrdiff_t>(index));
  apply(fiber, entry);
}

bool WeakMemory::flag_deliverable(int fiber, std::size_t index) const {
  const std::vector<Pending>& buffer = own(fiber).buffer;
  const Pending& entry = buffer[index];
  if (entry.message < 0) return false;  // the check word goes with its epoch
  for (std::size_t i = 0; i < index; ++i) {
    const Pending& earlier = buffer[i];
    if (earlier.flag < 0 || earlier.id + 1 == entry.id) continue;
    if (earlier.release < entry.release || earlier.flag == entry.flag) return false;
  }
  return true;
}

void WeakMemory::deliver_flag(int fiber, std::size_t index) {
  std::vector<Pending>& buffer = own(fiber).buffer;
  const Pending epoch = buffer[index];
  std::erase_if(buffer, [&](const Pending& earlier) {
    const bool data = earlier.flag < 0 && earlier.source == nullptr;
    const bool goes = earlier.id == epoch.id || earlier.id + 1 == epoch.id ||
                      (data && earlier.release < epoch.release);
    if (goes) apply(fiber, earlier);
    return goes;
  });
}

void WeakMemory::apply(int fiber, const Pending& entry) {
  const bool late = entry.source != nullptr && !entry.source_free;
  std::memcpy(entry.to, late ? entry.source : entry.bytes.data(), entry.size);
  if (entry.message < 0) return;
  told_[static_cast<std::size_t>(entry.flag)] = {static_cast<std::int16_t>(fiber), entry.message};
}

// --- bulk copies ---

void WeakMemory::bulk_copy(int fiber, std::byte* to, const std::byte* from, std::size_t bytes) {
  const Time fenced = own(fiber).fenced_at;
  for_each_shadow(from, bytes, [&](const Shadow& shadow, const std::byte* at) {
    if (shadow.stored_by == fiber && shadow.stored_at > fenced) {
      report(Breach::kBulkSource, fiber, at, fiber);
    }
  });
  judge_load(fiber, from, bytes);
  judge_store(fiber, to, bytes);
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    push(fiber, to + at, std::min(kPiece, bytes - at)).source = from + at;
  }
  any_bulk_ = true;
}

void WeakMemory::bulk_store(int fiber, std::byte* to, const std::byte* from, std::size_t bytes) {
  judge_store(fiber, to, bytes);
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    Pending& entry = push(fiber, to + at, std::min(kPiece, bytes - at));
    entry.source = from + at;
    std::memcpy(entry.bytes.data(), entry.source, entry.size);
    entry.source_free = true;
  }
  any_bulk_ = true;
}

bool WeakMemory::copies_in_bulk(int fiber) const {
  const std::vector<Pending>& buffer = own(fiber).buffer;
  return std::any_of(buffer.begin(), buffer.end(),
                     [](const Pending& entry) { return entry.source != nullptr; });
}

void WeakMemory::proxy_fence(int fiber) {
  own(fiber).fenced_at = own(fiber).time++;
  std::erase_if(own(fiber).buffer, [&](const Pending& entry) {
    if (entry.flag < 0 && entry.source == nullptr) apply(fiber, entry);
    return entry.flag < 0 && entry.source == nullptr;
  });
}

// The schedule may have left the copies to this moment: now they have read their source.
void WeakMemory::wait_source_free(int fiber) {
  for (Pending& entry : own(fiber).buffer) {
    if (entry.source == nullptr || entry.source_free) continue;
    std::memcpy(entry.bytes.data(), entry.source, entry.size);
    entry.source_free = true;
  }
}

void WeakMemory::wait_written(int fiber) {
  std::vector<Pending>& buffer = own(fiber).buffer;
  for (std::size_t i = 0; i < buffer.size();) {
    if (buffer[i].source != nullptr) {
      deliver(fiber, i);
    } else {
      ++i;
    }
  }
}

// --- the judge ---

WeakMemory::Region* WeakMemory::region_of(const std::byte* address) {
  for (Region& region : regions_) {
    if (address >= region.base && address < region.base + region.bytes) return &region;
  }
  return nullptr;
}

template <class F>
void WeakMemory::for_each_shadow(const std::byte* from, std::size_t bytes, F&& f) {
  Region* const region = region_of(from);
  if (region == nullptr || bytes == 0) return;
  const auto begin = static_cast<std::size_t>(from - region->base);
  const std::size_t last = (begin + bytes - 1) / kWord;
  for (std::size_t word = begin / kWord; word <= last; ++word) {
    f(region->shadows[word], region->base + word * kWord);
  }
}

void WeakMemory::judge_load(int fiber, const std::byte* from, std::size_t bytes) {
  const Own& reader = own(fiber);
  for_each_shadow(from, bytes, [&](Shadow& shadow, const std::byte* at) {
    const int writer = shadow.stored_by;
    if (writer >= 0 && writer != fiber &&
        shadow.stored_at > reader.known.stores.at[static_cast<std::size_t>(writer)]) {
      report(Breach::kEarlyLoad, fiber, at, writer);
    }
    shadow.loaded_at[static_cast<std::size_t>(fiber)] = reader.time;
  });
  if (any_bulk_) judge_bulk(fiber, from, bytes, false);
}

void WeakMemory::judge_store(int fiber, const std::byte* to, std::size_t bytes) {
  const Own& writer = own(fiber);
  for_each_shadow(to, bytes, [&](Shadow& shadow, const std::byte* at) {
    const int before = shadow.stored_by;
    if (before >= 0 && before != fiber &&
        shadow.stored_at > writer.known.stores.at[static_cast<std::size_t>(before)]) {
      report(Breach::kUnorderedStore, fiber, at, before);
    }
    for (std::size_t reader = 0; reader < fibers_.size(); ++reader) {
      if (static_cast<int>(reader) != fiber &&
          shadow.loaded_at[reader] > writer.known.loads.at[reader]) {
        report(Breach::kEarlyStore, fiber, at, static_cast<int>(reader));
      }
    }
    shadow.stored_by = fiber;
    shadow.stored_at = writer.time;
  });
  if (any_bulk_) judge_bulk(fiber, to, bytes, true);
}

void WeakMemory::judge_bulk(int fiber, const std::byte* at, std::size_t bytes, bool stores) {
  for (std::size_t issuer = 0; issuer < fibers_.size(); ++issuer) {
    for (const Pending& entry : fibers_[issuer].buffer) {
      if (entry.source == nullptr) continue;
      if (overlap(at, bytes, entry.to, entry.size)) {
        report(Breach::kBulkTarget, fiber, at, static_cast<int>(issuer));
      }
      if (stores && !entry.source_free && overlap(at, bytes, entry.source, entry.size)) {
        report(Breach::kBulkSource, fiber, at, static_cast<int>(issuer));
      }
    }
  }
}

void WeakMemory::report(Breach breach, int fiber, const std::byte* at, int other) {
  if (violation_.breach != Breach::kNone) return;
  const Region* const region = region_of(at);
  violation_ = {breach,
                fmt::format("{} by fiber {} of {} + {}, against fiber {}", to_string(breach), fiber,
                            region != nullptr ? region->name : std::string("flags"),
                            region != nullptr ? at - region->base : 0, other)};
}

}  // namespace tutti::simulated
