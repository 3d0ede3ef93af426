#include "support/workbench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "support/check.hpp"
#include "support/compare.hpp"
#include "support/device_scalar.hpp"

namespace tutti::test {
namespace {

// What canaries look like: no two neighbours alike, so that shifted data shows, too.
std::byte canary(std::size_t at) { return static_cast<std::byte>((at * 131 + 0x5b) & 0xff); }

Bytes with_canaries(std::size_t before, ByteView payload) {
  Bytes image(before + payload.size() + Workbench::kGuard);
  for (std::size_t i = 0; i < before; ++i) image[i] = canary(i);
  std::copy(payload.begin(), payload.end(), image.begin() + static_cast<std::ptrdiff_t>(before));
  for (std::size_t i = before + payload.size(); i < image.size(); ++i) image[i] = canary(i);
  return image;
}

Bytes complement(ByteView bytes) {
  Bytes result(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) result[i] = ~bytes[i];
  return result;
}

}  // namespace

std::string_view to_string(BufferKind kind) {
  switch (kind) {
    case BufferKind::kSymmetric:
      return "symmetric";
    case BufferKind::kRegistered:
      return "registered";
    case BufferKind::kRegisteredVirtual:
      return "registered_vmm";
    case BufferKind::kPlain:
      break;
  }
  return "plain";
}

Workbench::Workbench(Communicator& group, Device& device, BufferKind kind, std::size_t bytes,
                     std::shared_ptr<Oracle> oracle)
    : group_(group),
      device_(device),
      oracle_(oracle != nullptr ? std::move(oracle) : std::make_shared<Oracle>(group.rank())),
      half_bytes_(round_up(bytes + 2 * kGuard, 4 * KiB)) {
  const std::size_t total = 2 * half_bytes_ + kScalarRoom;
  if (kind == BufferKind::kSymmetric) {
    shared_ = take(group.allocate(total));
    memory_ = static_cast<std::byte*>(shared_.data());
    return;
  }
  const bool virtual_memory = kind == BufferKind::kRegisteredVirtual;
  own_.emplace(device, total, virtual_memory ? MemoryKind::kVirtual : MemoryKind::kOrdinary);
  memory_ = own_->get();
  if (kind != BufferKind::kPlain) shared_ = take(group.register_memory(memory_, total));
}

const Answer& Workbench::answer(const Trial& trial) {
  return oracle_->answer({.dtype = trial.dtype,
                          .op = trial.op,
                          .kind = trial.inputs,
                          .ranks = group_.size(),
                          .seed = trial.seed},
                         trial.count);
}

void Workbench::lay_out(std::byte* half, std::size_t offset, ByteView payload) {
  const Bytes image = with_canaries(kGuard + offset, payload);
  require(image.size() <= half_bytes_, "the workbench is too small for this trial");
  device_.write(half, image.data(), image.size());
}

AllReduce Workbench::prepare(const Trial& trial, Stream stream) {
  const Answer& known = answer(trial);
  const std::size_t element = size_of(trial.dtype), bytes = trial.count * element;
  const std::size_t offset = static_cast<std::size_t>(trial.offset) * element;
  const ByteView input(known.input.data(), bytes), expected(known.expected.data(), bytes);
  std::byte* const output_half = memory_ + half_bytes_;
  if (trial.in_place) {
    lay_out(output_half, offset, input);
  } else {
    lay_out(memory_, offset, input);
    lay_out(output_half, offset, complement(expected));
  }
  // In memory in every second trial that can have it there.
  ReduceOp op{trial.op, known.scalar};
  if ((trial.count + static_cast<std::size_t>(trial.offset)) % 2 == 1) {
    op = in_memory(device_, memory_ + 2 * half_bytes_, trial.dtype, op);
  }
  return {.input = (trial.in_place ? output_half : memory_) + kGuard + offset,
          .output = output_half + kGuard + offset,
          .count = trial.count,
          .dtype = trial.dtype,
          .op = op,
          .stream = stream,
          .options = {.algorithm = trial.algorithm}};
}

// Reads a half back; says which canary is gone.
std::string Workbench::read_back(const std::byte* half, std::size_t offset, Bytes& payload) {
  const std::size_t before = kGuard + offset, bytes = payload.size();
  Bytes image(before + bytes + kGuard);
  device_.read(image.data(), half, image.size());
  std::copy_n(image.begin() + static_cast<std::ptrdiff_t>(before), bytes, payload.begin());
  for (std::size_t i = 0; i < image.size(); ++i) {
    if (i >= before && i < before + bytes) continue;
    if (image[i] == canary(i)) continue;
    return i < before ? fmt::format("wrote {} bytes before the buffer", before - i)
                      : fmt::format("wrote {} bytes behind the buffer", i - before - bytes + 1);
  }
  return {};
}

std::string Workbench::check(const Trial& trial) {
  const Answer& known = answer(trial);
  const std::size_t element = size_of(trial.dtype), bytes = trial.count * element;
  const std::size_t offset = static_cast<std::size_t>(trial.offset) * element;
  Bytes payload(bytes);
  std::string text = read_back(memory_ + half_bytes_, offset, payload);
  if (!text.empty()) return "output: " + text;
  text = difference(trial.dtype, ByteView(known.expected.data(), bytes), payload);
  if (!text.empty() || trial.in_place) return text;
  text = read_back(memory_, offset, payload);
  if (!text.empty()) return "input: " + text;
  const bool untouched = std::equal(payload.begin(), payload.end(), known.input.begin());
  return untouched ? std::string() : "the input was changed";
}

}  // namespace tutti::test
