// What ranks tell each other while they agree on who survives (shrink_agreement.hpp), as values and
// as bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "tutti/status.hpp"

namespace tutti {

// One proposal of a list of members. A later round is higher; in one round the coordinator decides.
struct ShrinkBallot {
  std::uint32_t round = 0;  // 0: none yet
  std::int32_t coordinator = -1;
  std::uint64_t nonce = 0;  // random: no two proposals ever name the same group

  friend auto operator<=>(const ShrinkBallot&, const ShrinkBallot&) = default;
};

// Ranks are those of the group that shrinks.
struct ShrinkMessage {
  enum class Kind : std::uint8_t {
    kJoin,     // the sender waits for a proposal of `follows`, and takes none of anybody else
    kPropose,  // of the coordinator: `members` go on
    kReady,    // to the coordinator: the sender has created the group of `ballot`
    kCommit,   // all members have; passed on by whoever hears of it
    kGiveUp,   // the sender takes part no more; with a code, the members of `ballot` fail likewise
  };

  Kind kind = Kind::kJoin;
  ShrinkBallot ballot;        // kJoin: the last one that the sender accepted
  std::int32_t follows = -1;  // kJoin
  std::int64_t left_ns = 0;   // kJoin: how long the sender still waits for ranks that are missing
  std::vector<std::int32_t> members;  // kPropose: ascending
  StatusCode code = StatusCode::kOk;  // kGiveUp
  std::string text;                   // kGiveUp: at most 4 KiB

  friend auto operator<=>(const ShrinkMessage&, const ShrinkMessage&) = default;
};

Bytes encode(const ShrinkMessage& message);
// kMismatch where the bytes cannot be one of a group of `group_size` ranks.
Result<ShrinkMessage> decode_shrink_message(ByteView bytes, int group_size);

}  // namespace tutti
