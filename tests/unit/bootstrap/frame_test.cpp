#include "bootstrap/frame.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>

#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "fakes/fake_sockets.hpp"
#include "unit/bootstrap/ranks.hpp"

namespace tutti {
namespace {

class Frames : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
    here_.reset(pair[0]);
    there_.reset(pair[1]);
  }

  static Message message(std::uint64_t sequence, Bytes payload) {
    Message message;
    message.group = 7;
    message.sequence = sequence;
    message.payload = std::make_shared<const Bytes>(std::move(payload));
    return message;
  }

  // Sends and reads in turn until `count` messages have come.
  std::vector<Message> carry(std::size_t count) {
    std::vector<Message> messages;
    for (int turn = 0; turn < 100'000 && messages.size() < count; ++turn) {
      EXPECT_TRUE(writer_.flush(sockets_, here_.get()).is_ok());
      const auto progress = reader_.read(sockets_, there_.get(), messages);
      EXPECT_TRUE(progress.is_ok()) << progress.status().to_string();
      if (!progress.is_ok()) break;
    }
    return messages;
  }

  Status read_raw(const void* bytes, std::size_t count) {
    EXPECT_EQ(::write(here_.get(), bytes, count), static_cast<ssize_t>(count));
    std::vector<Message> messages;
    return reader_.read(sockets_, there_.get(), messages).status();
  }

  FakeSockets sockets_{real_sockets()};
  FrameWriter writer_;
  FrameReader reader_;
  Fd here_, there_;
};

TEST_F(Frames, ArriveWholeAndInOrderHoweverTheyAreCut) {
  for (const std::size_t cut : {std::size_t{1}, std::size_t{31}, std::size_t{33}, MiB}) {
    sockets_.max_transfer_bytes = cut;
    for (int i = 0; i < 5; ++i) writer_.add(message(i, testing::pattern(i, i * 50)));
    const auto messages = carry(5);
    ASSERT_EQ(messages.size(), 5u);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(messages[i].sequence, static_cast<std::uint64_t>(i));
      EXPECT_EQ(messages[i].group, 7u);
      EXPECT_EQ(*messages[i].payload, testing::pattern(i, i * 50));
    }
  }
}

TEST_F(Frames, CarryMoreThanASocketHolds) {
  writer_.add(message(1, testing::pattern(3, 5 * MiB)));
  const auto messages = carry(1);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(testing::is_pattern(*messages[0].payload, 3, 5 * MiB));
  EXPECT_TRUE(writer_.empty());
}

TEST_F(Frames, KeepDescriptorsWithTheirFrame) {
  sockets_.max_transfer_bytes = 5;
  for (int i = 0; i < 4; ++i) {
    Message part = message(i, testing::pattern(i, 40));
    part.kind = FrameKind::kDescriptors;
    for (int k = 0; k < i; ++k) {
      part.descriptors.push_back(testing::file_with(std::to_string(10 * i + k)));
    }
    writer_.add(std::move(part));
  }
  const auto messages = carry(4);
  ASSERT_EQ(messages.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(messages[i].descriptors.size(), static_cast<std::size_t>(i));
    for (int k = 0; k < i; ++k) {
      EXPECT_EQ(testing::content_of(messages[i].descriptors[k].get()), std::to_string(10 * i + k));
    }
  }
}

TEST_F(Frames, TakeTheMostDescriptorsTheSystemAllows) {
  Message part = message(1, {});
  part.kind = FrameKind::kDescriptors;
  for (std::size_t i = 0; i < Bootstrap::kMaxDescriptors; ++i) {
    part.descriptors.emplace_back(::dup(here_.get()));
  }
  writer_.add(std::move(part));
  const auto messages = carry(1);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].descriptors.size(), Bootstrap::kMaxDescriptors);
}

TEST_F(Frames, ReadNoMoreThanTheLimit) {
  for (int i = 0; i < 3; ++i) writer_.add(message(i, testing::pattern(i, 10)));
  ASSERT_TRUE(writer_.flush(sockets_, here_.get()).is_ok());
  std::vector<Message> first, rest;
  ASSERT_TRUE(reader_.read(sockets_, there_.get(), first, 1).is_ok());
  EXPECT_EQ(first.size(), 1u);
  FrameReader another;  // has no memory of the first: nothing of the second may be lost
  ASSERT_TRUE(another.read(sockets_, there_.get(), rest).is_ok());
  EXPECT_EQ(rest.size(), 2u);
}

TEST_F(Frames, RefuseHeadersThatCannotBeRight) {
  const auto refused = [](auto change) {
    FrameHeader header;
    change(header);
    return !check_header(header).is_ok();
  };
  EXPECT_FALSE(refused([](FrameHeader&) {}));
  EXPECT_TRUE(refused([](FrameHeader& h) { h.magic ^= 1; }));
  EXPECT_TRUE(refused([](FrameHeader& h) { h.version = 99; }));
  EXPECT_TRUE(refused([](FrameHeader& h) { h.kind = static_cast<FrameKind>(99); }));
  EXPECT_TRUE(refused([](FrameHeader& h) { h.length = Bootstrap::kMaxMessageBytes + 1; }));
  EXPECT_TRUE(refused([](FrameHeader& h) { h.length = 0xffffffff; }));
  EXPECT_TRUE(refused([](FrameHeader& h) { h.descriptors = 1; }));
  EXPECT_TRUE(refused([](FrameHeader& h) {
    h.kind = FrameKind::kDescriptors;
    h.descriptors = 254;
  }));
}

TEST_F(Frames, RefuseALengthBeforeItsBytesAreAwaited) {
  FrameHeader header;
  header.length = 0xffffffff;
  EXPECT_EQ(read_raw(&header, sizeof header).code(), StatusCode::kMismatch);
}

TEST_F(Frames, RefuseDescriptorsThatWereNotAnnounced) {
  FrameHeader header;
  const ByteView bytes = view_of(header);
  const std::array<int, 1> extra{here_.get()};
  ASSERT_TRUE(real_sockets().send(here_.get(), {&bytes, 1}, extra).is_ok());
  std::vector<Message> messages;
  EXPECT_EQ(reader_.read(sockets_, there_.get(), messages).status().code(), StatusCode::kMismatch);
}

TEST_F(Frames, RefuseAnnouncedDescriptorsThatDoNotCome) {
  FrameHeader header;
  header.kind = FrameKind::kDescriptors;
  header.descriptors = 2;
  EXPECT_EQ(read_raw(&header, sizeof header).code(), StatusCode::kMismatch);
}

TEST_F(Frames, ReportTheEndOfTheConnection) {
  here_.reset();
  std::vector<Message> messages;
  const auto progress = reader_.read(sockets_, there_.get(), messages);
  ASSERT_TRUE(progress.is_ok());
  EXPECT_TRUE(progress->closed);
}

}  // namespace
}  // namespace tutti
