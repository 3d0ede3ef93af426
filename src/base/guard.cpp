#include "base/guard.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <system_error>

namespace tutti {
namespace {

// So short that a std::string keeps it in itself.
constexpr const char* kOutOfMemory = "out of memory";

Status described(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return {StatusCode::kResourceExhausted, kOutOfMemory};
  } catch (const std::system_error& error) {
    return {StatusCode::kResourceExhausted,
            fmt::format("the system gives no thread or lock: {}; raise the limit of processes "
                        "(ulimit -u)",
                        error.what())};
  } catch (const std::exception& error) {
    return {StatusCode::kInternal, fmt::format("an exception: {}; this is a defect", error.what())};
  } catch (...) {
    return {StatusCode::kInternal, "an exception of no known kind; this is a defect"};
  }
}

}  // namespace

Status status_of_exception() noexcept {
  try {
    return described(std::current_exception());
  } catch (...) {
    return {StatusCode::kResourceExhausted, kOutOfMemory};
  }
}

}  // namespace tutti
