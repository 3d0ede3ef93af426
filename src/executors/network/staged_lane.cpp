#include "executors/network/staged_lane.hpp"

#include <algorithm>
#include <utility>

#include "base/convert.hpp"

namespace tutti {
namespace {

// The same on all ranks, which know nothing of each other's buffers.
std::size_t elements_of_piece(const StagedTransfer& transfer, std::size_t bytes) {
  const NetworkShape& shape = transfer.what.shape;
  const std::size_t row = transfer.most_rows * size_of(transfer.what.dtype);
  if (transfer.is_local || transfer.what.on_gpu || shape.count <= bytes / row) return shape.count;
  return std::max<std::size_t>(bytes / row / shape.unit, 1) * shape.unit;
}

std::uint64_t word_of(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// Rows that follow each other on both sides are one.
RequestedCopy joined(RequestedCopy copy) {
  if (copy.bytes == 0) copy.rows = 0;
  if (copy.rows > 1 && copy.to_stride == copy.bytes && copy.from_stride == copy.bytes) {
    copy.bytes *= copy.rows;
    copy.rows = 1;
  }
  return copy;
}

}  // namespace

RequestedCopy StagedLane::take_first_copy() {
  if (!has_next() || transfers_.front().is_local) return {};
  if (transfers_.front().scalar != nullptr) return copy_of_scalar(transfers_.front());
  take_next();
  return copy_in(0);
}

void StagedLane::take_next() {
  const StagedTransfer& transfer = transfers_[next_transfer_];
  const std::size_t most = elements_of_piece(transfer, slots_.bytes);
  const std::size_t whole = transfer.what.shape.count;
  const std::size_t count = std::min(most, whole - next_element_);
  piece(next_++) = {.transfer = &transfer, .first = next_element_, .count = count, .stride = most};
  next_element_ += count;
  if (next_element_ < whole) return;
  ++next_transfer_;
  next_element_ = 0;
}

RequestedCopy StagedLane::copy_of_scalar(const StagedTransfer& transfer) const {
  return {.to = word_of(slots_.scalar),
          .from = word_of(transfer.scalar),
          .bytes = size_of(transfer.what.dtype),
          .rows = 1};
}

RequestedCopy StagedLane::copy_in(std::uint64_t number) {
  const Piece& one = piece(number);
  if (one.transfer->what.on_gpu) return one.transfer->own;
  const NetworkOperation& what = one.transfer->what;
  const std::size_t size = size_of(what.dtype);
  return joined({.to = word_of(slots_.inputs[number % 2]),
                 .from = word_of(what.input) + one.first * size,
                 .to_stride = one.stride * size,
                 .from_stride = what.shape.stride * size,
                 .bytes = one.count * size,
                 .rows = one.transfer->input_rows});
}

RequestedCopy StagedLane::copy_out(std::uint64_t number) {
  const Piece& one = piece(number);
  if (one.transfer->what.on_gpu) return {};
  const NetworkOperation& what = one.transfer->what;
  const std::size_t size = size_of(what.dtype);
  const bool is_local = one.transfer->is_local;
  const std::byte* const from = is_local ? what.input : slots_.outputs[number % 2];
  return joined({.to = word_of(what.output) + one.first * size,
                 .from = word_of(from),
                 .to_stride = what.shape.stride * size,
                 .from_stride = one.stride * size,
                 .bytes = one.count * size,
                 .rows = one.transfer->output_rows});
}

NetworkOperation StagedLane::operation_of(std::uint64_t number, const Context& context) {
  const Piece& one = piece(number);
  NetworkOperation operation = one.transfer->what;
  operation.deadline = context.deadline;
  if (operation.on_gpu) return operation;
  operation.shape.count = one.count;
  if (operation.shape.stride != 0) operation.shape.stride = one.stride;
  operation.input = one.transfer->input_rows == 0 ? nullptr : slots_.inputs[number % 2];
  operation.output = one.transfer->output_rows == 0 ? nullptr : slots_.outputs[number % 2];
  if (one.transfer->scalar != nullptr) {
    operation.scalar = load_scalar(operation.dtype, slots_.scalar);
  }
  return operation;
}

bool StagedLane::advance(const Context& context) {
  bool did = false;
  for (std::uint64_t number = first_; number < next_; ++number) did |= advance(number, context);
  for (; first_ < next_ && piece(first_).state == Piece::State::kFinished; ++first_) did = true;
  for (; has_next(); did = true) {
    take_next();
    begin(next_ - 1, context);
  }
  return did;
}

void StagedLane::begin(std::uint64_t number, const Context& context) {
  if (piece(number).transfer->is_local) {
    ++started_;
    copy_or_finish(number, context);
    return;
  }
  const RequestedCopy copy = copy_in(number);
  if (copy.rows > 0) piece(number).awaited = context.copies.add(copy);
}

void StagedLane::copy_or_finish(std::uint64_t number, const Context& context) {
  Piece& one = piece(number);
  const RequestedCopy copy = copy_out(number);
  one.state = copy.rows > 0 ? Piece::State::kCopyingOut : Piece::State::kFinished;
  if (copy.rows > 0) one.awaited = context.copies.add(copy);
  if (omitted_ == CopyRule::kCopiedOut) one.state = Piece::State::kFinished;
}

// The engine counts operations, so pieces are started in their order.
bool StagedLane::advance(std::uint64_t number, const Context& context) {
  Piece& one = piece(number);
  const bool copied = context.copies.done() >= one.awaited;
  switch (one.state) {
    case Piece::State::kCopyingIn:
      if (number != started_ || !(copied || omitted_ == CopyRule::kCopiedIn)) return false;
      one.awaited = context.engine.start(operation_of(number, context));
      one.state = Piece::State::kMoving;
      ++started_;
      return true;
    case Piece::State::kMoving:
      if (omitted_ != CopyRule::kArrived && !context.engine.has_ended(one.awaited)) return false;
      copy_or_finish(number, context);
      return true;
    case Piece::State::kCopyingOut:
      if (!copied) return false;
      one.state = Piece::State::kFinished;
      return true;
    case Piece::State::kFinished:
      break;
  }
  return false;
}

}  // namespace tutti
