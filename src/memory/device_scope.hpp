// Makes a device current on this thread for as long as the scope lasts.
#pragma once

#include "drivers/cuda.hpp"

namespace tutti {

class DeviceScope {
 public:
  DeviceScope(CudaDriver& cuda, int device) : cuda_(cuda), before_(cuda.current_device()) {
    status_ = before_.status();
    if (!status_.is_ok() || *before_ == device) return;
    status_ = cuda_.set_device(device);
    changed_ = status_.is_ok();
  }
  ~DeviceScope() {
    if (changed_) static_cast<void>(cuda_.set_device(*before_));
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  const Status& status() const { return status_; }

 private:
  CudaDriver& cuda_;
  Result<int> before_;
  Status status_;
  bool changed_ = false;
};

}  // namespace tutti
