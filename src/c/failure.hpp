// The failure of the calling thread, and the frame that every function of the C API runs in: there
// exceptions end, and failures become the thread's.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "base/guard.hpp"
#include "c/handles.hpp"
#include "tutti/communicator.hpp"
#include "tutti/status.hpp"
#include "tutti/tutti.h"

namespace tutti::c {

// Remembers it as the thread's; `group` is whose failure it may be, or null.
tutti_status_t fail(const Status& status, const Communicator* group = nullptr) noexcept;
// What a handle is refused with that names nothing.
Status no_handle(const char* function, const char* kind, bool is_null);
tutti_status_t refuse_handle(const char* function, const char* kind, bool is_null) noexcept;
// The thread's failure.
Communicator::Failure& last_failure() noexcept;

// "tutti_put: what"
Status invalid(const char* function, std::string_view what);

// Where an object's failure may be that of a communicator.
inline const Communicator* group_of(const OpenCommunicator& open) { return &open.communicator; }
inline const Communicator* group_of(const OpenShardedParameters& open) {
  return &open.communicator.communicator;
}
inline const Communicator* group_of(const OpenPool& open) {
  const OpenCommunicator* const communicator = find(open.communicator);
  return communicator == nullptr ? nullptr : &communicator->communicator;
}
inline const Communicator* group_of(const SymmetricMemory&) { return nullptr; }
inline const Communicator* group_of(const SymmetricBlock&) { return nullptr; }
inline const Communicator* group_of(const LocalMemory&) { return nullptr; }

// Runs `body() -> Status`.
template <class Body>
tutti_status_t run(Body&& body) noexcept {
  const Status status = guarded(std::forward<Body>(body));
  return status.is_ok() ? TUTTI_OK : fail(status);
}

// Runs `body(object) -> Status` with what the handle names. If it closes the handle, it returns ok.
template <class Handle, class Body>
tutti_status_t run_on(const char* function, Handle* handle, Body&& body) noexcept {
  ObjectOf<Handle>* const object = find(handle);
  if (object == nullptr) return refuse_handle(function, HandleKind<Handle>::kName, !handle);
  const Status status = guarded([&] { return body(*object); });
  return status.is_ok() ? TUTTI_OK : fail(status, group_of(*object));
}

// Gives the object a handle.
template <class Handle>
Status give(std::unique_ptr<ObjectOf<Handle>> object, Handle** handle) {
  Handle* const made = open<Handle>(std::move(object));
  if (made == nullptr) return {StatusCode::kResourceExhausted, "out of memory"};
  *handle = made;
  return Status::ok();
}

// Closes the handle and destroys the object.
template <class Handle>
tutti_status_t end(const char* function, Handle* handle) noexcept {
  return close(handle) != nullptr
             ? TUTTI_OK
             : refuse_handle(function, HandleKind<Handle>::kName, handle == nullptr);
}

}  // namespace tutti::c
