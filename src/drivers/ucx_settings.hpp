// What every use of UCX needs: its words for a failure, and the settings of one context.
#pragma once

#include <string>
#include <string_view>

#include "drivers/ucx_api.hpp"
#include "tutti/status.hpp"

namespace tutti {

std::string ucx_words(UcxStatus status);
Status ucx_failure(std::string_view what, UcxStatus status);

// What the environment says has precedence over set().
class UcxSettings {
 public:
  explicit UcxSettings(const UcxCalls& ucx) : ucx_(ucx) {}
  ~UcxSettings();
  UcxSettings(const UcxSettings&) = delete;
  UcxSettings& operator=(const UcxSettings&) = delete;

  Status read();
  static bool is_set(const std::string& name);
  Status set(const std::string& name, const std::string& value);
  UcxConfig get() const { return config_; }

 private:
  const UcxCalls& ucx_;
  UcxConfig config_ = nullptr;
};

}  // namespace tutti
