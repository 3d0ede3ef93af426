#include "bench/frame.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "base/fd.hpp"

namespace tutti::cli {
namespace {

class Frames : public testing::Test {
 protected:
  Frames() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_.reset(ends[0]);
    write_.reset(ends[1]);
    ::fcntl(read_.get(), F_SETFL, O_NONBLOCK);
  }
  void send_raw(const std::string& bytes) {
    EXPECT_EQ(::write(write_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  Fd read_, write_;
  FrameReader reader_;
};

TEST_F(Frames, ArriveWholeAndInOrder) {
  ASSERT_TRUE(write_frame(write_.get(), "first"));
  ASSERT_TRUE(write_frame(write_.get(), ""));
  ASSERT_TRUE(write_frame(write_.get(), "third"));
  ASSERT_TRUE(reader_.read_from(read_.get()));
  EXPECT_EQ(reader_.next(), "first");
  EXPECT_EQ(reader_.next(), "");
  EXPECT_EQ(reader_.next(), "third");
  EXPECT_EQ(reader_.next(), std::nullopt);
  EXPECT_FALSE(reader_.at_end());
}

TEST_F(Frames, ArrivePieceByPiece) {
  const std::string whole("\5\0\0\0hello", 9);
  for (const char byte : whole.substr(0, 8)) {
    send_raw({byte});
    ASSERT_TRUE(reader_.read_from(read_.get()));
    EXPECT_EQ(reader_.next(), std::nullopt);
  }
  send_raw(whole.substr(8));
  ASSERT_TRUE(reader_.read_from(read_.get()));
  EXPECT_EQ(reader_.next(), "hello");
}

TEST_F(Frames, ThatEndInTheMiddleAreSeen) {
  send_raw(std::string("\5\0\0\0he", 6));
  write_.reset();
  ASSERT_TRUE(reader_.read_from(read_.get()));
  EXPECT_EQ(reader_.next(), std::nullopt);
  EXPECT_TRUE(reader_.at_end());
  EXPECT_TRUE(reader_.has_rest());
}

TEST_F(Frames, OfAnUnbelievableLengthAreRefused) {
  const std::uint32_t length = kMaxFrameBytes + 1;
  std::string header(sizeof length, '\0');
  std::memcpy(header.data(), &length, sizeof length);
  send_raw(header);
  const Status status = reader_.read_from(read_.get());
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_EQ(status.message(), "a frame claims 16777217 bytes");
  EXPECT_EQ(reader_.next(), std::nullopt);
}

TEST_F(Frames, ToAReaderThatIsGoneFail) {
  ::signal(SIGPIPE, SIG_IGN);
  read_.reset();
  EXPECT_EQ(write_frame(write_.get(), "x").code(), StatusCode::kPeerFailed);
  ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace tutti::cli
