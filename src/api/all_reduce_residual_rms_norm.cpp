#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "api/group.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "operation/checks.hpp"
#include "tutti/collectives.hpp"

namespace tutti {
namespace {

constexpr std::string_view kNorm = "all_reduce_residual_rms_norm";
constexpr std::size_t kLeastHidden = 1024, kMostHidden = 16384, kHiddenUnit = 8;

DataType output_dtype(const AllReduceResidualRmsNorm& call) {
  return call.output_dtype.value_or(call.dtype);
}

bool has_8_bits(DataType dtype) {
  return dtype == DataType::kFloat8E4M3 || dtype == DataType::kFloat8E5M2;
}

Status check_types(const AllReduceResidualRmsNorm& call) {
  if (call.dtype != DataType::kFloat16 && call.dtype != DataType::kBfloat16 &&
      call.dtype != DataType::kFloat32) {
    return invalid(kNorm, "dtype must be fp16, bf16 or fp32");
  }
  if (call.output_dtype && !has_8_bits(*call.output_dtype)) {
    return invalid(kNorm, "output_dtype must be fp8_e4m3 or fp8_e5m2, or left out");
  }
  if (!(call.epsilon >= 0) || std::isinf(call.epsilon)) {
    return invalid(kNorm, fmt::format("epsilon {} must be finite and not negative", call.epsilon));
  }
  if (!(call.scale > 0) || std::isinf(call.scale)) {
    return invalid(kNorm, fmt::format("scale {} must be finite and above 0", call.scale));
  }
  if (call.scale != 1 && !call.output_dtype)
    return invalid(kNorm, "scale is for 8-bit output alone");
  return Status::ok();
}

Status check_shape(const AllReduceResidualRmsNorm& call) {
  if (call.hidden < kLeastHidden || call.hidden > kMostHidden || call.hidden % kHiddenUnit != 0) {
    return invalid(kNorm, fmt::format("hidden {} must be a multiple of {} from {} to {}",
                                      call.hidden, kHiddenUnit, kLeastHidden, kMostHidden));
  }
  if (call.tokens > kMostBytes / (call.hidden * size_of(call.dtype))) {
    return invalid(kNorm, "tokens x hidden overflows");
  }
  if (call.tokens > std::numeric_limits<std::uint32_t>::max()) {
    return invalid(kNorm, fmt::format("{} tokens are more than 2^32 - 1", call.tokens));
  }
  return Status::ok();
}

struct Buffer {
  std::string_view name;
  std::uintptr_t address;
  std::size_t bytes, element;
  bool written = false;
};

std::array<Buffer, 5> buffers_of(const AllReduceResidualRmsNorm& call) {
  const std::size_t element = size_of(call.dtype), bytes = call.tokens * call.hidden * element;
  const std::size_t out = size_of(output_dtype(call));
  const auto at = [](const void* buffer) { return reinterpret_cast<std::uintptr_t>(buffer); };
  return {{{"input", at(call.input), bytes, element},
           {"residual", at(call.residual), bytes, element},
           {"weight", at(call.weight), call.hidden * element, element},
           {"residual_output", at(call.residual_output), bytes, element, true},
           {"output", at(call.output), call.tokens * call.hidden * out, out, true}}};
}

bool may_be_one(const Buffer& a, const Buffer& b) {
  const bool outputs = b.name == "output" && a.name == "input" && a.element == b.element;
  const bool residuals = b.name == "residual_output" && a.name == "residual";
  return (outputs || residuals) && a.address == b.address;
}

Status check_overlap(const Buffer& a, const Buffer& b) {
  const bool apart = a.address + a.bytes <= b.address || b.address + b.bytes <= a.address;
  if (apart || (!a.written && !b.written) || may_be_one(a, b)) return Status::ok();
  return invalid(
      kNorm,
      fmt::format(
          "{} and {} overlap: only output may be input, unless it has 8 bits, and residual_output "
          "residual",
          a.name, b.name));
}

Status check_buffers(const AllReduceResidualRmsNorm& call) {
  if (call.tokens == 0) return Status::ok();
  const auto buffers = buffers_of(call);
  for (const Buffer& buffer : buffers) {
    if (buffer.address == 0) return invalid(kNorm, fmt::format("{} is null", buffer.name));
    if (buffer.address % buffer.element != 0) {
      return invalid(kNorm, fmt::format("{} must be aligned to its element size, {} bytes",
                                        buffer.name, buffer.element));
    }
  }
  for (std::size_t b = 1; b < buffers.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      const Status apart = check_overlap(buffers[a], buffers[b]);
      if (!apart.is_ok()) return apart;
    }
  }
  return Status::ok();
}

Status check(const AllReduceResidualRmsNorm& call) {
  Status status = check_types(call);
  if (status.is_ok()) status = check_shape(call);
  return status.is_ok() ? check_buffers(call) : status;
}

}  // namespace

Status all_reduce_residual_rms_norm(Communicator& communicator,
                                    const AllReduceResidualRmsNorm& call) {
  return guarded(communicator, [&]() -> Status {
    TUTTI_TRY(check(call));
    return submit(communicator, {.collective = Collective::kAllReduceResidualRmsNorm,
                                 .input = call.input,
                                 .output = call.residual_output,
                                 .count = call.tokens * call.hidden,
                                 .dtype = call.dtype,
                                 .stream = call.stream,
                                 .options = call.options,
                                 .norm = {.residual = static_cast<const std::byte*>(call.residual),
                                          .weight = static_cast<const std::byte*>(call.weight),
                                          .output = static_cast<std::byte*>(call.output),
                                          .tokens = static_cast<std::uint32_t>(call.tokens),
                                          .hidden = static_cast<std::uint32_t>(call.hidden),
                                          .epsilon = call.epsilon,
                                          .output_dtype = output_dtype(call),
                                          .scale = call.scale}});
  });
}

}  // namespace tutti
