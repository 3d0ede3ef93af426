/// \file
/// How tutti reports failures: Status (a code, a text and a source location) and Result<T> (a value
/// or a Status). Nothing in the library throws or exits.
///
/// Status is not std::error_code, because a number cannot say which operation failed, which rank
/// waited, which rank was missing and what to do about it. Branch on StatusCode, and print the
/// text.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/export.hpp"

namespace tutti {

/// What a caller can do about a failure; the text says what happened. "Fatal" codes end the
/// communicator: every later call returns the same failure, and recovery is a new communicator.
/// In Communicator::status() every code is fatal. docs/troubleshooting/errors.md has the advice for
/// each code.
enum class StatusCode : std::uint8_t {
  kOk,
  kInvalidArgument,    ///< invalid arguments; nothing was done, the communicator stays usable
  kUnsupported,        ///< valid, but this machine, build or algorithm cannot do it
  kUnavailable,        ///< a library, device or peer is missing
  kTimeout,            ///< a timeout passed; fatal
  kPeerFailed,         ///< a peer's process ended or reported a failure; fatal
  kMismatch,           ///< ranks disagree on an operation or a setting; fatal
  kAborted,            ///< abort() was called here or on a peer; fatal
  kResourceExhausted,  ///< out of memory, descriptors, shared memory or places in captures
  kPermission,         ///< a peer did not prove that it belongs to the group
  kSystem,             ///< the operating system failed; the text has its message
  kCuda,               ///< CUDA failed; the text has its message; fatal
  kNccl,               ///< NCCL failed; the text has its message; fatal
  kInternal,           ///< a defect in tutti; fatal
};

/// "timeout", "peer failed", ...
TUTTI_API std::string_view to_string(StatusCode code);

/// Success, or a failure with a code, a text and the source location where it arose.
class [[nodiscard]] Status {
 public:
  /// Success.
  Status() = default;
  Status(StatusCode code, std::string message,
         std::source_location where = std::source_location::current())
      : code_(code), message_(std::move(message)), where_(where) {}

  static Status ok() { return {}; }

  bool is_ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::source_location& where() const { return where_; }

  /// "timeout: all_reduce #42: rank 3 waited ..."; "ok" for success.
  TUTTI_API std::string to_string() const;

  /// The same failure with `context` and ": " in front of its text. Success stays success.
  TUTTI_API Status with_context(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::source_location where_;
};

/// A value, or the failure that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  /// A failure. Success is no failure, and makes a Result that is kInternal.
  Result(Status failure)  // NOLINT(google-explicit-constructor)
      : status_(failure.is_ok() ? Status(StatusCode::kInternal, "a Result without a value")
                                : std::move(failure)) {}

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }

  /// Requires is_ok(), as do the operators.
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
