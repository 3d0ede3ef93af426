#include "drivers/ucx_settings.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace tutti {

std::string ucx_words(UcxStatus status) {
  switch (status) {
    case UcxStatus::kIoError:
      return "input/output error";
    case UcxStatus::kNoMemory:
      return "out of memory";
    case UcxStatus::kInvalidParameter:
      return "invalid parameter";
    case UcxStatus::kUnreachable:
      return "unreachable";
    case UcxStatus::kNoDevice:
      return "no such transport or device";
    case UcxStatus::kCanceled:
      return "cancelled";
    case UcxStatus::kConnectionReset:
      return "connection reset";
    case UcxStatus::kEndpointTimeout:
      return "it does not answer";
    default:
      return fmt::format("status {}", static_cast<int>(status));
  }
}

Status ucx_failure(std::string_view what, UcxStatus status) {
  return {
      status == UcxStatus::kNoMemory ? StatusCode::kResourceExhausted : StatusCode::kUnavailable,
      fmt::format("UCX: {}: {}", what, ucx_words(status))};
}

UcxSettings::~UcxSettings() {
  if (config_ != nullptr) ucx_.config_release(config_);
}

Status UcxSettings::read() {
  const UcxStatus status = ucx_.config_read(nullptr, nullptr, &config_);
  return status == UcxStatus::kOk ? Status() : ucx_failure("reading its settings", status);
}

bool UcxSettings::is_set(const std::string& name) {
  return std::getenv(("UCX_" + name).c_str()) != nullptr;
}

Status UcxSettings::set(const std::string& name, const std::string& value) {
  if (is_set(name)) return {};
  const UcxStatus status = ucx_.config_modify(config_, name.c_str(), value.c_str());
  if (status == UcxStatus::kOk) return {};
  return ucx_failure(fmt::format("UCX_{}={}", name, value), status);
}

}  // namespace tutti
