// The protocol by which ranks agree on symmetric memory, whatever kind of memory it is.
//
//   allocate:  1. gather sizes and free blocks: agree, or reuse a block, or make a new one
//   both:      2. gather offers: how each rank's part can be reached, or what failed
//              3. exchange descriptors, where some part is another process's and needs one
//              4. gather outcomes: everyone has opened everything, or nobody keeps anything
//
// A rank that fails says so in the next exchange instead of staying away, so that nobody waits for
// it and everyone returns its failure. The number of exchanges does not depend on how many ranges
// there are.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/try.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "memory/heap_backend.hpp"
#include "memory/heap_state.hpp"

namespace tutti {
namespace {

constexpr std::size_t kMaxRangesPerCall = 65536;
// Received from every rank at once, they must fit into the usual limit of 1024 open files.
constexpr std::size_t kMaxDescriptorsPerCall = 64;
static_assert(kMaxDescriptorsPerCall <= Bootstrap::kMaxDescriptors);

using Segment = std::shared_ptr<SymmetricSegment>;
using Range = std::pair<void*, std::size_t>;
using Descriptors = std::vector<std::vector<Fd>>;  // per rank

// What this rank brings to an exchange: parts, or the failure to have any.
struct Batch {
  Status status;
  std::vector<LocalPart> parts;
  std::vector<Fd> descriptors;  // Offer::descriptor counts these
};

// What has come of an exchange: the same statuses on every rank.
struct Connection {
  Status status;                 // of the call as a whole
  std::vector<Status> outcomes;  // per segment
  std::vector<Parts> parts;      // per segment, of use where its outcome is success
};

struct AllocationPlan {
  std::size_t bytes = 0;  // rounded
  std::vector<int> devices;
  PoolDecision pool;
  bool small = false;
};

class CollectiveHeap final : public SymmetricHeap {
 public:
  CollectiveHeap(Bootstrap& bootstrap, GroupPlaces places, std::unique_ptr<HeapBackend> backend)
      : bootstrap_(bootstrap), places_(std::move(places)), backend_(std::move(backend)) {}

  Result<Segment> allocate(std::size_t bytes, Deadline deadline) override;
  Result<Segment> allocate_small(std::size_t bytes, Deadline deadline) override;
  Result<std::vector<Segment>> register_ranges(std::span<const Range> ranges, Deadline deadline,
                                               Sizes sizes) override;
  void hide(const SymmetricSegment& segment) override { state_->hide(segment); }
  Segment find(const void* address, std::size_t bytes) const override {
    return state_->find(address, bytes);
  }
  Status check_alive(const SymmetricSegment& segment) const override {
    return backend_->check_alive(segment);
  }
  void on_unmap(std::function<void(const std::byte*)> forget) override {
    forget_ = std::move(forget);
  }
  HeapUse use() const override { return state_->use(); }

 private:
  HeapCall begin(HeapCall::Kind kind) { return {kind, ++sequence_, next_id_, {}}; }
  std::size_t size() const { return places_.process_tokens.size(); }
  // A failure as the outcome of this rank.
  Status named(const Status& status) const {
    return status.with_context(bootstrap_.names().of(places_.rank));
  }
  std::vector<int> devices_here(std::span<const HeapMessage> messages) const;

  Result<std::vector<HeapMessage>> exchange(const HeapMessage& mine, Deadline deadline);
  Result<std::vector<Status>> exchange_outcomes(const HeapCall& call, std::span<const Status> mine,
                                                Deadline deadline);

  Result<AllocationPlan> plan(const HeapCall& call, Deadline deadline);
  Result<Parts> reuse(const HeapCall& call, const AllocationPlan& plan, Deadline deadline);
  Result<Connection> create(const HeapCall& call, const AllocationPlan& plan, Deadline deadline);
  void forget(const Parts& parts) const {
    if (forget_) forget_(parts.at[places_.rank]);
  }
  void drop(std::span<const std::uint32_t> blocks) {
    for (const Parts& parts : state_->drop(blocks)) forget(parts);
  }
  Result<Parts> make(const HeapCall& call, const AllocationPlan& plan, Deadline deadline);

  Batch offer(std::span<const Range> ranges);
  void export_parts(Batch& batch);
  Result<Connection> connect(const HeapCall& call, const Batch& batch, Deadline deadline);
  Result<Descriptors> exchange_descriptors(std::span<const HeapMessage> messages,
                                           const Batch& batch, Deadline deadline);
  Result<Parts> open(std::size_t segment, std::span<const HeapMessage> messages, const Batch& batch,
                     const Descriptors& descriptors);
  bool shares_malloc(std::size_t owner, const Offer& offer, std::span<const HeapMessage> messages,
                     std::size_t segment) const;
  Result<OpenedPart> open_peer(std::size_t rank, const Offer& offer, const Descriptors& descriptors,
                               const std::vector<int>& devices);

  Bootstrap& bootstrap_;
  const GroupPlaces places_;
  const std::unique_ptr<HeapBackend> backend_;
  const std::shared_ptr<HeapState> state_ = std::make_shared<HeapState>();
  std::function<void(const std::byte*)> forget_;
  std::uint64_t sequence_ = 0;  // collective calls, failed ones included
  std::uint32_t next_id_ = 0;
  std::uint32_t next_block_ = 0;
};

std::shared_ptr<HeapSegment> new_segment(std::uint32_t id, void* local, std::size_t bytes) {
  auto segment = std::make_shared<HeapSegment>();
  segment->id = id;
  segment->bytes = bytes;
  segment->local = static_cast<std::byte*>(local);
  return segment;
}

// ---- Exchanges

std::vector<int> CollectiveHeap::devices_here(std::span<const HeapMessage> messages) const {
  std::vector<int> devices;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (places_.same_process(rank)) devices.push_back(messages[rank].device);
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

Result<std::vector<HeapMessage>> CollectiveHeap::exchange(const HeapMessage& mine,
                                                          Deadline deadline) {
  const auto gathered = bootstrap_.all_gather(encode(mine), deadline);
  TUTTI_TRY(gathered.status().with_context(describe(mine.call)));
  return decode_messages(*gathered, bootstrap_.names());
}

Result<std::vector<Status>> CollectiveHeap::exchange_outcomes(const HeapCall& call,
                                                              std::span<const Status> mine,
                                                              Deadline deadline) {
  const auto gathered = bootstrap_.all_gather(encode_outcomes(mine), deadline);
  TUTTI_TRY(gathered.status().with_context(describe(call)));
  return combine_outcomes(*gathered, mine.size(), bootstrap_.names());
}

// ---- Allocation

Result<Segment> CollectiveHeap::allocate(std::size_t bytes, Deadline deadline) {
  HeapCall call = begin(HeapCall::Kind::kAllocate);
  call.sizes = {bytes};
  TUTTI_ASSIGN(const AllocationPlan plan, this->plan(call, deadline));
  drop(plan.pool.drop);
  const std::uint32_t block = plan.pool.reuse.value_or(next_block_);
  auto parts = plan.pool.reuse ? reuse(call, plan, deadline) : make(call, plan, deadline);
  TUTTI_TRY(parts.status());

  const auto segment = new_segment(next_id_++, parts->at[places_.rank], bytes);
  if (!plan.pool.reuse) ++next_block_;
  segment->at = parts->at;
  segment->capacity = plan.bytes;
  segment->parts = *std::move(parts);
  segment->block = {block, plan.bytes};
  segment->room = Pool::room_for(segment->block);
  state_->add({&segment, 1});
  return Segment(segment);
}

Result<Segment> CollectiveHeap::allocate_small(std::size_t bytes, Deadline deadline) {
  HeapCall call = begin(HeapCall::Kind::kAllocate);
  call.sizes = {bytes};
  TUTTI_ASSIGN(AllocationPlan plan, this->plan(call, deadline));
  plan.pool = {};
  plan.small = true;
  auto parts = make(call, plan, deadline);
  TUTTI_TRY(parts.status());
  const auto segment = new_segment(next_id_++, parts->at[places_.rank], bytes);
  segment->at = parts->at;
  segment->parts = *std::move(parts);
  state_->add({&segment, 1});
  return Segment(segment);
}

Result<AllocationPlan> CollectiveHeap::plan(const HeapCall& call, Deadline deadline) {
  HeapMessage mine{call, {}, backend_->device(), 1, state_->free_blocks(), {}};
  const auto granularity = backend_->granularity();
  if (!granularity.is_ok()) {
    mine.status = granularity.status();
  } else if (call.sizes[0] == 0 || call.sizes[0] > kMaxAllocationBytes) {
    mine.status = {StatusCode::kInvalidArgument,
                   fmt::format("{} bytes of symmetric memory: give 1 to {}", call.sizes[0],
                               kMaxAllocationBytes)};
  } else {
    mine.granularity = *granularity;
  }
  TUTTI_ASSIGN(const auto messages, exchange(mine, deadline));
  TUTTI_TRY(check_agreement(messages, bootstrap_.names()));

  AllocationPlan plan;
  std::vector<std::vector<FreeBlock>> free_blocks;
  std::size_t coarsest = 1;
  for (const HeapMessage& message : messages) {
    coarsest = std::max<std::size_t>(coarsest, message.granularity);
    free_blocks.push_back(message.free_blocks);
  }
  plan.bytes = round_up(call.sizes[0], coarsest);
  plan.devices = devices_here(messages);
  plan.pool = decide_pool(free_blocks, plan.bytes);
  return plan;
}

Result<Parts> CollectiveHeap::reuse(const HeapCall& call, const AllocationPlan& plan,
                                    Deadline deadline) {
  Parts parts = state_->take(*plan.pool.reuse);
  const Status zeroed = named(backend_->zero(parts.at[places_.rank], plan.bytes, deadline));
  const auto outcomes = exchange_outcomes(call, {&zeroed, 1}, deadline);
  const Status reused =
      outcomes.is_ok() ? (*outcomes)[0].with_context(describe(call)) : outcomes.status();
  if (reused.is_ok()) return parts;
  forget(parts);
  return reused;
}

Result<Parts> CollectiveHeap::make(const HeapCall& call, const AllocationPlan& plan,
                                   Deadline deadline) {
  TUTTI_ASSIGN(Connection made, create(call, plan, deadline));
  const bool pooled = !plan.pool.keep.empty() || !plan.pool.drop.empty();
  if (made.status.code() == StatusCode::kResourceExhausted && pooled) {
    // Memory has run out while the pool holds some: every rank sees both, so all try again. Memory
    // is free only once its last mapping is gone, hence the barrier.
    drop(plan.pool.keep);
    TUTTI_TRY(bootstrap_.barrier(deadline).with_context(describe(call)));
    TUTTI_ASSIGN(made, create(call, plan, deadline));
  }
  TUTTI_TRY(made.status);
  TUTTI_TRY(made.outcomes[0].with_context(describe(call)));
  return std::move(made.parts[0]);
}

Result<Connection> CollectiveHeap::create(const HeapCall& call, const AllocationPlan& plan,
                                          Deadline deadline) {
  Batch batch;
  auto part = plan.small ? backend_->create_small(call.sizes[0], plan.devices, deadline)
                         : backend_->create(plan.bytes, plan.devices, deadline);
  if (part.is_ok()) {
    batch.parts.push_back(*std::move(part));
    export_parts(batch);
    // Unlike a user's memory, the heap's own is of no use where others cannot reach it.
    const Offer& offer = batch.parts[0].offer;
    if (batch.status.is_ok() && offer.how == Offer::How::kStaged) {
      batch.status = {StatusCode::kUnavailable, offer.reason};
    }
  } else {
    batch.status = part.status();
  }
  return connect(call, batch, deadline);
}

// ---- Registration

Result<std::vector<Segment>> CollectiveHeap::register_ranges(std::span<const Range> ranges,
                                                             Deadline deadline, Sizes sizes) {
  HeapCall call = begin(HeapCall::Kind::kRegister);
  for (const Range& range : ranges.first(std::min(ranges.size(), kMaxRangesPerCall)))
    call.sizes.push_back(sizes == Sizes::kAlike ? range.second : 0);
  const Batch batch = offer(ranges);
  TUTTI_ASSIGN(Connection made, connect(call, batch, deadline));
  TUTTI_TRY(made.status);
  for (const Status& outcome : made.outcomes) {
    if (outcome.code() == StatusCode::kResourceExhausted) {
      return outcome.with_context(describe(call));
    }
  }

  std::vector<std::shared_ptr<HeapSegment>> segments;
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    const auto segment = new_segment(next_id_++, ranges[k].first, ranges[k].second);
    if (made.outcomes[k].is_ok()) {
      segment->at = made.parts[k].at;
      segment->copies_queue = made.parts[k].copies_queue;
      segment->parts = std::move(made.parts[k]);
      segment->buffer_id = batch.parts[k].buffer_id;
    } else {
      segment->why_staged = made.outcomes[k].message();
    }
    segments.push_back(segment);
  }
  state_->add(segments);
  return std::vector<Segment>(segments.begin(), segments.end());
}

Batch CollectiveHeap::offer(std::span<const Range> ranges) {
  Batch batch;
  if (ranges.size() > kMaxRangesPerCall) {
    batch.status = {StatusCode::kInvalidArgument,
                    fmt::format("{} ranges in one call: register at most {} at a time",
                                ranges.size(), kMaxRangesPerCall)};
    return batch;
  }
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    const auto [address, bytes] = ranges[k];
    if (bytes == 0) {
      batch.parts.push_back({Offer::staged("the range is empty"), nullptr, 0, {}});
      continue;
    }
    auto part = backend_->offer(static_cast<std::byte*>(address), bytes);
    if (!part.is_ok()) {
      batch.status = part.status().with_context(fmt::format("range {}", k));
      batch.parts.clear();
      return batch;
    }
    batch.parts.push_back(*std::move(part));
  }
  export_parts(batch);
  return batch;
}

// One descriptor or handle per allocation, however many ranges lie in it.
void CollectiveHeap::export_parts(Batch& batch) {
  if (places_.one_process) return;
  std::map<const Mapping*, const Offer*> known;
  for (LocalPart& part : batch.parts) {
    if (const auto found = known.find(part.mapping.get()); found != known.end()) {
      part.offer.descriptor = found->second->descriptor;
      part.offer.handle = found->second->handle;
      continue;
    }
    auto descriptor = backend_->export_part(part);
    if (descriptor.status().code() == StatusCode::kResourceExhausted) {
      batch.status = descriptor.status();  // later there may be room: nothing is staged for that
      return;
    }
    if (!descriptor.is_ok()) {
      part.offer = Offer::staged(descriptor.status().message());
    } else if (descriptor->valid() && batch.descriptors.size() == kMaxDescriptorsPerCall) {
      part.offer = Offer::staged(
          fmt::format("more than {} VMM allocations in one call; register them in several calls",
                      kMaxDescriptorsPerCall));
    } else {
      if (part.mapping != nullptr) known[part.mapping.get()] = &part.offer;
      if (!descriptor->valid()) continue;
      part.offer.descriptor = static_cast<std::int32_t>(batch.descriptors.size());
      batch.descriptors.push_back(*std::move(descriptor));
    }
  }
}

// ---- Both

Result<Connection> CollectiveHeap::connect(const HeapCall& call, const Batch& batch,
                                           Deadline deadline) {
  HeapMessage mine{call, batch.status, backend_->device(), 1, {}, {}};
  if (batch.status.is_ok()) {
    for (const LocalPart& part : batch.parts) mine.offers.push_back(part.offer);
  }
  TUTTI_ASSIGN(const auto messages, exchange(mine, deadline));
  Connection made;
  made.status = check_agreement(messages, bootstrap_.names());
  if (!made.status.is_ok()) return made;
  TUTTI_TRY(check_offers(messages, bootstrap_.names()));

  const auto descriptors = exchange_descriptors(messages, batch, deadline);  // names its rank
  made.parts.resize(call.sizes.size());
  std::vector<Status> mine_opened(call.sizes.size(), descriptors.status());
  for (std::size_t k = 0; k < call.sizes.size() && descriptors.is_ok(); ++k) {
    auto parts = open(k, messages, batch, *descriptors);
    mine_opened[k] = named(parts.status());
    if (parts.is_ok()) made.parts[k] = *std::move(parts);
  }
  TUTTI_ASSIGN(made.outcomes, exchange_outcomes(call, mine_opened, deadline));
  const bool gave_up = std::any_of(made.outcomes.begin(), made.outcomes.end(), [](const auto& one) {
    return one.code() == StatusCode::kPeerFailed;
  });
  // The rank that gave up takes part in nothing more, and says why.
  if (gave_up) TUTTI_TRY(bootstrap_.barrier(deadline).with_context(describe(call)));
  return made;
}

Result<Descriptors> CollectiveHeap::exchange_descriptors(std::span<const HeapMessage> messages,
                                                         const Batch& batch, Deadline deadline) {
  const auto needs_one = [](const Offer& offer) { return offer.descriptor >= 0; };
  const bool needed = std::any_of(messages.begin(), messages.end(), [&](const HeapMessage& m) {
    return std::any_of(m.offers.begin(), m.offers.end(), needs_one);
  });
  if (!needed) return Descriptors(size());
  std::vector<std::vector<int>> outgoing(size());
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (places_.same_process(rank)) continue;
    for (const Fd& descriptor : batch.descriptors) outgoing[rank].push_back(descriptor.get());
  }
  return bootstrap_.exchange_descriptors(outgoing, deadline);
}

Result<Parts> CollectiveHeap::open(std::size_t segment, std::span<const HeapMessage> messages,
                                   const Batch& batch, const Descriptors& descriptors) {
  const LocalPart& own = batch.parts[segment];
  if (own.offer.how == Offer::How::kStaged)
    return Status(StatusCode::kUnavailable, own.offer.reason);
  const bool staged = std::any_of(messages.begin(), messages.end(), [&](const HeapMessage& m) {
    return m.offers[segment].how == Offer::How::kStaged;
  });
  Parts parts;
  if (staged) return parts;  // the rank that cannot serve it will say why
  const std::vector<int> devices = devices_here(messages);
  for (std::size_t rank = 0; rank < size(); ++rank) {
    OpenedPart opened{own.mapping, reinterpret_cast<std::byte*>(own.offer.address)};
    if (rank != places_.rank) {
      TUTTI_ASSIGN(opened, open_peer(rank, messages[rank].offers[segment], descriptors, devices));
    }
    parts.mappings.push_back(std::move(opened.mapping));
    parts.at.push_back(opened.at);
    parts.copies_queue |= shares_malloc(rank, messages[rank].offers[segment], messages, segment);
  }
  return parts;
}

// Whether another GPU of the owner's process has copies of it made. The same on all ranks.
bool CollectiveHeap::shares_malloc(std::size_t owner, const Offer& offer,
                                   std::span<const HeapMessage> messages,
                                   std::size_t segment) const {
  if (offer.how != Offer::How::kMalloc) return false;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const bool same_process = places_.process_tokens[rank] == places_.process_tokens[owner];
    if (same_process && messages[rank].offers[segment].device != offer.device) return true;
  }
  return false;
}

Result<OpenedPart> CollectiveHeap::open_peer(std::size_t rank, const Offer& offer,
                                             const Descriptors& descriptors,
                                             const std::vector<int>& devices) {
  PeerOffer peer{rank, offer, -1, devices};
  if (offer.how == Offer::How::kPointer && !places_.same_process(rank))
    return Status(StatusCode::kMismatch,
                  fmt::format("{} offers an address, which means nothing in another process",
                              bootstrap_.names().of(rank)));
  if (offer.descriptor >= 0 && !places_.same_process(rank)) {
    const auto index = static_cast<std::size_t>(offer.descriptor);
    if (rank >= descriptors.size() || index >= descriptors[rank].size())
      return Status(StatusCode::kSystem,
                    fmt::format("no descriptor came from {}", bootstrap_.names().of(rank)));
    peer.descriptor = descriptors[rank][index].get();
  }
  auto opened = backend_->open(peer);
  if (opened.is_ok()) return opened;
  return opened.status().with_context(fmt::format("memory of {}", bootstrap_.names().of(rank)));
}

}  // namespace

GroupPlaces places_of(const Bootstrap& bootstrap) {
  GroupPlaces places;
  places.rank = static_cast<std::size_t>(bootstrap.rank());
  places.descriptors = bootstrap.passes_descriptors();
  const auto& identities = bootstrap.identities();
  for (const PeerIdentity& identity : identities) {
    places.process_tokens.push_back(identity.process_token);
    places.one_process &= identity.process_token == identities.front().process_token;
    places.one_host &= identity.host_id == identities.front().host_id;
  }
  return places;
}

std::unique_ptr<SymmetricHeap> make_collective_heap(Bootstrap& bootstrap, GroupPlaces places,
                                                    std::unique_ptr<HeapBackend> backend) {
  return std::make_unique<CollectiveHeap>(bootstrap, std::move(places), std::move(backend));
}

}  // namespace tutti
