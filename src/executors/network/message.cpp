#include "executors/network/message.hpp"

#include <cstddef>
#include <limits>
#include <type_traits>

namespace tutti {
namespace {

constexpr std::uint32_t kNetworkMagic = 0x54574e01;  // the last byte is the version of the layout

class HeaderWriter {
 public:
  explicit HeaderWriter(NetworkHeader& header) : header_(header) {}

  template <class T>
  void put(T value) {
    static_assert(std::is_unsigned_v<T>);
    for (std::size_t k = 0; k < sizeof(T); ++k) {
      header_[at_++] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * k));
    }
  }

 private:
  NetworkHeader& header_;
  std::size_t at_ = 0;
};

// Of a header whose length was checked.
class HeaderReader {
 public:
  explicit HeaderReader(ByteView header) : header_(header) {}

  template <class T>
  T get() {
    static_assert(std::is_unsigned_v<T>);
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < sizeof(T); ++k) {
      value |= std::to_integer<std::uint64_t>(header_[at_++]) << (8 * k);
    }
    return static_cast<T>(value);
  }

 private:
  ByteView header_;
  std::size_t at_ = 0;
};

Status no_header() {
  return {StatusCode::kMismatch,
          "what came is no header of a message between ranks: all ranks must run the same version "
          "of tutti"};
}

}  // namespace

NetworkHeader to_header(const NetworkMessage& message) {
  NetworkHeader header = {};
  HeaderWriter out(header);
  out.put(kNetworkMagic);
  out.put(static_cast<std::uint8_t>(message.kind));
  out.put(static_cast<std::uint8_t>(message.domain));
  out.put(std::uint16_t{0});
  out.put(message.group);
  out.put(static_cast<std::uint32_t>(message.from));
  out.put(message.sequence);
  out.put(message.signature);
  out.put(message.partition);
  out.put(message.step);
  out.put(message.chunk);
  return header;
}

Result<NetworkMessage> parse_network_message(ByteView header) {
  if (header.size() != std::tuple_size_v<NetworkHeader>) return no_header();
  HeaderReader in(header);
  if (in.get<std::uint32_t>() != kNetworkMagic) return no_header();
  const auto kind = in.get<std::uint8_t>();
  const auto domain = in.get<std::uint8_t>();
  const auto filler = in.get<std::uint16_t>();
  NetworkMessage message;
  message.group = in.get<std::uint64_t>();
  const auto from = in.get<std::uint32_t>();
  if (kind > static_cast<std::uint8_t>(NetworkMessage::Kind::kAlive) ||
      domain > static_cast<std::uint8_t>(NetworkMessage::Domain::kToSender) || filler != 0 ||
      from > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
    return no_header();
  }
  message.kind = static_cast<NetworkMessage::Kind>(kind);
  message.domain = static_cast<NetworkMessage::Domain>(domain);
  message.from = static_cast<int>(from);
  message.sequence = in.get<std::uint64_t>();
  message.signature = in.get<std::uint32_t>();
  message.partition = in.get<std::uint32_t>();
  message.step = in.get<std::uint32_t>();
  message.chunk = in.get<std::uint32_t>();
  return message;
}

}  // namespace tutti
