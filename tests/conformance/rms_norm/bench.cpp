#include "conformance/rms_norm/bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "support/check.hpp"
#include "support/compare.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kGuard = 1024;

std::byte canary(std::size_t at) { return static_cast<std::byte>((at * 131 + 0x5b) & 0xff); }

Bytes complement(ByteView bytes) {
  Bytes result(bytes.size());
  std::transform(bytes.begin(), bytes.end(), result.begin(), [](std::byte b) { return ~b; });
  return result;
}

std::size_t bytes_before(const NormCell& cell, DataType dtype) {
  return kGuard + static_cast<std::size_t>(cell.offset) * size_of(dtype);
}

}  // namespace

NormBench::NormBench(Communicator& group, Device& device, BufferKind kind, std::size_t bytes)
    : device_(device), area_bytes_(round_up(bytes + 2 * kGuard, 4 * KiB)) {
  const std::size_t total = kPlaces * area_bytes_;
  if (kind == BufferKind::kSymmetric) {
    shared_ = take(group.allocate(total));
    memory_ = static_cast<std::byte*>(shared_.data());
    return;
  }
  own_.emplace(device, total);
  memory_ = own_->get();
  if (kind != BufferKind::kPlain) shared_ = take(group.register_memory(memory_, total));
}

std::byte* NormBench::area(Place place) const { return memory_ + place * area_bytes_; }

NormBench::Place NormBench::place_of_output(const NormCell& cell) const {
  return cell.output_is_input ? kInput : kOutput;
}

NormBench::Place NormBench::place_of_residual_output(const NormCell& cell) const {
  return cell.residual_in_place ? kResidual : kResidualOutput;
}

void NormBench::write(Place place, std::size_t before, ByteView payload) {
  Bytes image(before + payload.size() + kGuard);
  require(image.size() <= area_bytes_, "the bench is too small for this cell");
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = canary(i);
  std::copy(payload.begin(), payload.end(), image.begin() + static_cast<std::ptrdiff_t>(before));
  device_.write(area(place), image.data(), image.size());
}

AllReduceResidualRmsNorm NormBench::prepare(const NormCell& cell, const NormAnswer& answer,
                                            Stream stream) {
  const NormSpec spec = cell.spec();
  const std::size_t before = bytes_before(cell, cell.dtype);
  const std::size_t before_output = bytes_before(cell, cell.output_dtype);
  write(kResidualOutput, before, complement(answer.residual_output));
  write(kOutput, before_output, complement(answer.output));
  write(kInput, before, answer.input);
  write(kResidual, before, answer.residual);
  write(kWeight, before, answer.weight);
  AllReduceResidualRmsNorm call{
      .input = area(kInput) + before,
      .residual = area(kResidual) + before,
      .weight = area(kWeight) + before,
      .residual_output = area(place_of_residual_output(cell)) + before,
      .output = area(place_of_output(cell)) + before_output,
      .tokens = cell.tokens,
      .hidden = cell.hidden,
      .dtype = cell.dtype,
      .epsilon = spec.epsilon,
      .scale = spec.scale,
      .stream = stream,
      .options = {.algorithm = cell.algorithm, .blocks = cell.blocks, .threads = cell.threads}};
  if (cell.output_dtype != cell.dtype) call.output_dtype = cell.output_dtype;
  return call;
}

std::string NormBench::read(Place place, std::size_t before, Bytes& payload) {
  Bytes image(before + payload.size() + kGuard);
  device_.read(image.data(), area(place), image.size());
  std::copy_n(image.begin() + static_cast<std::ptrdiff_t>(before), payload.size(), payload.begin());
  for (std::size_t i = 0; i < image.size(); ++i) {
    const bool inside = i >= before && i < before + payload.size();
    if (!inside && image[i] != canary(i)) return fmt::format("byte {} beside it was written", i);
  }
  return {};
}

std::string NormBench::compare(Place place, const NormCell& cell, DataType dtype,
                               ByteView expected) {
  constexpr std::string_view kNames[] = {"input", "residual", "weight", "residual_output",
                                         "output"};
  Bytes payload(expected.size());
  std::string text = read(place, bytes_before(cell, dtype), payload);
  if (text.empty()) text = difference(dtype, expected, payload);
  return text.empty() ? text : fmt::format("{}: {}; ", kNames[place], text);
}

std::string NormBench::check(const NormCell& cell, const NormAnswer& answer) {
  std::string text =
      compare(place_of_residual_output(cell), cell, cell.dtype, answer.residual_output);
  text += compare(place_of_output(cell), cell, cell.output_dtype, answer.output);
  text += compare(kWeight, cell, cell.dtype, answer.weight);
  if (!cell.output_is_input) text += compare(kInput, cell, cell.dtype, answer.input);
  if (!cell.residual_in_place) text += compare(kResidual, cell, cell.dtype, answer.residual);
  return text;
}

}  // namespace tutti::test
