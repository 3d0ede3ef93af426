#include "device/multicast/binding.hpp"

#include <fmt/core.h>

#include "base/log.hpp"
#include "base/try.hpp"
#include "bootstrap/agree.hpp"

namespace tutti {
namespace {

void log_failure(const Status& status) {
  if (!status.is_ok()) log(LogLevel::kWarn, "closing a multicast object: {}", status.to_string());
}

}  // namespace

MulticastBinding::~MulticastBinding() {
  if (mapped_ != nullptr) log_failure(cuda_.unmap_allocation(mapped_, bytes_));
  if (is_bound_) log_failure(multicast_.unbind(object_, device_, bytes_));
  if (has_object_) log_failure(cuda_.release_allocation(object_));
}

// The steps, each of which all ranks must have done before any does the next.
class MulticastBinder {
 public:
  MulticastBinder(const MulticastPlace& place, const SymmetricSegment& segment)
      : place_(place),
        segment_(segment),
        made_(new MulticastBinding(place.cuda, place.multicast, place.device)) {}

  Result<std::shared_ptr<MulticastBinding>> bind(Deadline deadline) {
    const auto all_have = [&](const Status& mine) {
      return agree(place_.bootstrap, mine, deadline);
    };
    TUTTI_TRY(all_have(measure()));
    const Status created = is_first() ? create() : Status::ok();
    const auto received = place_.bootstrap.exchange_descriptors(addressed_to_all(), deadline);
    Status arrived = received.status();
    if (arrived.is_ok()) arrived = is_first() ? created : import(received->front());
    TUTTI_TRY(all_have(arrived));
    TUTTI_TRY(all_have(add_device()));
    TUTTI_TRY(all_have(bind_memory()));
    TUTTI_TRY(all_have(map()));
    return made_;
  }

 private:
  bool is_first() const { return place_.bootstrap.rank() == 0; }

  Status measure() {
    TUTTI_ASSIGN(memory_, place_.cuda.pointer(segment_.local));
    TUTTI_ASSIGN(const std::size_t unit,
                 place_.multicast.granularity(place_.bootstrap.size(), memory_.bytes));
    if (unit == 0 || memory_.bytes % unit != 0) {
      return {StatusCode::kUnavailable,
              fmt::format("an allocation of {} bytes is no multiple of {}", memory_.bytes, unit)};
    }
    made_->bytes_ = memory_.bytes;
    return Status::ok();
  }

  Status create() {
    TUTTI_ASSIGN(made_->object_, place_.multicast.create(place_.bootstrap.size(), made_->bytes_));
    made_->has_object_ = true;
    TUTTI_ASSIGN(descriptor_, place_.cuda.export_allocation(made_->object_));
    return Status::ok();
  }

  std::vector<std::vector<int>> addressed_to_all() const {
    std::vector<std::vector<int>> outgoing(static_cast<std::size_t>(place_.bootstrap.size()));
    if (!descriptor_.valid()) return outgoing;
    for (std::size_t r = 1; r < outgoing.size(); ++r) outgoing[r] = {descriptor_.get()};
    return outgoing;
  }

  Status import(const std::vector<Fd>& from_first) {
    if (from_first.size() != 1) {
      return {StatusCode::kUnavailable,
              fmt::format("no multicast object has come from {}", place_.bootstrap.names().of(0))};
    }
    TUTTI_ASSIGN(made_->object_, place_.cuda.import_allocation(from_first.front().get()));
    made_->has_object_ = true;
    return Status::ok();
  }

  Status add_device() { return place_.multicast.add_device(made_->object_, place_.device); }

  Status bind_memory() {
    TUTTI_ASSIGN(const CudaAllocation memory, place_.cuda.retain_allocation(memory_.base));
    const Status bound = place_.multicast.bind(made_->object_, memory, made_->bytes_);
    log_failure(place_.cuda.release_allocation(memory));
    made_->is_bound_ = bound.is_ok();
    return bound;
  }

  Status map() {
    TUTTI_ASSIGN(made_->mapped_,
                 place_.cuda.map_allocation(made_->object_, made_->bytes_, {place_.device}));
    made_->address_ = made_->mapped_ + (segment_.local - memory_.base);
    return Status::ok();
  }

  const MulticastPlace& place_;
  const SymmetricSegment& segment_;
  CudaPointer memory_;
  Fd descriptor_;
  std::shared_ptr<MulticastBinding> made_;
};

Result<std::shared_ptr<MulticastBinding>> bind_to_multicast(const MulticastPlace& place,
                                                            const SymmetricSegment& segment,
                                                            Deadline deadline) {
  return MulticastBinder(place, segment).bind(deadline);
}

}  // namespace tutti
