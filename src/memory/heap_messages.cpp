#include "memory/heap_messages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"
#include "memory/wire.hpp"

namespace tutti {
namespace {

constexpr std::uint32_t kMagic = 0x74685031;  // changes whenever the layout does

void put(WireWriter& out, const Offer& offer) {
  out.put(offer.how);
  out.put(offer.device);
  out.put(offer.descriptor);
  out.put(offer.identity);
  out.put(offer.address);
  out.put(offer.offset);
  out.put(offer.allocation_bytes);
  out.put(offer.handle);
  out.put_text(offer.reason);
}

Offer get_offer(WireReader& in) {
  Offer offer;
  offer.how = in.get_enum(Offer::How::kVirtual);
  offer.device = in.get<std::int32_t>();
  offer.descriptor = in.get<std::int32_t>();
  offer.identity = in.get<std::uint64_t>();
  offer.address = in.get<std::uint64_t>();
  offer.offset = in.get<std::uint64_t>();
  offer.allocation_bytes = in.get<std::uint64_t>();
  offer.handle = in.get<std::array<std::byte, 64>>();
  offer.reason = in.get_text();
  return offer;
}

// What is mapped is believed to be as long as its owner says, so it must be long enough.
bool holds(const Offer& offer, std::uint64_t bytes) {
  if (offer.how == Offer::How::kStaged || offer.how == Offer::How::kPointer) return true;
  return offer.offset <= offer.allocation_bytes && bytes <= offer.allocation_bytes - offer.offset;
}

Status malformed() {
  return {
      StatusCode::kMismatch,
      "what it sent is no message about symmetric memory: all ranks must run the same version of "
      "tutti and make the same calls in the same order"};
}

Status disagreement(std::span<const HeapMessage> per_rank, std::size_t other,
                    const RankNames& names) {
  const std::string we = names.of(0), they = names.of(other);
  const HeapCall& first = per_rank[0].call;
  const HeapCall& second = per_rank[other].call;
  std::string detail;
  if (first.kind == second.kind && first.sizes.size() == second.sizes.size()) {
    const auto [a, b] = std::mismatch(first.sizes.begin(), first.sizes.end(), second.sizes.begin());
    if (a != first.sizes.end()) {
      detail = fmt::format("; range {} has {} bytes on {}, {} bytes on {}", a - first.sizes.begin(),
                           *a, we, *b, they);
    } else if (first.first_id != second.first_id) {
      detail = fmt::format("; {} has {} segments so far, {} has {}", we, first.first_id, they,
                           second.first_id);
    }
  }
  return {StatusCode::kMismatch,
          fmt::format("ranks disagree on symmetric memory: {} calls {}, {} calls {}{}. Every rank "
                      "must allocate and register the same sizes in the same order",
                      we, describe(first), they, describe(second), detail)};
}

}  // namespace

std::string describe(const HeapCall& call) {
  if (call.kind == HeapCall::Kind::kRegister)
    return fmt::format("register #{} ({} ranges)", call.sequence, call.sizes.size());
  return fmt::format("allocate #{} ({} bytes)", call.sequence,
                     call.sizes.empty() ? 0 : call.sizes.front());
}

Bytes encode(const HeapMessage& message) {
  WireWriter out;
  out.put(kMagic);
  out.put(message.call.kind);
  out.put(message.call.sequence);
  out.put(message.call.first_id);
  out.put(static_cast<std::uint32_t>(message.call.sizes.size()));
  for (const std::uint64_t size : message.call.sizes) out.put(size);
  out.put_status(message.status);
  out.put(static_cast<std::int32_t>(message.device));
  out.put(message.granularity);
  out.put(static_cast<std::uint32_t>(message.free_blocks.size()));
  for (const FreeBlock& block : message.free_blocks) {
    out.put(block.number);
    out.put(block.bytes);
  }
  out.put(static_cast<std::uint32_t>(message.offers.size()));
  for (const Offer& offer : message.offers) put(out, offer);
  return out.take();
}

Result<HeapMessage> decode_message(ByteView bytes) {
  WireReader in(bytes);
  if (in.get<std::uint32_t>() != kMagic) return malformed();
  HeapMessage message;
  message.call.kind = in.get_enum(HeapCall::Kind::kRegister);
  message.call.sequence = in.get<std::uint64_t>();
  message.call.first_id = in.get<std::uint32_t>();
  message.call.sizes.resize(in.get_count(sizeof(std::uint64_t)));
  for (std::uint64_t& size : message.call.sizes) size = in.get<std::uint64_t>();
  message.status = in.get_status();
  message.device = in.get<std::int32_t>();
  message.granularity = in.get<std::uint64_t>();
  message.free_blocks.resize(in.get_count(sizeof(std::uint32_t) + sizeof(std::uint64_t)));
  for (FreeBlock& block : message.free_blocks) {
    block.number = in.get<std::uint32_t>();
    block.bytes = in.get<std::uint64_t>();
  }
  constexpr std::size_t kSmallestOffer = 64;  // more than its handle alone
  message.offers.resize(in.get_count(kSmallestOffer));
  for (Offer& offer : message.offers) offer = get_offer(in);
  const bool offers_fit =
      message.offers.empty() || message.offers.size() == message.call.sizes.size();
  const bool ascending = std::adjacent_find(message.free_blocks.begin(), message.free_blocks.end(),
                                            [](const FreeBlock& a, const FreeBlock& b) {
                                              return a.number >= b.number;
                                            }) == message.free_blocks.end();
  if (!in.complete() || !offers_fit || !ascending || message.granularity == 0) return malformed();
  return message;
}

Result<std::vector<HeapMessage>> decode_messages(std::span<const Bytes> per_rank,
                                                 const RankNames& names) {
  std::vector<HeapMessage> messages;
  for (std::size_t rank = 0; rank < per_rank.size(); ++rank) {
    auto message = decode_message(per_rank[rank]);
    TUTTI_TRY(message.status().with_context(names.of(rank)));
    messages.push_back(std::move(message).value());
  }
  return messages;
}

Status check_agreement(std::span<const HeapMessage> per_rank, const RankNames& names) {
  for (std::size_t rank = 1; rank < per_rank.size(); ++rank) {
    if (per_rank[rank].call != per_rank[0].call) return disagreement(per_rank, rank, names);
  }
  for (std::size_t rank = 0; rank < per_rank.size(); ++rank) {
    if (!per_rank[rank].status.is_ok())
      return per_rank[rank].status.with_context(
          fmt::format("{}: {}", describe(per_rank[rank].call), names.of(rank)));
  }
  return Status::ok();
}

Status check_offers(std::span<const HeapMessage> per_rank, const RankNames& names) {
  for (std::size_t rank = 0; rank < per_rank.size(); ++rank) {
    const HeapMessage& message = per_rank[rank];
    if (message.offers.size() != message.call.sizes.size()) {
      return malformed().with_context(names.of(rank));
    }
    for (std::size_t k = 0; k < message.offers.size(); ++k) {
      if (holds(message.offers[k], message.call.sizes[k])) continue;
      return {StatusCode::kMismatch,
              fmt::format("{}: {} offers memory that does not hold range {} of {} bytes",
                          describe(message.call), names.of(rank), k, message.call.sizes[k])};
    }
  }
  return Status::ok();
}

Bytes encode_outcomes(std::span<const Status> outcomes) {
  WireWriter out;
  out.put(kMagic);
  out.put(static_cast<std::uint32_t>(outcomes.size()));
  for (const Status& outcome : outcomes) out.put_status(outcome);
  return out.take();
}

Result<std::vector<Status>> decode_outcomes(ByteView bytes, std::size_t expected) {
  WireReader in(bytes);
  if (in.get<std::uint32_t>() != kMagic) return malformed();
  constexpr std::size_t kSmallestStatus = sizeof(StatusCode) + sizeof(std::uint32_t);
  std::vector<Status> outcomes(in.get_count(kSmallestStatus));
  for (Status& outcome : outcomes) outcome = in.get_status();
  if (!in.complete() || outcomes.size() != expected) return malformed();
  return outcomes;
}

Result<std::vector<Status>> combine_outcomes(std::span<const Bytes> per_rank, std::size_t expected,
                                             const RankNames& names) {
  std::vector<Status> combined(expected);
  for (std::size_t rank = 0; rank < per_rank.size(); ++rank) {
    const auto outcomes = decode_outcomes(per_rank[rank], expected);
    TUTTI_TRY(outcomes.status().with_context(names.of(rank)));
    for (std::size_t k = 0; k < expected; ++k) {
      if (combined[k].is_ok()) combined[k] = (*outcomes)[k];
    }
  }
  return combined;
}

}  // namespace tutti
