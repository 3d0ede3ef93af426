#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>

#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/held_ports.hpp"
#include "bootstrap/identity.hpp"
#include "drivers/shared_memory.hpp"
#include "drivers/sockets.hpp"

namespace tutti {
namespace {

constexpr std::size_t kMaxTextBytes = 127;
constexpr std::size_t kSecretCharacters = 43;  // 32 bytes in base64 without padding
constexpr std::string_view kLocalPrefix = "tutti1-local-", kTcpPrefix = "tutti1-tcp-";
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(const Digest& secret) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (const std::byte byte : secret) {
    bits = (bits << 8) | std::to_integer<std::uint32_t>(byte);
    for (count += 8; count >= 6; count -= 6) text += kAlphabet[(bits >> (count - 6)) & 63];
  }
  return text + kAlphabet[(bits << (6 - count)) & 63];
}

bool decode(std::string_view text, Digest& secret) {
  std::uint32_t bits = 0;
  int count = 0;
  auto out = secret.begin();
  for (const char c : text) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return false;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8 || out == secret.end()) continue;
    count -= 8;
    *out++ = static_cast<std::byte>(bits >> count);
  }
  return out == secret.end();
}

// A local group's directory is "tutti-" and 16 hexadecimal digits: one name, never a path.
bool is_directory_name(std::string_view name) {
  constexpr std::string_view kStart = "tutti-";
  return name.size() == kStart.size() + 16 && name.starts_with(kStart) &&
         name.find_first_not_of("0123456789abcdef", kStart.size()) == std::string_view::npos;
}

Status check_address(bool is_local, const std::string& address) {
  if (is_local) {
    if (is_directory_name(address)) return Status::ok();
    return {StatusCode::kInvalidArgument, "a local group's id names no directory of tutti's"};
  }
  TUTTI_TRY(parse_host_port(address).status());
  const bool plain = std::all_of(address.begin(), address.end(), [](char c) {
    return std::isgraph(static_cast<unsigned char>(c)) != 0;
  });
  if (plain) return Status::ok();
  return {StatusCode::kInvalidArgument, fmt::format("\"{}\" is no host:port", address)};
}

}  // namespace

Result<GroupId> group_id_from(bool is_local, std::string address,
                              std::array<std::byte, 32> secret) {
  TUTTI_TRY(check_address(is_local, address));
  const std::size_t prefix = (is_local ? kLocalPrefix : kTcpPrefix).size();
  if (prefix + kSecretCharacters + 1 + address.size() > kMaxTextBytes) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("\"{}\" is too long for a group's id, at most {} characters are "
                              "possible; give a numeric address",
                              address, kMaxTextBytes - prefix - kSecretCharacters - 1));
  }
  GroupId id;
  id.is_local_ = is_local;
  id.address_ = std::move(address);
  id.secret_ = secret;
  return id;
}

Result<GroupId> GroupId::local() {
  TUTTI_ASSIGN(const Digest name, random_digest());
  TUTTI_ASSIGN(const Digest secret, random_digest());
  return group_id_from(true, fmt::format("tutti-{:016x}", first_word(name)), secret);
}

Result<GroupId> GroupId::tcp(std::string host, std::uint16_t port) {
  TUTTI_ASSIGN(const Digest secret, random_digest());
  if (port == 0) {
    constexpr std::chrono::seconds kToResolve{10};
    TUTTI_ASSIGN(port, hold_free_port(real_sockets(), host, Deadline(kToResolve)));
  }
  const bool v6 = host.find(':') != std::string::npos;
  return group_id_from(
      false, v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port), secret);
}

std::string GroupId::to_text() const {
  return fmt::format("{}{}-{}", is_local_ ? kLocalPrefix : kTcpPrefix, encode(secret_), address_);
}

Result<GroupId> GroupId::from_text(std::string_view text) {
  const Status wrong(StatusCode::kInvalidArgument,
                     "this is no group id of tutti, or it was cut short on its way");
  const bool is_local = text.starts_with(kLocalPrefix);
  if (text.size() > kMaxTextBytes || (!is_local && !text.starts_with(kTcpPrefix))) return wrong;
  text.remove_prefix((is_local ? kLocalPrefix : kTcpPrefix).size());
  Digest secret;
  if (text.size() < kSecretCharacters + 2 || text[kSecretCharacters] != '-' ||
      !decode(text.substr(0, kSecretCharacters), secret)) {
    return wrong;
  }
  return group_id_from(is_local, std::string(text.substr(kSecretCharacters + 1)), secret);
}

Result<Fd> group_id_descriptor(const GroupId& id) {
  const std::string text = id.to_text();
  return make_sealed_memory(view_of(text));
}

Result<GroupId> group_id_from_descriptor(int fd) {
  TUTTI_ASSIGN(const Bytes text, read_sealed_memory(fd, kMaxTextBytes));
  return GroupId::from_text({reinterpret_cast<const char*>(text.data()), text.size()});
}

}  // namespace tutti
