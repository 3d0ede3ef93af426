// Byte buffers, and values as bytes: what bootstrap carries.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tutti {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView view_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

template <class T>
requires std::is_trivially_copyable_v<T> ByteView view_of(const T& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof value};
}

inline Bytes to_bytes(ByteView view) { return {view.begin(), view.end()}; }

// Requires bytes.size() == sizeof(T): the caller has checked the length before.
template <class T>
requires std::is_trivially_copyable_v<T> T from_bytes(ByteView bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace tutti
