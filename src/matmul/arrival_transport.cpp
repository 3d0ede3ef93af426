#include "matmul/arrival_transport.hpp"

#include <fmt/format.h>

#include "base/names.hpp"

namespace tutti {
namespace {

constexpr Name<ArrivalTransport> kArrivalTransports[] = {
    {ArrivalTransport::kCopyEngine, "copy_engine"}, {ArrivalTransport::kPull, "pull"}};

}  // namespace

std::string_view to_string(ArrivalTransport transport) {
  return name_of<ArrivalTransport>(kArrivalTransports, transport);
}

Result<ArrivalTransport> parse_arrival_transport(std::string_view text) {
  return parse_name<ArrivalTransport>(kArrivalTransports, {}, "transport", text);
}

Result<std::optional<ArrivalTransport>> parse_transport(std::string_view text) {
  if (text == "auto") return std::optional<ArrivalTransport>();
  const auto named = parse_arrival_transport(text);
  if (named.is_ok()) return std::optional(*named);
  return Status(StatusCode::kInvalidArgument,
                fmt::format("transport \"{}\": auto, copy_engine or pull", text));
}

}  // namespace tutti
