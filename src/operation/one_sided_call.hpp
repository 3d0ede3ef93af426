// A call on one peer's memory, or a signal, as the communicator sees it: api/ makes it from what
// the user gave, and has checked that.
#pragma once

#include <string_view>

#include "device/one_sided.hpp"
#include "tutti/one_sided.hpp"

namespace tutti {

std::string_view to_string(OneSided kind);  // "put", "wait_signal"

struct OneSidedCall {
  OneSided kind = OneSided::kPut;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes = 0;
  int peer = 0, channel = 0;
  std::uint64_t times = 1;
  Mover mover = Mover::kAuto;
  Stream stream = nullptr;
  std::chrono::milliseconds timeout{0};

  // The side that is named by this rank's address, and meant at the peer's.
  const void* place() const { return kind == OneSided::kGet ? from : to; }
};

}  // namespace tutti
