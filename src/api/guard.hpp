// Of what ranks do together: where a rank breaks off, they may be out of step, so the group fails,
// and every rank hears why.
#pragma once

#include "base/guard.hpp"
#include "group/communicator_impl.hpp"
#include "tutti/communicator.hpp"

namespace tutti {

template <class F>
auto guarded(CommunicatorImpl& communicator, F&& f) noexcept {
  return guarded_by(std::forward<F>(f),
                    [&](const Status& failure) { return communicator.break_off(failure); });
}

template <class F>
auto guarded(const Communicator& communicator, F&& f) noexcept {
  return guarded(communicator.impl(), std::forward<F>(f));
}

}  // namespace tutti
