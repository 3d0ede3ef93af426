// Messages between pairs of ranks under random schedules and weak memory, and what must be found
// where something of their protocol is taken away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/send_recv/push.hpp"
#include "simulator/bodies.hpp"

namespace tutti::laboratory {
namespace {

using simulated::Breach;
using simulated::Mutation;
using Kind = Mutation::Kind;

constexpr std::size_t kMostBytes = 512;  // of a message
constexpr int kMostOfGroup = 4;

// One end of a message.
struct End {
  int peer;
  bool sends;
  std::size_t bytes;
  bool in_packets;
  bool at_once = false;  // taken into memory that the sender reaches
};
using Group = std::vector<End>;

struct Scene {
  std::string name;
  int lanes;
  std::vector<std::vector<Group>> ranks;  // what each rank does, group by group
};

End to(int peer, std::size_t bytes, bool in_packets = false) {
  return {peer, true, bytes, in_packets};
}
End from(int peer, std::size_t bytes, bool in_packets = false) {
  return {peer, false, bytes, in_packets};
}

End at_once_from(int peer, std::size_t bytes) { return {peer, false, bytes, false, true}; }

std::vector<Scene> all_scenes() {
  const Group both_0 = {to(1, 20, true), from(1, 20, true)};
  const Group both_1 = {from(0, 20, true), to(0, 20, true)};
  const Group ring_0 = {to(1, 150), from(2, 150)}, ring_1 = {to(2, 150), from(0, 150)},
              ring_2 = {to(0, 150), from(1, 150)};
  const Group long_0 = {to(1, 150), at_once_from(1, 70)},
              long_1 = {at_once_from(0, 150), to(0, 70)};
  return {
      {"to their places at once", 1, {{long_0, long_0, long_0}, {long_1, long_1, long_1}}},
      {"to their places at once, in two lanes, and through slots",
       2,
       {{{to(1, 150), to(1, 40), from(1, 90)}, {to(1, 90)}},
        {{at_once_from(0, 150), from(0, 40), to(0, 90)}, {at_once_from(0, 90)}}}},
      {"short ones, both ways",
       1,
       {{both_0, both_0, both_0, both_0}, {both_1, both_1, both_1, both_1}}},
      {"a long one, and another",
       1,
       {{{to(1, 130)}, {to(1, 70)}}, {{from(0, 130)}, {from(0, 70)}}}},
      {"several to one peer, taken one by one",
       1,
       {{{to(1, 20, true), to(1, 12, true), to(1, 4, true), to(1, 90)}},
        {{from(0, 20, true)}, {from(0, 12, true)}, {from(0, 4, true)}, {from(0, 90)}}}},
      {"sent one by one, taken together",
       1,
       {{{to(1, 20, true)}, {to(1, 12, true)}, {to(1, 30, true)}, {to(1, 90)}},
        {{from(0, 20, true), from(0, 12, true), from(0, 30, true), from(0, 90)}}}},
      {"around a ring, in two lanes", 2, {{ring_0, ring_0}, {ring_1, ring_1}, {ring_2, ring_2}}},
      // Rank 0 can only end if none of its messages waits for one to, or from, another rank.
      {"each waits for another",
       1,
       {{{to(1, 150), to(1, 150), from(2, 150)}},
        {{from(0, 150)}, {from(0, 150)}, {to(2, 150)}},
        {{from(1, 150)}, {to(0, 150)}}}},
  };
}

class Stage {
 public:
  // As if `before` chunks had gone both ways between all ranks.
  explicit Stage(const Scene& scene, std::uint64_t before = 0)
      : scene_(scene),
        before_(before),
        simulation_(static_cast<int>(scene.ranks.size()), scene.lanes) {
    for (int r = 0; r < ranks(); ++r) {
      ranks_.push_back(std::make_unique<Rank>(memory_words()));
      lay_out(r);
    }
    windows_[1].window = 1;
    for (int r = 0; r < ranks(); ++r) windows_[1].at.at[r] = &at(r).outputs[0][0];
  }

  // False if the schedule gave up.
  bool run(std::uint64_t seed, const Mutation* mutation = nullptr) {
    mutation_ = mutation;
    for (int r = 0; r < ranks(); ++r) reset(r);
    simulated::RandomSchedule schedule(seed, ranks());
    return simulation_.run(schedule, [this](int rank, int lane) { run_lane(rank, lane); });
  }
  const simulated::Violation& violation() const { return simulation_.violation(); }
  FailureReason reason(int rank) const {
    return static_cast<FailureReason>(ranks_[static_cast<std::size_t>(rank)]->failure.reason);
  }
  // Ranks may end in errors, which are not breaches then.
  void allow_failures() { may_fail_ = true; }

 private:
  static constexpr std::size_t kSlotBytes = 16, kChunk = 16;
  static constexpr std::size_t kFlagsOfLane = kMaxRanks * sizeof(MessageFlags) / sizeof(Flag);

  struct Rank {
    explicit Rank(std::size_t words) : memory(words) {}
    std::vector<std::uint64_t> memory;  // MessageMemory, slots
    alignas(16) std::byte inputs[kMostOfGroup][kMostBytes];
    alignas(16) std::byte outputs[kMostOfGroup][kMostBytes];
    std::vector<MessageCounts> counts;
    Messages messages{};
    Control control{};
    FailureRecord failure{};
    ChannelMemory channel{};
    std::vector<std::uint64_t> epochs;
    std::uint32_t notices = 0;
    int ended = 0, started = 0;
  };

  int ranks() const { return static_cast<int>(scene_.ranks.size()); }
  std::size_t packet_bytes() const { return Messages::packet_slots_bytes(ranks()); }
  std::size_t memory_words() const {
    const std::size_t chunks =
        static_cast<std::size_t>(ranks() - 1) * kLanes * kChunkSlots * kSlotBytes;
    return (sizeof(MessageMemory) + packet_bytes() + chunks) / sizeof(std::uint64_t);
  }
  Rank& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  void lay_out(int index) {
    Rank& rank = at(index);
    simulated::WeakMemory& memory = simulation_.memory();
    auto* const first = reinterpret_cast<std::byte*>(rank.memory.data());
    memory.add_flags(reinterpret_cast<Flag*>(first),
                     kFlagsOfLane * static_cast<std::size_t>(scene_.lanes));
    std::byte* const packets = first + sizeof(MessageMemory);
    memory.add_packets(reinterpret_cast<std::uint64_t*>(packets),
                       packet_bytes() / sizeof(std::uint64_t));
    std::byte* const end = first + rank.memory.size() * sizeof(std::uint64_t);
    memory.add_data(packets + packet_bytes(),
                    static_cast<std::size_t>(end - packets) - packet_bytes(), "slots");
    memory.add_data(&rank.inputs[0][0], sizeof rank.inputs, "inputs");
    memory.add_data(&rank.outputs[0][0], sizeof rank.outputs, "outputs");
  }

  // Zeros and ones among them, which nothing may take for nothing.
  static std::byte value(int source, int taker, std::size_t nth, std::size_t at) {
    if (at / 4 % 5 == 1) return std::byte{0};
    if (at / 4 % 5 == 2) return std::byte{0xff};
    return static_cast<std::byte>(17 * source + 59 * taker + 31 * static_cast<int>(nth) +
                                  static_cast<int>(at) + 1);
  }

  void reset(int index) {
    Rank& rank = at(index);
    rank.counts.assign(kMessageCounts, {before_, before_});
    rank.epochs.assign(kMaxBlocks, 0);
    rank.control = {};
    rank.failure = {};
    rank.ended = rank.started = 0;
  }

  // f(end, place of its buffer, which one it is of those to, or from, that peer) for a group.
  template <class F>
  void for_each_end(int index, std::size_t group, F&& f) const {
    const auto& groups = scene_.ranks[static_cast<std::size_t>(index)];
    std::vector<std::size_t> sent(scene_.ranks.size()), taken(scene_.ranks.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t i = 0; i < groups[g].size(); ++i) {
        const End& end = groups[g][i];
        auto& count = (end.sends ? sent : taken)[static_cast<std::size_t>(end.peer)];
        if (g == group) f(end, i, count);
        ++count;
      }
    }
  }

  Messages messages_of(int index, std::size_t group) {
    Rank& rank = at(index);
    Messages messages{};
    messages.ranks = ranks();
    messages.slot_bytes = kSlotBytes;
    messages.counts = rank.counts.data();
    messages.windows = windows_.data();
    for (int r = 0; r < ranks(); ++r) {
      messages.memory.at[r] = reinterpret_cast<std::byte*>(at(r).memory.data());
    }
    for (const End& end : scene_.ranks[static_cast<std::size_t>(index)][group]) {
      const auto place = static_cast<std::size_t>(messages.number);
      messages.at[messages.number++] = {.input = end.sends ? rank.inputs[place] : nullptr,
                                        .output = end.sends ? nullptr : rank.outputs[place],
                                        .bytes = end.bytes,
                                        .chunk_bytes = kChunk,
                                        .peer = end.peer,
                                        .lanes = scene_.lanes,
                                        .signature = static_cast<std::uint32_t>(end.bytes),
                                        .window = end.at_once ? 1u : 0u,
                                        .offset = place * kMostBytes,
                                        .in_packets = end.in_packets};
    }
    return messages;
  }

  void begin_group(int index) {
    Rank& rank = at(index);
    simulation_.memory().end_kernel(simulation_.fiber_of(index, 0), scene_.lanes);
    const auto next = static_cast<std::size_t>(rank.started);
    if (next > 0) check(index, next - 1);
    if (next < scene_.ranks[static_cast<std::size_t>(index)].size()) {
      rank.messages = messages_of(index, next);
      write(index, next);
      simulation_.memory().end_kernel(simulation_.fiber_of(index, 0), scene_.lanes);
    }
    rank.ended = 0;
    ++rank.started;
  }

  void run_lane(int index, int lane) {
    Rank& rank = at(index);
    const int fiber = simulation_.fiber_of(index, lane);
    if (lane == 0) begin_group(index);
    const SimulatedBody body = simulated_body(SendRecvPush::host, DataType::kUint8, OpKind::kSum);
    const auto groups = static_cast<int>(scene_.ranks[static_cast<std::size_t>(index)].size());
    for (int group = 0; group < groups; ++group) {
      simulation_.wait_for_count(fiber, rank.started, group + 1);
      KernelArgs work{};
      work.rank = index;
      work.ranks = ranks();
      work.blocks = scene_.lanes;
      work.signature = 1;
      work.messages = &rank.messages;
      work.epochs = rank.epochs.data();
      work.control = &rank.control;
      work.failure = &rank.failure;
      work.notices = &rank.notices;
      SimulatedTeam team(work, lane, {simulation_, mutation_, nullptr});
      const Outcome outcome = body(team, work);
      simulation_.wait_until_delivered(fiber);
      if (outcome != Outcome::kDone && !may_fail_) {
        simulation_.report(Breach::kOutcome, "a rank failed");
        return;
      }
      if (outcome != Outcome::kDone) return;
      if (++rank.ended == scene_.lanes) begin_group(index);
    }
  }

  // What the stream does between two groups, in the buffers of all of them.
  void write(int index, std::size_t group) {
    Rank& rank = at(index);
    const int fiber = simulation_.fiber_of(index, 0);
    for_each_end(index, group, [&](const End& end, std::size_t place, std::size_t nth) {
      std::byte* const buffer = end.sends ? rank.inputs[place] : rank.outputs[place];
      for (std::size_t i = 0; i < kMostBytes; ++i) {
        const std::byte byte =
            end.sends && i < end.bytes ? value(index, end.peer, nth, i) : std::byte{0x5a};
        simulation_.memory().store_now(fiber, buffer + i, &byte, 1);
      }
    });
  }
  void check(int index, std::size_t group) {
    if (may_fail_) return;
    const int fiber = simulation_.fiber_of(index, 0);
    for_each_end(index, group, [&](const End& end, std::size_t place, std::size_t nth) {
      for (std::size_t i = 0; !end.sends && i < kMostBytes; ++i) {
        std::byte got{};
        simulation_.memory().load_now(fiber, &got, &at(index).outputs[place][i], 1);
        if (got == (i < end.bytes ? value(end.peer, index, nth, i) : std::byte{0x5a})) continue;
        simulation_.report(Breach::kWrongResult, "a message is not what was sent");
      }
    });
  }

  const Scene& scene_;
  std::uint64_t before_;
  std::vector<RegistrationEntry> windows_ = std::vector<RegistrationEntry>(kRegistrationEntries);
  simulated::Simulation simulation_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  const Mutation* mutation_ = nullptr;
  bool may_fail_ = false;
};

TEST(MessagesTest, ComeAsTheyWereSentUnderAnySchedule) {
  for (const Scene& scene : all_scenes()) {
    Stage stage(scene);
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
      ASSERT_TRUE(stage.run(seed)) << scene.name << ", seed " << seed;
      ASSERT_EQ(stage.violation().breach, Breach::kNone)
          << scene.name << ", seed " << seed << ": " << stage.violation().text;
    }
  }
}

// Words that were never written hold zeros, as the low half of a number does.
TEST(MessagesTest, CountsCrossTheEndOfTheirLowHalf) {
  for (const Scene& scene : all_scenes()) {
    for (std::uint64_t before = 0xffff'fffb; before <= 0x1'0000'0000; ++before) {
      Stage stage(scene, before);
      for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        ASSERT_TRUE(stage.run(seed)) << scene.name << ", " << before << ", seed " << seed;
        ASSERT_EQ(stage.violation().breach, Breach::kNone)
            << scene.name << ", " << before << ", seed " << seed << ": " << stage.violation().text;
      }
    }
  }
}

// In some scene and under some schedule it must show.
bool is_found(const Mutation& mutation) {
  for (const Scene& scene : all_scenes()) {
    Stage stage(scene);
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
      if (!stage.run(seed, &mutation) || stage.violation().breach != Breach::kNone) return true;
    }
  }
  return false;
}

TEST(MessagesTest, NothingOfTheProtocolCanBeTakenAway) {
  for (const Kind kind :
       {Kind::kNoAcquire, Kind::kNoChunkWait, Kind::kNoChunkAcquire, Kind::kNoChunk,
        Kind::kNoCreditWait, Kind::kNoCreditAcquire, Kind::kNoCredit, Kind::kCreditTooMany,
        Kind::kEpochNotKept, Kind::kNoPoll, Kind::kWordNotPolled}) {
    const Mutation mutation{kind, 0, 0};
    EXPECT_TRUE(is_found(mutation)) << describe(mutation);
  }
  for (const unsigned moves : {sent(kForward), taken(kForward)}) {
    const Mutation mutation{Kind::kPassNotReleased, static_cast<int>(moves), 0};
    EXPECT_TRUE(is_found(mutation)) << describe(mutation);
  }
}

// Of a long one the sender finds it by the post, before it has stored anything; of packets the
// taker.
TEST(MessagesTest, EndsThatDifferAreFound) {
  const Mutation blind{Kind::kNoSignature, 0, 0};
  const Scene scenes[] = {{"long", 1, {{{to(1, 150)}}, {{from(0, 70)}}}},
                          {"long, at once", 1, {{{to(1, 150)}}, {{at_once_from(0, 70)}}}},
                          {"in packets", 1, {{{to(1, 24, true)}}, {{from(0, 20, true)}}}}};
  for (const Scene& scene : scenes) {
    const int finder = scene.ranks[0][0][0].in_packets ? 1 : 0;
    Stage stage(scene);
    stage.allow_failures();
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      stage.run(seed);
      EXPECT_EQ(stage.reason(finder), FailureReason::kMismatch) << scene.name << ", seed " << seed;
    }
    stage.run(1, &blind);
    EXPECT_NE(stage.reason(finder), FailureReason::kMismatch) << scene.name;
  }
}

}  // namespace
}  // namespace tutti::laboratory
