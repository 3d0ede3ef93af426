#include "executors/network/message.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include "base/bytes.hpp"

namespace tutti::test {
namespace {

NetworkMessage some_message() {
  NetworkMessage message;
  message.kind = NetworkMessage::Kind::kCredit;
  message.domain = NetworkMessage::Domain::kToSender;
  message.group = 0xfedcba9812345678;
  message.from = 77;
  message.sequence = 0x1122334455667788;
  message.signature = 0xdeadbeef;
  message.partition = 3;
  message.step = 4;
  message.chunk = 5;
  return message;
}

TEST(NetworkMessageTest, IsWhatWasWritten) {
  const NetworkMessage message = some_message();
  const NetworkHeader header = to_header(message);
  const auto parsed = parse_network_message(header);
  ASSERT_TRUE(parsed.is_ok());
  EXPECT_EQ(*parsed, message);
  // The layout, which hosts of all kinds share.
  EXPECT_EQ(header[8], std::byte{0x78});
  EXPECT_EQ(header[15], std::byte{0xfe});
  EXPECT_EQ(header[20], std::byte{0x88});
  EXPECT_EQ(header[40], std::byte{5});
}

TEST(NetworkMessageTest, EverythingElseIsRefused) {
  const NetworkHeader right = to_header(some_message());
  const auto refuses = [](ByteView header) {
    const auto parsed = parse_network_message(header);
    return !parsed.is_ok() && parsed.status().code() == StatusCode::kMismatch;
  };
  const Bytes longer(right.size() + 1);
  EXPECT_TRUE(refuses({}));
  EXPECT_TRUE(refuses(ByteView(right).first(right.size() - 1)));
  EXPECT_TRUE(refuses(longer));
  // The magic, the version, unknown kinds and domains, the filler, and a negative rank.
  for (const std::size_t at : {0, 3, 4, 5, 6, 7, 19}) {
    NetworkHeader wrong = right;
    wrong[at] = std::byte{0xff};
    EXPECT_TRUE(refuses(wrong)) << at;
  }
}

}  // namespace
}  // namespace tutti::test
