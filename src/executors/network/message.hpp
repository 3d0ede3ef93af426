// The header of each message between ranks: what it is about, so that the order of arrival does not
// matter, and so that what belongs to another operation or an ended group is noticed.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "tutti/status.hpp"

namespace tutti {

struct NetworkMessage {
  enum class Kind : std::uint8_t {
    kProof,   // the payload proves that the sender belongs to the group
    kData,    // a chunk
    kCredit,  // the sender has opened partition `partition` of operation `sequence`: send all of it
    kAlive,   // a sign of life: `chunk` is one of Sign
  };
  struct Sign {
    static constexpr std::uint32_t kAnswer = 0, kQuestion = 1;
    // The sender leaves once the other one has all that was sent before, and its answer.
    static constexpr std::uint32_t kLeaving = 2, kHasAll = 3;
  };
  // Among which operations `sequence` counts.
  enum class Domain : std::uint8_t {
    kGroup,       // those of the whole group
    kToReceiver,  // those that move data from the sender of this message to its receiver alone
    kToSender,    // the other way
  };
  Kind kind = Kind::kData;
  Domain domain = Domain::kGroup;
  std::uint64_t group = 0;  // proved (wire_up.hpp): messages with another one are dropped
  int from = 0;             // rank
  std::uint64_t sequence = 0;
  std::uint32_t signature = 0;  // of the operation: another one is a mismatch
  std::uint32_t partition = 0;
  std::uint32_t step = 0;   // which of the sender's sends to this rank, counted from 0
  std::uint32_t chunk = 0;  // of the step's range
  friend bool operator==(const NetworkMessage&, const NetworkMessage&) = default;
};

// Little-endian, with a magic and a version in front. Parsing refuses everything that is not
// exactly that.
using NetworkHeader = std::array<std::byte, 44>;
NetworkHeader to_header(const NetworkMessage& message);
Result<NetworkMessage> parse_network_message(ByteView header);

}  // namespace tutti
