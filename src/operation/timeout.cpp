#include "operation/timeout.hpp"

#include <fmt/core.h>

#include <array>
#include <string_view>

#include "base/names.hpp"

namespace tutti {
namespace {

constexpr std::array<Name<TimeoutSource>, 5> kSources = {
    {{TimeoutSource::kDefault, ", the default of TUTTI_TIMEOUT_MS"},
     {TimeoutSource::kSetting, " from TUTTI_TIMEOUT_MS"},
     {TimeoutSource::kCreation, " from CommunicatorOptions::timeout"},
     {TimeoutSource::kSetTimeout, " from Communicator::set_timeout()"},
     {TimeoutSource::kCall, " from this call's own timeout"}}};

}  // namespace

std::string to_string(const Timeout& timeout) {
  return fmt::format("timeout {} ms{}", timeout.value.count(),
                     name_of<TimeoutSource>(kSources, timeout.source));
}

}  // namespace tutti
