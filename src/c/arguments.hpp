// What the C++ API takes, made of the structs of the C API.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "c/structs.hpp"
#include "tutti/collectives.hpp"
#include "tutti/matmul.hpp"
#include "tutti/one_sided.hpp"
#include "tutti/status.hpp"
#include "tutti/tutti.h"
#include "tutti/types.hpp"

namespace tutti::c {

// Reads the arguments of one call, and remembers the first thing that is wrong with them. What is
// wrong reads as a default.
class Arguments {
 public:
  explicit Arguments(const char* function) : function_(function) {}

  bool is_ok() const { return status_.is_ok(); }
  const Status& status() const { return status_; }
  void refuse(std::string_view what);
  void check(bool holds, std::string_view otherwise) {
    if (!holds) [[unlikely]]
      refuse(otherwise);
  }

  // The struct as this version has it: `*given`, or `own`, which gets what `given` knows.
  template <class T>
  const T& read(const T* given, T& own) {
    if (given != nullptr && given->size == sizeof(T)) [[likely]] {
      check_reserved(*given);
      return *given;
    }
    own = Versioned<T>::defaults();
    copy(Versioned<T>::kInfo, given, &own);
    own.size = sizeof(T);
    check_reserved(own);
    return own;
  }
  // The same of a struct that may be left out.
  template <class T>
  const T& read_optional(const T* given, T& own) {
    return given != nullptr ? read(given, own) : own = Versioned<T>::defaults();
  }

  // Whether a result can be written there.
  template <class T>
  void check_output(const T* out, std::string_view name) {
    if (out == nullptr) [[unlikely]]
      refuse_null(name);
    if constexpr (requires { out->size; }) {
      if (out != nullptr && out->size != sizeof(T)) copy(Versioned<T>::kInfo, out, nullptr);
    }
  }

  // `number` is 0 to count - 1.
  template <class E>
  E enumerator(int number, std::size_t count, std::string_view field) {
    if (number >= 0 && static_cast<std::size_t>(number) < count) [[likely]]
      return static_cast<E>(number);
    refuse_number(number, field);
    return E{};
  }
  DataType data_type(tutti_data_type_t dtype) {
    return enumerator<DataType>(dtype, kAllDataTypes.size(), "dtype");
  }
  Backend backend(tutti_backend_t backend) { return enumerator<Backend>(backend, 3, "backend"); }
  ReduceOp op(const tutti_reduce_op_t& op);
  CallOptions options(const tutti_call_options_t* options);
  static std::string_view text(const char* text) {
    return text == nullptr ? std::string_view() : std::string_view(text);
  }
  static std::optional<int> sm_budget(int budget) {
    return budget == -1 ? std::nullopt : std::optional(budget);
  }

 private:
  template <class T>
  void check_reserved(const T& given) {
    if constexpr (requires { given.reserved; }) check(given.reserved == 0, "`reserved` is not 0");
  }
  // Copies over `own`, unless that is null.
  void copy(const StructInfo& info, const void* given, void* own);
  void refuse_null(std::string_view name);
  void refuse_number(int number, std::string_view field);
  Scalar scalar(const tutti_scalar_t& scalar);

  const char* function_;
  Status status_;
};

// What the caller's struct has room for.
template <class T>
void write(const T& value, T* out) {
  const std::size_t size = out->size;
  std::memcpy(out, &value, size < sizeof(T) ? size : sizeof(T));
  out->size = size;
}

// Writes a result to the caller's struct, if that is in order: what `fill` makes of the defaults.
template <class T, class Fill>
Status give_struct(const char* function, std::string_view name, T* out, Fill&& fill) {
  Arguments in(function);
  in.check_output(out, name);
  if (!in.is_ok()) return in.status();
  T made = Versioned<T>::defaults();
  fill(made);
  write(made, out);
  return Status::ok();
}

// A string for tutti_string_free().
using OwnText = std::unique_ptr<char[]>;
OwnText copy_of(std::string_view text);

// The struct of the C++ API. A field of one name means the same in both.
template <class To, class From>
To made_of(const From& from, Arguments& in) {
  To to;
  if constexpr (requires { to.input; }) to.input = from.input;
  if constexpr (requires { to.output; }) to.output = from.output;
  if constexpr (requires { to.buffer; }) to.buffer = from.buffer;
  if constexpr (requires { to.from; }) to.from = from.from;
  if constexpr (requires { to.to; }) to.to = from.to;
  if constexpr (requires { to.count; }) to.count = from.count;
  if constexpr (requires { to.rows; }) to.rows = from.rows;
  if constexpr (requires { to.counts; }) to.counts = from.counts;
  if constexpr (requires { to.send_counts; }) to.send_counts = from.send_counts;
  if constexpr (requires { to.recv_counts; }) to.recv_counts = from.recv_counts;
  if constexpr (requires { to.max_count; }) to.max_count = from.max_count;
  if constexpr (requires { to.root; }) to.root = from.root;
  if constexpr (requires { to.peer; }) to.peer = from.peer;
  if constexpr (requires { to.channel; }) to.channel = from.channel;
  if constexpr (requires { to.times; }) to.times = from.times;
  if constexpr (requires { to.timeout; }) to.timeout = std::chrono::milliseconds(from.timeout_ms);
  if constexpr (requires { to.dtype; }) to.dtype = in.data_type(from.dtype);
  if constexpr (requires { to.op; }) to.op = in.op(from.op);
  if constexpr (requires { to.mover; }) to.mover = in.enumerator<Mover>(from.mover, 3, "mover");
  if constexpr (requires { to.device_counts; }) {
    const tutti_device_counts_t& counts = from.device_counts;
    to.device_counts = {
        .given = counts.given, .found = counts.found, .max_count = counts.max_count};
  }
  if constexpr (requires { to.options; }) to.options = in.options(from.options);
  to.stream = from.stream;
  return to;
}

}  // namespace tutti::c
