/// \file
/// The collectives for ranges: the element type determines the DataType, the sizes determine the
/// count.
///
///     std::vector<float> input(n), output(n);
///     tutti::all_reduce(group, input, output);
///     tutti::all_reduce(group, data, {.op = tutti::ReduceOp::max()});  // in place
///     tutti::broadcast(group, memory.as<__half>(), 0, {.stream = stream});
///
/// A buffer is a std::span, or an lvalue of another contiguous range (std::vector, std::array, a C
/// array). DataTypeOf (tutti/types.hpp) lists the element types. Input and output have the same
/// element type.
///
/// Each function checks the sizes and then calls the function of the same name in
/// tutti/collectives.hpp, which defines the operation, its buffers, its order and its errors. Sizes
/// that do not fit are kInvalidArgument, and this rank does nothing. Device counts, reduce_scatter
/// by columns and the fused RMSNorm have no typed form.
#pragma once

#include <cstddef>
#include <numeric>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>

#include "tutti/collectives.hpp"
#include "tutti/communicator.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

/// A range that an operation can read.
template <class Range>
concept InputBuffer = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::ranges::borrowed_range<Range> && requires {
  DataTypeOf<std::ranges::range_value_t<Range>>::value;
};

/// A range that an operation can write.
template <class Range>
concept OutputBuffer = InputBuffer<Range> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

/// A range that an operation can write, with the element type of `Input`.
template <class Output, class Input>
concept OutputFor = OutputBuffer<Output> &&
    std::is_same_v<std::ranges::range_value_t<Input>, std::ranges::range_value_t<Output>>;

/// Options of a typed call.
struct TypedOptions {
  Stream stream = nullptr;  ///< CUDA: the operation is ordered in this stream
  CallOptions options = {};
};

/// Options of a typed call that reduces.
struct TypedReduceOptions {
  ReduceOp op = {};
  Stream stream = nullptr;  ///< CUDA: the operation is ordered in this stream
  CallOptions options = {};
};

/// The counts of all_to_all_v(), in elements.
struct AllToAllCounts {
  std::span<const std::size_t> send = {};  ///< per rank: elements for that rank
  std::span<const std::size_t> recv = {};  ///< per rank: elements from that rank
  std::size_t max = 0;                     ///< no count of any rank is larger; equal on every rank
};

namespace detail {

template <class Range>
inline constexpr DataType data_type_of = DataTypeOf<std::ranges::range_value_t<Range>>::value;

inline std::size_t ranks_of(const Communicator& group) {
  return static_cast<std::size_t>(group.size());
}
inline std::size_t rank_of(const Communicator& group) {
  return static_cast<std::size_t>(group.rank());
}

inline Status expect_size(const char* what, std::size_t size, std::size_t expected) {
  if (size == expected) return {};
  return {StatusCode::kInvalidArgument, std::string(what) + " has " + std::to_string(size) +
                                            " elements instead of " + std::to_string(expected)};
}

/// Whether each rank's part of `size` elements has the same size.
inline Status expect_equal_parts(const Communicator& group, const char* what, std::size_t size) {
  if (size % ranks_of(group) == 0) return {};
  return {StatusCode::kInvalidArgument, std::string(what) + " has " + std::to_string(size) +
                                            " elements, which is no multiple of the " +
                                            std::to_string(group.size()) + " ranks"};
}

/// Whether there is a count per rank, and `size` is their sum.
inline Status expect_counts(const Communicator& group, const char* what,
                            std::span<const std::size_t> counts, std::size_t size) {
  if (counts.size() == ranks_of(group)) {
    return expect_size(what, size, std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  }
  return {StatusCode::kInvalidArgument, std::string(what) + " has " +
                                            std::to_string(counts.size()) + " counts for " +
                                            std::to_string(group.size()) + " ranks"};
}

/// This rank's part of `whole`, which has equal parts.
template <class T, std::size_t kSize>
std::span<T> own_part(const Communicator& group, std::span<T, kSize> whole) {
  const std::size_t count = whole.size() / ranks_of(group);
  return whole.subspan(rank_of(group) * count, count);
}

}  // namespace detail

/// `input` and `output` have the same size.
template <InputBuffer Input, OutputFor<Input> Output>
Status all_reduce(Communicator& group, Input&& input, Output&& output,
                  const TypedReduceOptions& options = {}) {
  const Status fits = detail::expect_size("all_reduce: output", std::ranges::size(output),
                                          std::ranges::size(input));
  return fits ? all_reduce(group, AllReduce{.input = std::ranges::data(input),
                                            .output = std::ranges::data(output),
                                            .count = std::ranges::size(input),
                                            .dtype = detail::data_type_of<Input>,
                                            .op = options.op,
                                            .stream = options.stream,
                                            .options = options.options})
              : fits;
}

/// In place.
template <OutputBuffer Buffer>
Status all_reduce(Communicator& group, Buffer&& data, const TypedReduceOptions& options = {}) {
  return all_reduce(group, data, data, options);
}

/// `output` is ranks times as large as `input`.
template <InputBuffer Input, OutputFor<Input> Output>
Status all_gather(Communicator& group, Input&& input, Output&& output,
                  const TypedOptions& options = {}) {
  const Status fits = detail::expect_size("all_gather: output", std::ranges::size(output),
                                          detail::ranks_of(group) * std::ranges::size(input));
  return fits ? all_gather(group, AllGather{.input = std::ranges::data(input),
                                            .output = std::ranges::data(output),
                                            .count = std::ranges::size(input),
                                            .dtype = detail::data_type_of<Input>,
                                            .stream = options.stream,
                                            .options = options.options})
              : fits;
}

/// In place: `data` is the output, and this rank's part of it the input.
template <OutputBuffer Buffer>
Status all_gather(Communicator& group, Buffer&& data, const TypedOptions& options = {}) {
  const std::span whole(data);
  const Status fits = detail::expect_equal_parts(group, "all_gather: data", whole.size());
  return fits ? all_gather(group, detail::own_part(group, whole), whole, options) : fits;
}

/// `input` is ranks times as large as `output`.
template <InputBuffer Input, OutputFor<Input> Output>
Status reduce_scatter(Communicator& group, Input&& input, Output&& output,
                      const TypedReduceOptions& options = {}) {
  const Status fits = detail::expect_size("reduce_scatter: input", std::ranges::size(input),
                                          detail::ranks_of(group) * std::ranges::size(output));
  return fits ? reduce_scatter(group, ReduceScatter{.input = std::ranges::data(input),
                                                    .output = std::ranges::data(output),
                                                    .count = std::ranges::size(output),
                                                    .dtype = detail::data_type_of<Input>,
                                                    .op = options.op,
                                                    .stream = options.stream,
                                                    .options = options.options})
              : fits;
}

/// In place: `data` is the input, and this rank's part of it becomes the output.
template <OutputBuffer Buffer>
Status reduce_scatter(Communicator& group, Buffer&& data, const TypedReduceOptions& options = {}) {
  const std::span whole(data);
  const Status fits = detail::expect_equal_parts(group, "reduce_scatter: data", whole.size());
  return fits ? reduce_scatter(group, whole, detail::own_part(group, whole), options) : fits;
}

/// `input` and `output` have the same size, a multiple of the number of ranks.
template <InputBuffer Input, OutputFor<Input> Output>
Status all_to_all(Communicator& group, Input&& input, Output&& output,
                  const TypedOptions& options = {}) {
  const Status fits = detail::expect_size("all_to_all: output", std::ranges::size(output),
                                          std::ranges::size(input));
  if (!fits) return fits;
  const Status divides =
      detail::expect_equal_parts(group, "all_to_all: input", std::ranges::size(input));
  return divides ? all_to_all(group,
                              AllToAll{.input = std::ranges::data(input),
                                       .output = std::ranges::data(output),
                                       .count = std::ranges::size(input) / detail::ranks_of(group),
                                       .dtype = detail::data_type_of<Input>,
                                       .stream = options.stream,
                                       .options = options.options})
                 : divides;
}

/// On the root `input` and `output` have the same size. Other ranks may pass an empty `input`.
template <InputBuffer Input, OutputFor<Input> Output>
Status broadcast(Communicator& group, Input&& input, Output&& output, int root,
                 const TypedOptions& options = {}) {
  const Status fits = group.rank() == root
                          ? detail::expect_size("broadcast: input", std::ranges::size(input),
                                                std::ranges::size(output))
                          : Status();
  return fits ? broadcast(group, Broadcast{.input = std::ranges::data(input),
                                           .output = std::ranges::data(output),
                                           .count = std::ranges::size(output),
                                           .dtype = detail::data_type_of<Input>,
                                           .root = root,
                                           .stream = options.stream,
                                           .options = options.options})
              : fits;
}

/// In place: the root's `data` is sent to the `data` of all other ranks.
template <OutputBuffer Buffer>
Status broadcast(Communicator& group, Buffer&& data, int root, const TypedOptions& options = {}) {
  return broadcast(group, data, data, root, options);
}

/// On the root `output` is as large as `input`. Other ranks may pass an empty `output`.
template <InputBuffer Input, OutputFor<Input> Output>
Status reduce(Communicator& group, Input&& input, Output&& output, int root,
              const TypedReduceOptions& options = {}) {
  const Status fits = group.rank() == root
                          ? detail::expect_size("reduce: output", std::ranges::size(output),
                                                std::ranges::size(input))
                          : Status();
  return fits ? reduce(group, Reduce{.input = std::ranges::data(input),
                                     .output = std::ranges::data(output),
                                     .count = std::ranges::size(input),
                                     .dtype = detail::data_type_of<Input>,
                                     .op = options.op,
                                     .root = root,
                                     .stream = options.stream,
                                     .options = options.options})
              : fits;
}

/// In place: the root's `data` becomes the result. The `data` of other ranks does not change.
template <OutputBuffer Buffer>
Status reduce(Communicator& group, Buffer&& data, int root,
              const TypedReduceOptions& options = {}) {
  return reduce(group, data, data, root, options);
}

/// On the root `output` is ranks times as large as `input`. Other ranks may pass an empty `output`.
template <InputBuffer Input, OutputFor<Input> Output>
Status gather(Communicator& group, Input&& input, Output&& output, int root,
              const TypedOptions& options = {}) {
  const Status fits = group.rank() == root
                          ? detail::expect_size("gather: output", std::ranges::size(output),
                                                detail::ranks_of(group) * std::ranges::size(input))
                          : Status();
  return fits ? gather(group, Gather{.input = std::ranges::data(input),
                                     .output = std::ranges::data(output),
                                     .count = std::ranges::size(input),
                                     .dtype = detail::data_type_of<Input>,
                                     .root = root,
                                     .stream = options.stream,
                                     .options = options.options})
              : fits;
}

/// On the root `input` is ranks times as large as `output`. Other ranks may pass an empty `input`.
template <InputBuffer Input, OutputFor<Input> Output>
Status scatter(Communicator& group, Input&& input, Output&& output, int root,
               const TypedOptions& options = {}) {
  const Status fits = group.rank() == root
                          ? detail::expect_size("scatter: input", std::ranges::size(input),
                                                detail::ranks_of(group) * std::ranges::size(output))
                          : Status();
  return fits ? scatter(group, Scatter{.input = std::ranges::data(input),
                                       .output = std::ranges::data(output),
                                       .count = std::ranges::size(output),
                                       .dtype = detail::data_type_of<Input>,
                                       .root = root,
                                       .stream = options.stream,
                                       .options = options.options})
              : fits;
}

/// `counts` has a count per rank, `input` this rank's count, `output` the sum of all counts.
template <InputBuffer Input, OutputFor<Input> Output>
Status all_gather_v(Communicator& group, Input&& input, Output&& output,
                    std::span<const std::size_t> counts, const TypedOptions& options = {}) {
  const Status whole =
      detail::expect_counts(group, "all_gather_v: output", counts, std::ranges::size(output));
  if (!whole) return whole;
  const Status fits = detail::expect_size("all_gather_v: input", std::ranges::size(input),
                                          counts[detail::rank_of(group)]);
  return fits ? all_gather_v(group, AllGatherV{.input = std::ranges::data(input),
                                               .output = std::ranges::data(output),
                                               .counts = counts.data(),
                                               .dtype = detail::data_type_of<Input>,
                                               .stream = options.stream,
                                               .options = options.options})
              : fits;
}

/// `counts` has a count per rank, `input` the sum of all counts, `output` this rank's count.
template <InputBuffer Input, OutputFor<Input> Output>
Status reduce_scatter_v(Communicator& group, Input&& input, Output&& output,
                        std::span<const std::size_t> counts,
                        const TypedReduceOptions& options = {}) {
  const Status whole =
      detail::expect_counts(group, "reduce_scatter_v: input", counts, std::ranges::size(input));
  if (!whole) return whole;
  const Status fits = detail::expect_size("reduce_scatter_v: output", std::ranges::size(output),
                                          counts[detail::rank_of(group)]);
  return fits ? reduce_scatter_v(group, ReduceScatterV{.input = std::ranges::data(input),
                                                       .output = std::ranges::data(output),
                                                       .counts = counts.data(),
                                                       .dtype = detail::data_type_of<Input>,
                                                       .op = options.op,
                                                       .stream = options.stream,
                                                       .options = options.options})
              : fits;
}

/// `input` has the sum of counts.send, `output` the sum of counts.recv.
template <InputBuffer Input, OutputFor<Input> Output>
Status all_to_all_v(Communicator& group, Input&& input, Output&& output,
                    const AllToAllCounts& counts, const TypedOptions& options = {}) {
  const Status sent =
      detail::expect_counts(group, "all_to_all_v: input", counts.send, std::ranges::size(input));
  if (!sent) return sent;
  const Status fits =
      detail::expect_counts(group, "all_to_all_v: output", counts.recv, std::ranges::size(output));
  return fits ? all_to_all_v(group, AllToAllV{.input = std::ranges::data(input),
                                              .output = std::ranges::data(output),
                                              .send_counts = counts.send.data(),
                                              .recv_counts = counts.recv.data(),
                                              .max_count = counts.max,
                                              .dtype = detail::data_type_of<Input>,
                                              .stream = options.stream,
                                              .options = options.options})
              : fits;
}

/// Sends all of `data` to `peer`.
template <InputBuffer Buffer>
Status send(Communicator& group, Buffer&& data, int peer, const TypedOptions& options = {}) {
  return send(group, Send{.buffer = std::ranges::data(data),
                          .count = std::ranges::size(data),
                          .dtype = detail::data_type_of<Buffer>,
                          .peer = peer,
                          .stream = options.stream,
                          .options = options.options});
}

/// Fills all of `data` from `peer`.
template <OutputBuffer Buffer>
Status recv(Communicator& group, Buffer&& data, int peer, const TypedOptions& options = {}) {
  return recv(group, Recv{.buffer = std::ranges::data(data),
                          .count = std::ranges::size(data),
                          .dtype = detail::data_type_of<Buffer>,
                          .peer = peer,
                          .stream = options.stream,
                          .options = options.options});
}

}  // namespace tutti
