// Strangers at the door while a group forms, and members that break the protocol once inside: they
// are dropped and reported, and nobody else is harmed.
#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <optional>

#include "bootstrap/failure_notice.hpp"
#include "fakes/fake_sockets.hpp"
#include "unit/bootstrap/strangers.hpp"

namespace tutti {
namespace {

using namespace testing;

// Keeps what is sent.
class RecordingSockets final : public FakeSockets {
 public:
  RecordingSockets() : FakeSockets(real_sockets()) {}
  Result<SocketTransfer> send(int socket, std::span<const ByteView> parts,
                              std::span<const int> descriptors) override {
    auto sent = FakeSockets::send(socket, parts, descriptors);
    std::size_t left = sent.is_ok() ? sent->bytes : 0;
    for (const ByteView part : parts) {
      const ByteView gone = part.first(std::min(left, part.size()));
      said.insert(said.end(), gone.begin(), gone.end());
      left -= gone.size();
    }
    return sent;
  }
  Bytes said;
};

void say(const Fd& socket, ByteView words) {
  // The other end may have hung up already.
  static_cast<void>(::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL));
}

class Strangers : public ::testing::TestWithParam<GroupKind> {
 protected:
  JoinOptions options() {
    JoinOptions options = options_in(directory_);
    options.strangers = &strangers_;
    options.stranger_deadline = kNever;  // members must not wait for it
    return options;
  }

  // What rank 1 of 2 says in a handshake with rank 0 that succeeds. That group comes to nothing.
  Bytes record_a_handshake() {
    auto root = join_later(id_, 0, 2, soon(), options_in(directory_));
    RecordingSockets sockets;
    const Fd call = dial_root(id_, directory_);
    Handshake handshake = Handshake::initiator(terms_of(id_, 1, 2), 0);
    const Status met = shake_hands(handshake, sockets, call.get());
    EXPECT_TRUE(met.is_ok()) << met.to_string();
    ::shutdown(call.get(), SHUT_RDWR);
    EXPECT_FALSE(root.get().is_ok());
    return sockets.said;
  }

  // The member that is still missing comes, and the group is made.
  void expect_group(std::future<JoinResult> root) {
    const auto member = join_group_with(id_, 1, 2, soon(), options_in(directory_));
    EXPECT_TRUE(member.is_ok()) << member.status().to_string();
    const JoinResult group = root.get();
    EXPECT_TRUE(group.is_ok()) << group.status().to_string();
  }

  const TemporaryDirectory directory_;
  const GroupId id_ = make_id(GetParam());
  int strangers_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Groups, Strangers, ::testing::Values(GroupKind::kLocal, GroupKind::kTcp),
                         [](const auto& parameter) { return name_of(parameter.param); });

TEST_P(Strangers, ThatReplayAHandshakeAreDropped) {
  const Bytes recorded = record_a_handshake();
  ASSERT_EQ(recorded.size(), 56u + 32u) << "hello and proof";
  auto root = join_later(id_, 0, 2, soon(), options());
  const Fd call = dial_root(id_, directory_);
  say(call, recorded);
  EXPECT_TRUE(is_hung_up_on(call.get()));
  expect_group(std::move(root));
  EXPECT_EQ(strangers_, 1);
}

// Negative control: without the check the recording is taken for rank 1, and rank 1 for an
// intruder.
TEST_P(Strangers, NegativeControlWithoutTheCheckAReplayGetsIn) {
  const Bytes recorded = record_a_handshake();
  JoinOptions careless = options();
  careless.check_proofs = false;
  auto root = join_later(id_, 0, 3, soon(), careless);
  const Fd call = dial_root(id_, directory_);
  Bytes words = recorded;
  words[12] = std::byte{3};  // it says it is one of three
  say(call, words);
  careless.strangers = nullptr;  // rank 0 counts them
  const auto member = join_group_with(id_, 1, 3, soon(), careless);
  EXPECT_EQ(member.status().code(), StatusCode::kMismatch) << member.status().to_string();
  ::shutdown(call.get(), SHUT_RDWR);
  EXPECT_FALSE(root.get().is_ok());
}

TEST_P(Strangers, WithAnotherSecretDoNotKeepMembersOut) {
  auto root = join_later(id_, 0, 2, soon(), options());
  const Fd call = dial_root(id_, directory_);
  HandshakeTerms wrong = terms_of(with_other_secret(id_), 1, 2);
  wrong.check_proofs = false;  // it does not care whom it talks to
  Handshake handshake = Handshake::initiator(wrong, 0);
  EXPECT_FALSE(shake_hands(handshake, real_sockets(), call.get()).is_ok());
  EXPECT_TRUE(is_hung_up_on(call.get()));
  expect_group(std::move(root));
  EXPECT_EQ(strangers_, 1);
}

// Half-open: after each part of what a member would say, silence.
TEST_P(Strangers, ThatStopHalfWayHoldUpNobody) {
  const Bytes recorded = record_a_handshake();
  auto root = join_later(id_, 0, 2, soon(), options());
  std::vector<Fd> calls;
  for (const std::size_t words : {0, 1, 55, 56, 57, 87}) {
    calls.push_back(dial_root(id_, directory_));
    say(calls.back(), ByteView(recorded).first(words));
  }
  expect_group(std::move(root));
  EXPECT_EQ(strangers_, 6);
  for (const Fd& call : calls) EXPECT_TRUE(is_hung_up_on(call.get()));
}

// Slow loris: always about to say more.
TEST_P(Strangers, ThatTrickleHoldUpNobody) {
  const Bytes recorded = record_a_handshake();
  auto root = join_later(id_, 0, 2, soon(), options());
  std::vector<Fd> calls;
  for (int i = 0; i < 50; ++i) calls.push_back(dial_root(id_, directory_));
  std::jthread trickle([&](const std::stop_token& stop) {
    for (std::size_t at = 0; at < recorded.size() && !stop.stop_requested(); ++at) {
      for (const Fd& call : calls) say(call, ByteView(recorded).subspan(at, 1));
      std::this_thread::sleep_for(10ms);
    }
  });
  expect_group(std::move(root));
  trickle.request_stop();
  trickle.join();
  EXPECT_EQ(strangers_, 50);
}

// Once a group is made nobody listens any more.
TEST_P(Strangers, FindNoDoorOnceTheGroupIsMade) {
  auto root = join_later(id_, 0, 2, soon(), options());
  const SocketAddress address = address_of(id_, directory_, 0);
  const auto member = join_group_with(id_, 1, 2, soon(), options_in(directory_));
  const JoinResult group = root.get();
  ASSERT_TRUE(member.is_ok() && group.is_ok());
  auto socket = real_sockets().connect(address);
  if (socket.is_ok()) {  // TCP: refused a moment later
    SocketWait wait{.fd = socket->get(), .write = true};
    ASSERT_TRUE(real_sockets().wait({&wait, 1}, soon()).is_ok());
    EXPECT_FALSE(real_sockets().connected(socket->get()).is_ok());
  }
}

// The first failure that a rank is told of.
class Told {
 public:
  Bootstrap::FailureHandler handler() {
    return [this](const GroupFailure& failure) {
      {
        const std::lock_guard lock(mutex_);
        failure_ = failure;
      }
      changed_.notify_all();
    };
  }
  std::optional<GroupFailure> within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [&] { return failure_.has_value(); });
    return failure_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<GroupFailure> failure_;
};

constexpr std::uint64_t kRootGroup = kHelloGroup + 1;

// Ranks 0 and 1 are as they should be; rank 2 is a rogue. Ranks 0 and 1 have a group of their own
// as well, which what rank 2 does must not touch.
class Rogues : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::future<JoinResult>> joins;
    for (const int rank : {0, 1}) {
      joins.push_back(join_later(id_, rank, 3, soon(), options_in(directory_)));
    }
    rogue_.emplace(id_, directory_, 3);
    rogue_->introduce_itself();
    for (auto& join : joins) {
      JoinResult group = join.get();
      ASSERT_TRUE(group.is_ok()) << group.status().to_string();
      groups_.push_back(std::move(group).value());
    }
    const std::int32_t no_part[2] = {-1, 0};  // a colour, a key
    rogue_->say(kRootGroup, 1, to_bytes(view_of(no_part)));
    pair_.resize(2);
    run_threads(2, [&](int rank) {
      auto pair = groups_[rank]->split(0, 0, soon());
      ASSERT_TRUE(pair.is_ok()) << pair.status().to_string();
      pair_[rank] = std::move(pair).value();
      pair_[rank]->found();
      groups_[rank]->set_failure_handler(told_[rank].handler());
    });
  }

  void TearDown() override {
    for (auto& group : groups_) group->set_failure_handler(nullptr);
    rogue_.reset();  // or the others' goodbyes would wait for its answer
  }

  // Rank 2 is thrown out at once and named, with `why`; the others go on without it.
  void expect_thrown_out(const std::string& why) {
    for (const int rank : {0, 1}) {
      const auto failure = told_[rank].within(kPatience);
      ASSERT_TRUE(failure.has_value()) << "rank " << rank << " was not told";
      EXPECT_EQ(failure->rank, 2);
      EXPECT_EQ(failure->code, StatusCode::kPeerFailed);
      EXPECT_NE(failure->text.find(why), std::string::npos) << failure->text;
      const Status status = groups_[rank]->barrier(soon());
      EXPECT_EQ(status.code(), StatusCode::kPeerFailed) << status.to_string();
    }
    for (const Fd& socket : rogue_->sockets()) EXPECT_TRUE(is_hung_up_on(socket.get()));
    expect_pair_is_unharmed();
  }

  void expect_pair_is_unharmed() {
    run_threads(2, [&](int rank) {
      const auto parts = pair_[rank]->all_gather(pattern(rank, 100), soon());
      ASSERT_TRUE(parts.is_ok()) << parts.status().to_string();
      EXPECT_EQ((*parts)[1 - rank], pattern(1 - rank, 100));
    });
  }

  const TemporaryDirectory directory_;
  const GroupId id_ = make_id(GroupKind::kLocal);
  std::optional<Rogue> rogue_;
  std::vector<std::unique_ptr<Bootstrap>> groups_, pair_;
  Told told_[2];
};

TEST_F(Rogues, ThatAreSilentHarmNobodyElse) { expect_pair_is_unharmed(); }

TEST_F(Rogues, ThatClaimALengthAreThrownOut) {
  FrameHeader header;
  header.group = kRootGroup;
  header.sequence = 2;
  header.length = 0xffffffff;
  rogue_->say(view_of(header));
  expect_thrown_out("length 4294967295");
}

TEST_F(Rogues, ThatSpeakAnotherProtocolAreThrownOut) {
  rogue_->say(view_of("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"));
  expect_thrown_out("magic");
}

TEST_F(Rogues, ThatRunAheadAreThrownOut) {
  Bytes calls;
  for (std::uint64_t sequence = 2; sequence < 8; ++sequence) {
    const Bytes call = Rogue::frame(FrameKind::kGather, kRootGroup, sequence, {});
    calls.insert(calls.end(), call.begin(), call.end());
  }
  rogue_->say(calls);
  expect_thrown_out("runs ahead");
}

TEST_F(Rogues, ThatWriteToAGroupOfOthersAreThrownOut) {
  // Its id is no secret from a member: it follows from the votes.
  Sha256 hash;
  const std::uint64_t split = 1;
  const int color = 0;
  hash.add(view_of("tutti split")).add(view_of(kRootGroup)).add(view_of(split)).add(view_of(color));
  rogue_->say(first_word(hash.finish()), 1, pattern(0, 100));
  expect_thrown_out("does not belong");
}

TEST_F(Rogues, ThatTellOfFailuresThatCannotBeAreThrownOut) {
  const Bytes notice = encode_failure({7, StatusCode::kPeerFailed, "rank 7 of 3 is gone"});
  rogue_->say(Rogue::frame(FrameKind::kFailure, kRootGroup, 0, notice));
  expect_thrown_out("failure notice");
}

TEST_F(Rogues, ThatSlipInDescriptorsAreThrownOut) {
  const Fd extra = file_with("extra");
  FrameHeader header;
  header.group = kRootGroup;
  header.sequence = 2;
  rogue_->say(view_of(header), {extra.get()});
  expect_thrown_out("announced 0 descriptors and brought 1");
}

// Half a frame is no offence, but the call it belongs to ends at its deadline and names its sender.
TEST_F(Rogues, ThatStopInsideAFrameAreNamedByTheTimeout) {
  FrameHeader header;
  header.group = kRootGroup;
  header.sequence = 2;
  header.length = 1000;
  rogue_->say(view_of(header));
  // Rank 1's part is there when rank 0 waits: what the pair does comes behind it.
  for (const int rank : {1, 0}) {
    const auto parts = groups_[rank]->all_gather(pattern(rank, 10), Deadline(50ms));
    EXPECT_EQ(parts.status().code(), StatusCode::kTimeout);
    const char* const missing = rank == 0 ? "rank 2 of 3" : "ranks 0 and 2 of 3";
    EXPECT_THAT(parts.status().message(), ::testing::HasSubstr(missing));
    expect_pair_is_unharmed();
  }
}

TEST(RogueIdentities, OfAnotherLengthAreRefusedByName) {
  const TemporaryDirectory directory;
  const GroupId id = make_id(GroupKind::kLocal);
  auto root = join_later(id, 0, 2, soon(), options_in(directory));
  Rogue rogue(id, directory, 2);
  rogue.say(kHelloGroup, 1, pattern(1, 3));
  const JoinResult group = root.get();
  EXPECT_EQ(group.status().code(), StatusCode::kMismatch) << group.status().to_string();
  EXPECT_NE(group.status().message().find("rank 1 said who it is in 3 bytes"), std::string::npos)
      << group.status().to_string();
  EXPECT_TRUE(directory.entries().empty());
}

}  // namespace
}  // namespace tutti
