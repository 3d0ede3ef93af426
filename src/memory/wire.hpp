// Values as bytes and back. The reader believes no length before it has checked it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/bytes.hpp"
#include "tutti/status.hpp"

namespace tutti {

class WireWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { append(view_of(value)); }

  void put_text(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    append(view_of(text));
  }

  void put_status(const Status& status) {
    put(status.code());
    put_text(status.message());
  }

  Bytes take() { return std::move(bytes_); }

 private:
  void append(ByteView view) { bytes_.insert(bytes_.end(), view.begin(), view.end()); }

  Bytes bytes_;
};

// After a value that is not there every further value is zero and complete() is false, so that a
// message is decoded in one go and checked once.
class WireReader {
 public:
  explicit WireReader(ByteView bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T get() {
    const ByteView bytes = take(sizeof(T));
    return bytes.empty() ? T{} : from_bytes<T>(bytes);
  }

  // An enumerator up to and including `last`.
  template <class E>
  requires std::is_enum_v<E> E get_enum(E last) {
    const auto value = get<std::underlying_type_t<E>>();
    if (value > static_cast<std::underlying_type_t<E>>(last)) {
      failed_ = true;
      return E{};
    }
    return static_cast<E>(value);
  }

  std::string get_text() {
    const auto length = get<std::uint32_t>();
    const ByteView text = take(length);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  Status get_status() {
    const auto code = get_enum(StatusCode::kInternal);
    std::string text = get_text();
    if (code != StatusCode::kOk) return {code, std::move(text)};
    failed_ |= !text.empty();  // success has none
    return {};
  }

  // How many elements of at least `element_bytes` follow; 0 if the rest cannot hold them.
  std::uint32_t get_count(std::size_t element_bytes) {
    const auto count = get<std::uint32_t>();
    if (count <= rest_.size() / element_bytes) return count;
    failed_ = true;
    return 0;
  }

  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  ByteView take(std::size_t bytes) {
    if (failed_ || bytes > rest_.size()) {
      failed_ = true;
      return {};
    }
    const ByteView taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }

  ByteView rest_;
  bool failed_ = false;
};

}  // namespace tutti
