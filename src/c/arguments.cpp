#include "c/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/version.hpp"

namespace tutti::c {
namespace {

// Of the bytes that this version does not know, the first that is set; `size` if there is none.
std::size_t first_unknown(const void* given, std::size_t known, std::size_t size) {
  const auto* const bytes = static_cast<const unsigned char*>(given);
  return static_cast<std::size_t>(
      std::find_if(bytes + known, bytes + size, [](unsigned char byte) { return byte != 0; }) -
      bytes);
}

}  // namespace

void Arguments::refuse(std::string_view what) {
  if (!is_ok()) return;
  status_ = {StatusCode::kInvalidArgument, fmt::format("{}: {}", function_, what)};
}

void Arguments::refuse_null(std::string_view name) { refuse(fmt::format("`{}` is null", name)); }

void Arguments::refuse_number(int number, std::string_view field) {
  refuse(fmt::format("`{}` has no value {}", field, number));
}

void Arguments::copy(const StructInfo& info, const void* given, void* own) {
  if (given == nullptr) return refuse(fmt::format("the {} is null", info.name));
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);  // the first member of each
  if (size < info.first || size > kLargestStruct) {
    return refuse(
        fmt::format("{}::size is {}: make the struct with its _init() function, which "
                    "sets {} in this version",
                    info.name, size, info.known));
  }
  if (size > info.known) {
    const std::size_t unknown = first_unknown(given, info.known, size);
    if (unknown != size) {
      return refuse(
          fmt::format("{} has {} bytes, and byte {} is set: tutti {} knows the first {}. "
                      "Leave the field at 0, or use the library of the program's header",
                      info.name, size, unknown, version(), info.known));
    }
  }
  if (own != nullptr) std::memcpy(own, given, std::min(size, info.known));
}

Scalar Arguments::scalar(const tutti_scalar_t& scalar) {
  switch (scalar.dtype) {
    case TUTTI_FLOAT64:
      return scalar.value.f64;
    case TUTTI_INT64:
      return scalar.value.i64;
    case TUTTI_UINT64:
      return scalar.value.u64;
    default:
      refuse("`op.scalar.dtype` is neither TUTTI_FLOAT64 nor TUTTI_INT64 nor TUTTI_UINT64");
      return {};
  }
}

ReduceOp Arguments::op(const tutti_reduce_op_t& op) {
  ReduceOp made{.kind = enumerator<OpKind>(op.kind, kAllOps.size(), "op.kind"),
                .device_scalar = op.device_scalar};
  if (made.kind == OpKind::kPreMulSum && made.device_scalar == nullptr) {
    made.scalar = scalar(op.scalar);
  }
  return made;
}

CallOptions Arguments::options(const tutti_call_options_t* options) {
  if (options == nullptr) return {};
  tutti_call_options_t own;
  const tutti_call_options_t& from = read(options, own);
  return {.algorithm = text(from.algorithm),
          .timeout = std::chrono::milliseconds(from.timeout_ms),
          .blocks = from.blocks,
          .threads = from.threads,
          .chunk_bytes = from.chunk_bytes,
          .sm_budget = sm_budget(from.sm_budget)};
}

OwnText copy_of(std::string_view text) {
  OwnText copy(new char[text.size() + 1]);
  std::copy(text.begin(), text.end(), copy.get());
  copy[text.size()] = '\0';
  return copy;
}

}  // namespace tutti::c
