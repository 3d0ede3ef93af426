#include "api/group_streams.hpp"

#include <algorithm>

#include "base/try.hpp"
#include "group/communicator_impl.hpp"

namespace tutti {
namespace {

void add_stream(std::vector<Stream>& streams, Stream stream) {
  const bool known = std::find(streams.begin(), streams.end(), stream) != streams.end();
  if (!known) streams.push_back(stream);
}

Status follow_all(CommunicatorImpl& communicator, Stream stream,
                  const std::vector<Stream>& earlier) {
  for (const Stream each : earlier) {
    if (each != stream) TUTTI_TRY(communicator.follow(stream, each));
  }
  return Status::ok();
}

Status captured_apart() {
  return {StatusCode::kInvalidArgument,
          "group_end(): of the streams of one communicator some are captured and others are not, "
          "or by different graphs: let the capture fork to all of them, or use one stream"};
}

}  // namespace

GroupStreams::GroupStreams(std::span<const Use> uses) {
  for (std::size_t k = 1; k < uses.size() && !ordered_; ++k) {
    ordered_ = std::any_of(
        uses.begin(), uses.begin() + static_cast<std::ptrdiff_t>(k), [&](const Use& earlier) {
          return earlier.stream != uses[k].stream &&
                 earlier.communicator->device() == uses[k].communicator->device();
        });
  }
}

GroupStreams::Lane& GroupStreams::lane_for(CommunicatorImpl& communicator, std::uint64_t capture) {
  const auto admits = [&](const Lane& lane) {
    return lane.device == communicator.device() && lane.capture == capture &&
           std::none_of(lane.communicators.begin(), lane.communicators.end(),
                        [&](const auto* one) { return one->number() == communicator.number(); });
  };
  const auto found = std::find_if(lanes_.begin(), lanes_.end(), admits);
  if (found != lanes_.end()) return *found;
  return lanes_.emplace_back(Lane{.device = communicator.device(), .capture = capture});
}

GroupStreams::Lane* GroupStreams::lane_of(const CommunicatorImpl* communicator) {
  for (Lane& lane : lanes_) {
    const auto& all = lane.communicators;
    if (std::find(all.begin(), all.end(), communicator) != all.end()) return &lane;
  }
  return nullptr;
}

Status GroupStreams::add(std::span<const Use> uses) {
  if (!ordered_ || uses.empty()) return Status::ok();
  CommunicatorImpl& communicator = *uses.front().communicator;
  TUTTI_ASSIGN(const StreamState first, communicator.streams().state(uses.front().stream));
  for (const Use& use : uses.subspan(1)) {
    TUTTI_ASSIGN(const StreamState state, communicator.streams().state(use.stream));
    if (state.capturing != first.capturing || state.capture_id != first.capture_id) {
      return captured_apart();
    }
  }
  Lane& lane = lane_for(communicator, first.capturing ? first.capture_id : 0);
  lane.communicators.push_back(&communicator);
  for (const Use& use : uses) {
    add_stream(lane.streams, use.stream);
    add_stream(lane.front, use.stream);
  }
  return Status::ok();
}

Status GroupStreams::hold(std::span<const Use> uses) {
  for (const Use& use : uses) {
    const Lane* const lane = lane_of(use.communicator);
    if (lane != nullptr) TUTTI_TRY(follow_all(*use.communicator, use.stream, lane->front));
  }
  return Status::ok();
}

void GroupStreams::advance(std::span<const Use> uses) {
  for (const Use& use : uses) {
    if (Lane* const lane = lane_of(use.communicator)) lane->front.clear();
  }
  for (const Use& use : uses) {
    if (Lane* const lane = lane_of(use.communicator)) add_stream(lane->front, use.stream);
  }
}

Status GroupStreams::release() {
  Status first;
  for (const Lane& lane : lanes_) {
    for (const Stream stream : lane.streams) {
      const Status one = follow_all(*lane.communicators.front(), stream, lane.front);
      if (first.is_ok()) first = one;
    }
  }
  return first;
}

}  // namespace tutti
