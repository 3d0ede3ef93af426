// Calls of what works on the current GPU, made for a group whose GPU may be another one.
#pragma once

#include <type_traits>

#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "memory/device_scope.hpp"

namespace tutti {

// f() while the group's GPU is current; on the host just f().
template <class F>
std::invoke_result_t<F> on_device_of(const CommunicatorImpl& group, const F& f) {
  if (group.cuda() == nullptr) return f();
  const DeviceScope scope(*group.cuda(), group.device());
  TUTTI_TRY(scope.status());
  return f();
}

}  // namespace tutti
