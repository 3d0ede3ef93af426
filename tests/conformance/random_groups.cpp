#include "conformance/random_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "support/check.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using Random = std::mt19937_64;

constexpr std::size_t kCommunicators = 3;
constexpr std::size_t kPoolCount = 1 << 20;  // elements of a rank's buffers
constexpr std::size_t kLong = 20000;         // of a message that does not fit into packets

int below(Random& random, int limit) {
  return static_cast<int>(random() % static_cast<unsigned>(limit));
}

// What a group has for some communicator: known to all ranks.
struct Item {
  enum Kind : std::uint8_t { kAllReduce, kAllGather, kBroadcast, kMessage } kind;
  std::size_t communicator;
  int from, to;  // a message's; the root is `from`
  std::size_t count;
};

// A communicator as one rank of the whole group has it; null where it is no member.
struct Member {
  Communicator* communicator;
  int size;  // known to everybody

  int rank() const { return communicator == nullptr ? -1 : communicator->rank(); }
};
using Members = std::array<Member, kCommunicators>;

std::vector<Item> items_of(Random& random, const Members& members) {
  std::vector<Item> items;
  const auto add = [&](Item::Kind kind, std::size_t communicator, std::size_t count) {
    const int size = members[communicator].size;
    items.push_back({kind, communicator, below(random, size), below(random, size), count});
  };
  const int collectives = below(random, 5), messages = below(random, 8);
  for (int k = 0; k < collectives; ++k) {
    const auto kind = static_cast<Item::Kind>(below(random, Item::kMessage));
    add(kind, random() % kCommunicators, 1 + random() % (random() % 8 == 0 ? 5000 : 100));
  }
  for (int k = 0; k < messages; ++k) {
    add(Item::kMessage, random() % kCommunicators,
        1 + random() % (random() % 16 == 0 ? kLong : 200));
  }
  // More than one operation holds.
  const bool many = random() % 8 == 0;
  const std::size_t communicator = random() % kCommunicators;
  for (int k = 0; many && k < 90; ++k) add(Item::kMessage, communicator, 1 + random() % 40);
  return items;
}

// One rank's buffers of a group: what is there before it, and what has to be there afterwards.
class Image {
 public:
  std::size_t place(std::size_t count) {
    const std::size_t at = before_.size();
    before_.resize(at + (count + 63) / 64 * 64, -1);
    after_.resize(before_.size(), -1);
    require(before_.size() <= kPoolCount, "the pool is too small");
    return at;
  }
  template <class Value>
  std::size_t input(std::size_t count, const Value& value) {
    const std::size_t at = place(count);
    for (std::size_t i = 0; i < count; ++i) before_[at + i] = after_[at + i] = value(i);
    return at;
  }
  template <class Value>
  std::size_t output(std::size_t count, const Value& value) {
    const std::size_t at = place(count);
    for (std::size_t i = 0; i < count; ++i) after_[at + i] = value(i);
    return at;
  }
  std::size_t bytes() const { return before_.size() * sizeof(std::int32_t); }
  const std::byte* before() const { return reinterpret_cast<const std::byte*>(before_.data()); }
  bool is_left(const std::vector<std::int32_t>& seen) const {
    return std::equal(after_.begin(), after_.end(), seen.begin());
  }

 private:
  std::vector<std::int32_t> before_, after_;
};

class RandomGroups {
 public:
  RandomGroups(Rank& rank, std::uint64_t seed)
      : rank_(rank),
        common_(seed),
        own_(seed * 1000 + static_cast<std::uint64_t>(rank.number()) + 1),
        reversed_(take(rank.group.split(0, -rank.number()))),
        part_(
            take(rank.group.split(rank.size() > 2 && rank.number() == 0 ? -1 : 0, rank.number()))),
        pool_(rank.device, kPoolCount * sizeof(std::int32_t)),
        streams_{OwnedStream(rank.device), OwnedStream(rank.device)} {
    const int size = rank.size();
    members_ = {Member{&rank.group, size}, Member{reversed_.get(), size},
                Member{part_.get(), size > 2 ? size - 1 : size}};
    if (!rank.shares_gpu()) return;
    // Memory of a communicator is made and opened while no other rank's kernel waits for this one.
    for (const Member& member : members_) {
      if (member.communicator != nullptr) require_ok(member.communicator->prepare());
    }
    rank.meet();
  }
  ~RandomGroups() { rank_.meet_before_freeing(); }

  void run() {
    const std::vector<Item> items = items_of(common_, members_);
    Image image;
    std::map<std::tuple<std::size_t, int, bool>, std::vector<std::function<Status()>>> queues;
    for (std::size_t k = 0; k < items.size(); ++k) {
      const Item& item = items[k];
      const Member& member = members_[item.communicator];
      if (member.communicator == nullptr) continue;
      if (item.kind != Item::kMessage) {
        queues[{item.communicator, -1, false}].push_back(collective(item, k, image));
        continue;
      }
      const auto value = [k](std::size_t i) { return value_of(k, 0, i); };
      if (item.from == member.rank()) {
        const std::size_t at = image.input(item.count, value);
        queues[{item.communicator, item.to, true}].push_back([&item, this, at] {
          return send(communicator(item), {.buffer = address(at),
                                           .count = item.count,
                                           .dtype = DataType::kInt32,
                                           .peer = item.to,
                                           .stream = stream()});
        });
      }
      if (item.to == member.rank()) {
        const std::size_t at = image.output(item.count, value);
        queues[{item.communicator, item.from, false}].push_back([&item, this, at] {
          return recv(communicator(item), {.buffer = address(at),
                                           .count = item.count,
                                           .dtype = DataType::kInt32,
                                           .peer = item.from,
                                           .stream = stream()});
        });
      }
    }
    if (image.bytes() == 0) return;
    rank_.device.write(pool_.get(), image.before(), image.bytes());
    // Who has collectives of one communicator alone needs no group.
    const bool grouped =
        queues.size() > 1 || std::get<1>(queues.begin()->first) != -1 || own_() % 2 == 0;
    if (grouped) group_start();
    while (!queues.empty()) {
      const auto queue = std::next(queues.begin(), below(own_, static_cast<int>(queues.size())));
      require_ok(queue->second.front()());
      queue->second.erase(queue->second.begin());
      if (queue->second.empty()) queues.erase(queue);
    }
    if (grouped) require_ok(group_end());
    if (!grouped) wait_for_streams();
    check(image);
  }

 private:
  static std::int32_t value_of(std::size_t item, int rank, std::size_t i) {
    return static_cast<std::int32_t>((item * 7919 + static_cast<unsigned>(rank) * 104729 + i * 31) %
                                     1000003);
  }
  Communicator& communicator(const Item& item) { return *members_[item.communicator].communicator; }
  std::byte* address(std::size_t at) const { return pool_.get() + at * sizeof(std::int32_t); }
  Stream stream() {
    const OwnedStream& one = streams_[own_() % streams_.size()];
    latest_ = &one;
    return one.get();
  }

  std::function<Status()> collective(const Item& item, std::size_t number, Image& image) {
    const int size = members_[item.communicator].size;
    const std::size_t count = item.count;
    const std::size_t input = image.input(count, [&](std::size_t i) {
      return value_of(number, members_[item.communicator].rank(), i);
    });
    std::size_t output = 0;
    if (item.kind == Item::kAllReduce) {
      output = image.output(count, [&](std::size_t i) {
        std::int32_t sum = 0;
        for (int r = 0; r < size; ++r) sum += value_of(number, r, i);
        return sum;
      });
    } else if (item.kind == Item::kAllGather) {
      output = image.output(count * static_cast<std::size_t>(size), [&](std::size_t i) {
        return value_of(number, static_cast<int>(i / count), i % count);
      });
    } else {
      output = image.output(count, [&](std::size_t i) { return value_of(number, item.from, i); });
    }
    return [&item, this, input, output] { return start(item, address(input), address(output)); };
  }
  Status start(const Item& item, const void* input, void* output) {
    const auto filled = [&](auto call) {
      call.input = input;
      call.output = output;
      call.count = item.count;
      call.dtype = DataType::kInt32;
      call.stream = stream();
      return call;
    };
    if (item.kind == Item::kAllReduce) return all_reduce(communicator(item), filled(AllReduce{}));
    if (item.kind == Item::kAllGather) return all_gather(communicator(item), filled(AllGather{}));
    return broadcast(communicator(item), filled(Broadcast{.root = item.from}));
  }

  void wait_for_streams() const {
    for (const OwnedStream& stream : streams_) stream.wait();
  }

  // Each stream of the group is behind all of its operations.
  void check(const Image& image) {
    latest_->wait();
    std::vector<std::int32_t> seen(image.bytes() / sizeof(std::int32_t));
    rank_.device.read(reinterpret_cast<std::byte*>(seen.data()), pool_.get(), image.bytes());
    for (const Member& member : members_) {
      if (member.communicator != nullptr) require_ok(member.communicator->status());
    }
    require(image.is_left(seen), "a buffer is not as it should be");
    wait_for_streams();
  }

  Rank& rank_;
  Random common_, own_;
  std::unique_ptr<Communicator> reversed_, part_;
  Members members_{};
  OwnedMemory pool_;
  std::array<OwnedStream, 2> streams_;
  const OwnedStream* latest_ = nullptr;  // that a call has been given
};

}  // namespace

void run_random_groups(Rank& rank, int groups, std::uint64_t seed) {
  RandomGroups random(rank, seed);
  for (int k = 0; k < groups; ++k) {
    try {
      random.run();
    } catch (const Failure& failure) {
      fail(fmt::format("group {}: {}", k, failure.what()));
    }
  }
}

}  // namespace tutti::test
