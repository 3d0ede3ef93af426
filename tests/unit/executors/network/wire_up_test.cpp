// Ranks prove to each other over the network that they belong together; who cannot is not believed,
// and is named.
#include "executors/network/wire_up.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "executors/network/message.hpp"
#include "fakes/thread_wire.hpp"
#include "support/check.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kNever = [] { return false; };

// A wire that another one is behind.
class WireShim : public Wire {
 public:
  explicit WireShim(std::unique_ptr<Wire> inner) : inner_(std::move(inner)) {}
  const Bytes& address() const override { return inner_->address(); }
  Status connect(int peer, ByteView address) override { return inner_->connect(peer, address); }
  void set_handlers(Handlers handlers) override { inner_->set_handlers(std::move(handlers)); }
  Result<WireTicket> post(int peer, ByteView header, ByteView payload) override {
    return inner_->post(peer, header, payload);
  }
  bool progress() override { return inner_->progress(); }
  void sleep(Clock::time_point until) override { inner_->sleep(until); }
  void wake() override { inner_->wake(); }
  Status close_doors() override { return inner_->close_doors(); }
  void cancel_all() override { inner_->cancel_all(); }
  std::string text() const override { return inner_->text(); }

 private:
  std::unique_ptr<Wire> inner_;
};

TEST(WireUpTest, GpusAreReachedIfTheWiresOfAllReachThem) {
  for (const int without : {-1, 0, 2}) {
    constexpr int kRanks = 3;
    ThreadNetwork network;
    auto groups = make_in_process_group(kRanks);
    on_all_ranks(kRanks, [&](int rank) {
      const auto open = [&] { return network.open(rank != without); };
      const auto wired =
          take(wire_up(*groups[static_cast<std::size_t>(rank)], open, Deadline(kPatience), kNever));
      require(wired.reaches_gpus == (without == -1), "the ranks have not agreed");
    });
  }
}

// Its rank's proofs are wrong in one bit.
class Liar : public WireShim {
 public:
  using WireShim::WireShim;
  Result<WireTicket> post(int peer, ByteView header, ByteView payload) override {
    lie_ = to_bytes(payload);
    lie_.front() ^= std::byte{1};
    return WireShim::post(peer, header, lie_);
  }

 private:
  Bytes lie_;
};

TEST(WireUpTest, RanksFindEachOtherAndAgreeOnANumber) {
  constexpr int kRanks = 5;
  ThreadNetwork network;
  auto groups = make_in_process_group(kRanks);
  std::vector<std::uint64_t> ids(kRanks);
  on_all_ranks(kRanks, [&](int rank) {
    Bootstrap& bootstrap = *groups[static_cast<std::size_t>(rank)];
    const auto wired = take(wire_up(
        bootstrap, [&] { return network.open(); }, Deadline(kPatience), kNever));
    ids[static_cast<std::size_t>(rank)] = wired.id;
  });
  for (const std::uint64_t id : ids) EXPECT_EQ(id, ids.front());
  EXPECT_NE(ids.front(), 0u);
}

TEST(WireUpTest, ARankThatCannotProveItselfIsNamed) {
  constexpr int kRanks = 3;
  ThreadNetwork network;
  auto groups = make_in_process_group(kRanks);
  on_all_ranks(kRanks, [&](int rank) {
    const OpenWire open = [&]() -> Result<std::unique_ptr<Wire>> {
      if (rank == 1) return std::unique_ptr<Wire>(std::make_unique<Liar>(network.open()));
      return network.open();
    };
    const auto wired =
        wire_up(*groups[static_cast<std::size_t>(rank)], open, Deadline(milliseconds(300)), kNever);
    ASSERT_FALSE(wired.is_ok());
    if (rank == 1) return;  // the others have not come to the end
    EXPECT_EQ(wired.status().code(), StatusCode::kPermission);
    EXPECT_THAT(wired.status().message(), AllOf(HasSubstr("rank 1"), HasSubstr("did not prove")));
  });
}

// A proof of another rank, of no rank and without a proof: the right ones come all the same.
TEST(WireUpTest, AStrangersMessagesAreDropped) {
  ThreadNetwork network;
  auto groups = make_in_process_group(2);
  on_all_ranks(2, [&](int rank) {
    const OpenWire open = [&] {
      auto wire = network.open();
      for (const int from : {0, 1, 7, -1}) {
        const auto header =
            to_header({.kind = NetworkMessage::Kind::kProof, .group = 1, .from = from});
        network.inject(wire->address(), header, Bytes(32));
      }
      network.inject(wire->address(), {}, Bytes(1000));
      return wire;
    };
    EXPECT_TRUE(wire_up(*groups[static_cast<std::size_t>(rank)], open, Deadline(kPatience), kNever)
                    .is_ok());
  });
}

TEST(WireUpTest, ARankWithoutANetworkEndsItForAllBeforeAnythingIsSent) {
  constexpr int kRanks = 3;
  ThreadNetwork network;
  auto groups = make_in_process_group(kRanks);
  on_all_ranks(kRanks, [&](int rank) {
    const OpenWire open = [&]() -> Result<std::unique_ptr<Wire>> {
      if (rank == 2) return Status(StatusCode::kPermission, "eth0 has a public address");
      return network.open();
    };
    const auto wired =
        wire_up(*groups[static_cast<std::size_t>(rank)], open, Deadline(kPatience), kNever);
    EXPECT_EQ(wired.status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(wired.status().message(),
                AllOf(HasSubstr("rank 2"), HasSubstr("eth0 has a public address")));
  });
}

}  // namespace
}  // namespace tutti::test
