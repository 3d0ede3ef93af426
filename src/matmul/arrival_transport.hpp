// What brings the A of a gated matmul (matmul/transport.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tutti/status.hpp"

namespace tutti {

enum class ArrivalTransport : std::uint8_t { kCopyEngine, kPull };
std::string_view to_string(ArrivalTransport transport);  // "copy_engine", "pull"
Result<ArrivalTransport> parse_arrival_transport(std::string_view text);
// "auto": none. kInvalidArgument: another text.
Result<std::optional<ArrivalTransport>> parse_transport(std::string_view text);

}  // namespace tutti
