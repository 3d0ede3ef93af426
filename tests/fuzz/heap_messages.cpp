// What ranks tell each other about symmetric memory, of their settings, and how they tell of
// failures: bytes that are understood are the bytes that would have been written.
#include "memory/heap_messages.hpp"

#include <algorithm>
#include <array>

#include "bootstrap/failure_notice.hpp"
#include "fuzz/fuzz.hpp"
#include "group/agreement.hpp"
#include "memory/pool.hpp"

namespace tutti::fuzz {
namespace {

bool contains(const std::vector<FreeBlock>& blocks, std::uint32_t number) {
  return std::any_of(blocks.begin(), blocks.end(),
                     [&](const FreeBlock& block) { return block.number == number; });
}

// A rank gives back only what it has itself, whatever the others say they have.
void check_pool(const std::vector<FreeBlock>& theirs) {
  const std::vector<FreeBlock> own = {{1, 4096}, {2, 8192}, {5, 1 << 20}};
  const std::array<std::vector<FreeBlock>, 2> all = {theirs, own};
  const PoolDecision decision = decide_pool(all, 4096);
  must_hold(!decision.reuse || *decision.reuse == 1, "a block is reused that fits and is there");
  for (const auto& numbers : {decision.keep, decision.drop}) {
    for (const std::uint32_t number : numbers) must_hold(contains(own, number), "a block is there");
  }
}

void check_message(ByteView bytes) {
  const auto message = decode_message(bytes);
  if (!message.is_ok()) {
    must_hold(message.status().code() == StatusCode::kMismatch, "noise is a mismatch");
    return;
  }
  const Bytes written = encode(*message);
  must_hold(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()),
            "a message is the bytes that it was read from");
  const std::array<HeapMessage, 2> twice = {*message, *message};
  must_hold(check_agreement(twice).is_ok() == message->status.is_ok(), "a rank agrees with itself");
  if (check_offers(twice).is_ok()) {
    for (std::size_t k = 0; k < message->offers.size(); ++k) {
      const Offer& offer = message->offers[k];
      must_hold(offer.how == Offer::How::kStaged || offer.how == Offer::How::kPointer ||
                    (offer.offset <= offer.allocation_bytes &&
                     message->call.sizes[k] <= offer.allocation_bytes - offer.offset),
                "what is offered holds what was asked for");
    }
  }
  check_pool(message->free_blocks);
}

void check_outcomes(ByteView bytes) {
  for (const std::size_t expected : {0, 1, 3}) {
    const auto outcomes = decode_outcomes(bytes, expected);
    if (!outcomes.is_ok()) continue;
    const Bytes written = encode_outcomes(*outcomes);
    must_hold(outcomes->size() == expected, "as many outcomes as segments");
    must_hold(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()),
              "outcomes are the bytes that they were read from");
  }
}

void check_settings(ByteView bytes) {
  const auto values = decode_agreed_values(bytes);
  if (!values.is_ok()) return;
  const Bytes written = encode(*values);
  must_hold(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()),
            "settings are the bytes that they were read from");
  const std::array<std::vector<AgreedValue>, 2> twice = {*values, *values};
  must_hold(differences(twice, {}).empty(), "a rank agrees with itself");
}

void check_failure(ByteView bytes) {
  constexpr int kRanks = 4;
  const auto failure = decode_failure(bytes, kRanks);
  if (!failure.is_ok()) return;
  const Bytes written = encode_failure(*failure);
  must_hold(failure->rank >= -1 && failure->rank < kRanks, "a failure is of a member");
  must_hold(!to_status(*failure).is_ok(), "a failure is no success");
  must_hold(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()),
            "a failure is the bytes that it was read from");
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  const tutti::ByteView bytes = tutti::view_of(text_of(data, size));
  check_message(bytes);
  check_outcomes(bytes);
  check_failure(bytes);
  check_settings(bytes);
  return 0;
}
