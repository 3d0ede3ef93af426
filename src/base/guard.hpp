// The one place where exceptions end. Nothing in the library throws on purpose, but the standard
// library does where there is no memory or no thread: every public function, every thread and
// whatever must not end half-way runs within guarded() or one of its kin.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "tutti/status.hpp"

namespace tutti {

// Of the exception that is being handled: kResourceExhausted where memory or threads ran out, else
// kInternal. Asks for no memory if there is none.
Status status_of_exception() noexcept;

// What f returns; or, where it breaks off, what `tell(failure)` does.
template <class F, class Tell>
auto guarded_by(F&& f, Tell&& tell) noexcept -> std::invoke_result_t<F> {
  Status failure;
  try {
    return std::forward<F>(f)();
  } catch (...) {
    failure = status_of_exception();
  }
  try {
    return tell(failure);
  } catch (...) {
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      return;
    } else {
      return failure;
    }
  }
}

// What f returns, or the failure.
template <class F>
auto guarded(F&& f) noexcept {
  if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
    guarded_by(std::forward<F>(f), [](const Status&) {});
  } else {
    return guarded_by(std::forward<F>(f), [](Status& failure) { return std::move(failure); });
  }
}

// Of functions that make a text for people. What is told instead needs no memory.
template <class F>
std::string guarded_text(F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return "out of memory";
  }
}

}  // namespace tutti
