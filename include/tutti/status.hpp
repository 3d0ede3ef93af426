// How tutti reports that something went wrong: Status (a code, a text, and where it arose) and
// Result<T> (a value or a Status). Nothing in the library throws or exits.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/export.hpp"

namespace tutti {

// What kind of failure. The text says which; the code says what a caller can do about it.
enum class StatusCode : std::uint8_t {
  kOk,
  kInvalidArgument,    // the call cannot be right; nothing was done; the communicator stays usable
  kUnsupported,        // right in itself, but this machine, build or algorithm cannot do it
  kUnavailable,        // a library, device or peer that is needed is not there
  kTimeout,            // a deadline passed; the communicator is poisoned
  kPeerFailed,         // a peer's process ended or reported a failure; the communicator is poisoned
  kMismatch,           // ranks disagree on an operation or a setting; both sides are named
  kAborted,            // abort() was called here or on a peer
  kResourceExhausted,  // memory, descriptors, shared memory or channels ran out
  kPermission,         // a peer did not prove that it belongs to the group
  kSystem,             // the operating system refused; the text holds its words
  kCuda,               // CUDA refused; the text holds its words
  kNccl,               // NCCL refused; the text holds its words
  kInternal,           // a defect in tutti
};

TUTTI_API std::string_view to_string(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(StatusCode code, std::string message,
         std::source_location where = std::source_location::current())
      : code_(code), message_(std::move(message)), where_(where) {}

  static Status ok() { return {}; }

  bool is_ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::source_location& where() const { return where_; }

  // "timeout: all_reduce #42: rank 3 waited ..."; "ok" for success.
  TUTTI_API std::string to_string() const;

  // The same failure with `context` and ": " before its text. Success stays success.
  TUTTI_API Status with_context(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::source_location where_;
};

// A value or the Status that says why there is none. A Result is never made from success alone.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Status failure)                         // NOLINT(google-explicit-constructor)
      : status_(failure.is_ok() ? Status(StatusCode::kInternal, "a Result without a value")
                                : std::move(failure)) {}

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }

  // Requires is_ok().
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace tutti
