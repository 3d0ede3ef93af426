// What arrives from a peer is checked before it is believed.
#include "memory/heap_messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

HeapMessage example() {
  HeapMessage message;
  message.call = {HeapCall::Kind::kRegister, 7, 3, {100, 200}};
  message.status = Status(StatusCode::kCuda, "no luck");
  message.device = 2;
  message.granularity = 4096;
  message.free_blocks = {{1, 8192}, {5, 4096}};
  message.offers = {Offer::staged("because"), Offer{}};
  message.offers[1].how = Offer::How::kMalloc;
  message.offers[1].identity = 0x123456789abcdef0;
  message.offers[1].offset = 512;
  message.offers[1].handle[63] = std::byte{9};
  return message;
}

TEST(HeapMessages, ComeBackAsTheyWere) {
  const auto decoded = decode_message(encode(example()));
  ASSERT_TRUE(decoded.is_ok());
  EXPECT_EQ(decoded->call, example().call);
  EXPECT_EQ(decoded->status.code(), StatusCode::kCuda);
  EXPECT_EQ(decoded->status.message(), "no luck");
  EXPECT_EQ(decoded->device, 2);
  EXPECT_EQ(decoded->granularity, 4096U);
  EXPECT_EQ(decoded->free_blocks, example().free_blocks);
  ASSERT_EQ(decoded->offers.size(), 2U);
  EXPECT_EQ(decoded->offers[0].reason, "because");
  EXPECT_EQ(decoded->offers[1].identity, 0x123456789abcdef0U);
  EXPECT_EQ(decoded->offers[1].handle[63], std::byte{9});
}

TEST(HeapMessages, EveryPrefixAndEveryExtensionIsRefused) {
  Bytes bytes = encode(example());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(decode_message(ByteView(bytes).first(length)).status().code(), StatusCode::kMismatch);
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode_message(bytes).status().code(), StatusCode::kMismatch);
}

TEST(HeapMessages, NoByteThatIsWrongLeadsAstray) {
  const Bytes bytes = encode(example());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Bytes wrong = bytes;
    wrong[at] = std::byte{0xff};
    const auto decoded = decode_message(wrong);
    if (!decoded.is_ok()) continue;
    EXPECT_EQ(decoded->call.sizes.size(), 2U);
    EXPECT_LE(decoded->offers.size(), 2U);
    for (const Offer& offer : decoded->offers) EXPECT_LE(offer.how, Offer::How::kVirtual);
  }
}

TEST(HeapMessages, OutcomesOfAnotherLengthAreRefused) {
  const std::vector<Status> outcomes = {Status(), Status(StatusCode::kCuda, "x")};
  const Bytes bytes = encode_outcomes(outcomes);
  EXPECT_TRUE(decode_outcomes(bytes, 2).is_ok());
  EXPECT_EQ(decode_outcomes(bytes, 1).status().code(), StatusCode::kMismatch);
  EXPECT_EQ(decode_outcomes(ByteView(bytes).first(bytes.size() - 1), 2).status().code(),
            StatusCode::kMismatch);
}

TEST(HeapMessages, TheLowestRankThatFailedCountsForEachSegment) {
  const Status failure(StatusCode::kCuda, "rank 2: x");
  const std::vector<Status> fine(2);
  const std::vector<Status> second = {Status(), Status(StatusCode::kCuda, "rank 1: x")};
  const std::vector<Bytes> per_rank = {encode_outcomes(fine), encode_outcomes(second),
                                       encode_outcomes(std::vector<Status>{failure, failure})};
  const auto combined = combine_outcomes(per_rank, 2);
  ASSERT_TRUE(combined.is_ok());
  EXPECT_EQ((*combined)[0].message(), "rank 2: x");
  EXPECT_EQ((*combined)[1].message(), "rank 1: x");
}

TEST(HeapMessages, WhoSendsNoMessageIsNamed) {
  const Bytes good = encode(example()), bad(3);
  EXPECT_THAT(decode_messages(std::vector{good, good, bad}).status().message(),
              HasSubstr("rank 2: what it sent is no message"));
  RankNames names = RankNames().split({4, 6, 8});
  names.found();
  EXPECT_THAT(decode_messages(std::vector{good, good, bad}, names).status().message(),
              HasSubstr("world rank 8 (rank 2 of the split group): what it sent"));
  EXPECT_THAT(combine_outcomes(std::vector<Bytes>{bad}, 1, names).status().message(),
              HasSubstr("world rank 4 (rank 0 of the split group): what it sent"));
  std::vector<HeapMessage> messages(3, example());
  messages[0].offers.clear();
  EXPECT_THAT(check_offers(messages).message(), HasSubstr("rank 0: what it sent"));
  messages[1] = example();
  messages[1].call.sizes.push_back(1);
  EXPECT_THAT(check_agreement(messages, names).message(),
              HasSubstr("world rank 6 (rank 1 of the split group) calls"));
}

TEST(HeapMessages, DisagreementNamesBothRanksAndWhatTheyGave) {
  std::vector<HeapMessage> messages(3);
  for (HeapMessage& message : messages) message.call = {HeapCall::Kind::kRegister, 1, 0, {10, 20}};
  EXPECT_TRUE(check_agreement(messages).is_ok());
  messages[1].status = Status(StatusCode::kCuda, "x");
  EXPECT_EQ(check_agreement(messages).message(), "register #1 (2 ranges): rank 1: x");
  messages[2].call.sizes[1] = 21;
  const Status status = check_agreement(messages);
  EXPECT_EQ(status.code(), StatusCode::kMismatch) << "comes before a failure";
  EXPECT_THAT(status.message(), HasSubstr("range 1 has 20 bytes on rank 0, 21 bytes on rank 2"));
  messages[2].call = {HeapCall::Kind::kRegister, 1, 4, {10, 20}};
  EXPECT_THAT(check_agreement(messages).message(),
              HasSubstr("rank 0 has 0 segments so far, rank 2 has 4"));
  messages[2].call = {HeapCall::Kind::kAllocate, 2, 0, {10}};
  EXPECT_THAT(check_agreement(messages).message(),
              AllOf(HasSubstr("rank 0 calls register #1"), HasSubstr("rank 2 calls allocate #2")));
}

}  // namespace
}  // namespace tutti
