#include "group/pipelines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "memory/wire.hpp"
#include "pipelines/check.hpp"
#include "pipelines/derive.hpp"

namespace tutti {
namespace {

// Tell these messages from those of other exchanges.
constexpr std::string_view kPipelineMessage = "pipeline";
constexpr std::string_view kReadyMessage = "pipeline is ready";

struct PipelineMessage {
  std::string text;
  std::optional<ShardPlace> place = {};
};

Bytes encode_pipeline(const PipelineMessage& message) {
  WireWriter writer;
  writer.put_text(kPipelineMessage);
  writer.put_text(message.text);
  writer.put(static_cast<std::uint8_t>(message.place ? 1 : 0));
  const ShardPlace place = message.place.value_or(ShardPlace{});
  writer.put(place.segment);
  writer.put(static_cast<std::uint64_t>(place.offset));
  return writer.take();
}

PipelineMessage decode_pipeline(const Bytes& bytes) {
  WireReader reader(bytes);
  const bool is_one = reader.get_text() == kPipelineMessage;
  PipelineMessage message{.text = reader.get_text()};
  const bool has_place = reader.get<std::uint8_t>() != 0;
  const auto segment = reader.get<std::uint32_t>();
  const auto offset = reader.get<std::uint64_t>();
  if (!is_one || !reader.complete()) return {.text = "something else"};
  if (has_place) message.place = ShardPlace{segment, offset};
  return message;
}

Bytes encode_ready(const Status& status) {
  WireWriter writer;
  writer.put_text(kReadyMessage);
  writer.put_status(status);
  return writer.take();
}

Status decode_ready(const Bytes& bytes) {
  WireReader reader(bytes);
  const bool is_one = reader.get_text() == kReadyMessage;
  Status status = reader.get_status();
  if (is_one && reader.complete()) return status;
  return {StatusCode::kInternal, "does not say whether it is ready"};
}

}  // namespace

fused::PipelineBuffers PreparedPipeline::buffers_of(const DerivedPipeline::Variant& variant,
                                                    int rank, const SymmetricSegment* shard) const {
  const auto peer = [memory = memory.get(), shard](int of, const std::byte* own) {
    const std::less<> before;  // of any memory
    const bool in_shard =
        shard != nullptr && !before(own, shard->local) && before(own, shard->local + shard->bytes);
    const SymmetricSegment& segment = in_shard ? *shard : *memory;
    return segment.at[static_cast<std::size_t>(of)] + (own - segment.local);
  };
  return {variant.program, rank, memory->local + words_bytes, peer};
}

std::uint32_t signature_of(const PipelinedAllGatherMatmul& call) {
  const std::uint64_t hash = Hash().add(call.text).value();
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

std::chrono::milliseconds timeout_of(const PipelinedAllGatherMatmul& call,
                                     const GroupServices& group) {
  return call.timeout.count() == 0 ? group.timeout() : limited(call.timeout);
}

Status pipeline_mismatch(const PipelineCaller& one, const PipelineCaller& other,
                         const RankNames& names) {
  const auto& [first, second] = std::minmax(
      one, other, [](const PipelineCaller& a, const PipelineCaller& b) { return a.rank < b.rank; });
  return {StatusCode::kMismatch,
          fmt::format("ranks run different operations: {} {}; {} {}", names.of(first.rank),
                      first.text, names.of(second.rank), second.text)};
}

// Streams that have not drained may still use the memory: it stays for ever.
Pipelines::~Pipelines() {
  if (!backend_->uses_memory()) return;
  for (PreparedPipeline& one : prepared_) {
    static_cast<void>(new std::shared_ptr<SymmetricSegment>(std::move(one.memory)));
  }
}

// What ranks tell each other of a call stays the same from the first word on, so that no rank that
// is still before the agreement seems to run something else.
Status Pipelines::run(PipelinedAllGatherMatmul call) {
  PreparedPipeline* const prepared = find(call);
  TUTTI_ASSIGN(SymmetricShard shard, find_shard(call));
  if (prepared == nullptr) return run_first(call, std::move(shard));
  bool is_new = false;
  if (shard.memory != nullptr) {
    const auto& pipeline = std::get<DerivedPipeline>(prepared->what);
    if (pipeline.may_read_at(shard.place)) {
      call.text += fmt::format(", A at {}+{}", shard.place.segment, shard.place.offset);
      is_new = !pipeline.places.knows(shard.place);
    } else {
      shard.memory.reset();
    }
  }
  auto products = backend_->make_ready(*prepared, call, shard.memory.get());
  if (!products.is_ok()) return refuse(products.status());
  backend_->tell(call);
  if (is_new) {
    const Status agreed = agree(call, shard).status();
    if (!agreed.is_ok()) {
      backend_->withdraw(agreed);
      return agreed;
    }
  }
  return run_ready(*prepared, call, shard, std::move(*products));
}

Status Pipelines::run_first(const PipelinedAllGatherMatmul& call, SymmetricShard shard) {
  backend_->tell(call);
  const Status status = prepare_and_run(call, std::move(shard));
  if (!status.is_ok()) backend_->withdraw(status);
  return status;
}

Status Pipelines::prepare_and_run(const PipelinedAllGatherMatmul& call, SymmetricShard shard) {
  TUTTI_ASSIGN(const bool in_place, agree(call, shard));
  if (!in_place) shard.memory.reset();
  TUTTI_TRY(backend_->open(call));
  if (prepared_.size() == kMostKeptPipelines) {
    TUTTI_TRY(backend_->await_earlier(call));
    prepared_.pop_back();  // its memory may serve again
  }
  TUTTI_ASSIGN(PreparedPipeline made, prepare(call, in_place));
  auto products = backend_->make_ready(made, call, shard.memory.get());
  TUTTI_TRY(agree_on(call, products.status()));
  prepared_.push_front(std::move(made));
  return run_ready(prepared_.front(), call, shard, std::move(*products));
}

Status Pipelines::run_ready(PreparedPipeline& prepared, const PipelinedAllGatherMatmul& call,
                            const SymmetricShard& shard, ReadyProducts products) {
  if (auto* const pipeline = std::get_if<DerivedPipeline>(&prepared.what)) {
    pipeline->places.count_call(shard.memory != nullptr ? &shard.place : nullptr);
  }
  return backend_->run(prepared, call, shard.memory.get(), std::move(products));
}

// Its text says what the caller can correct; else the others would wait in vain.
Status Pipelines::refuse(const Status& status) {
  if (status.code() == StatusCode::kInvalidArgument) return status.with_context(kAllGatherMatmul);
  Bootstrap& bootstrap = group_.bootstrap();
  return group_.fail(
      status.with_context(bootstrap.names().of(bootstrap.rank())).with_context(kAllGatherMatmul));
}

PreparedPipeline* Pipelines::find(const PipelinedAllGatherMatmul& call) {
  const auto found = std::find_if(prepared_.begin(), prepared_.end(),
                                  [&](const auto& one) { return one.text == call.text; });
  if (found == prepared_.end()) return nullptr;
  prepared_.splice(prepared_.begin(), prepared_, found);
  return &prepared_.front();
}

// Only where each rank has rows: one without them need not have the memory. By the size of the
// largest shard, so that all ranks find the same segment where several hold the address.
Result<SymmetricShard> Pipelines::find_shard(const PipelinedAllGatherMatmul& call) {
  const auto* const d = std::get_if<pipelines::Description>(&call.description);
  if (d == nullptr || d->protocol != pipelines::Protocol::kGet || d->ranks == 1 ||
      shard_rows(*d, d->ranks - 1).count() == 0) {
    return SymmetricShard{};
  }
  const std::size_t bytes = shard_rows(*d, 0).count() * d->k * size_of(d->dtype);
  auto memory = group_.heap()->find(call.shard, bytes);
  if (memory == nullptr || !memory->zero_copy() || memory->copies_queue) return SymmetricShard{};
  TUTTI_TRY(group_.heap()->check_alive(*memory));
  const auto offset = static_cast<const std::byte*>(call.shard) - memory->local;
  const ShardPlace place{memory->id, static_cast<std::size_t>(offset)};
  return SymmetricShard{std::move(memory), place};
}

// All ranks see the same texts, and name the same two.
Result<bool> Pipelines::agree(const PipelinedAllGatherMatmul& call, const SymmetricShard& shard) {
  Bootstrap& bootstrap = group_.bootstrap();
  PipelineMessage own{.text = call.text};
  if (shard.memory != nullptr) own.place = shard.place;
  const auto messages =
      bootstrap.all_gather(encode_pipeline(own), Deadline(timeout_of(call, group_)));
  if (!messages.is_ok()) return group_.fail(messages.status());
  const PipelineMessage first = decode_pipeline(messages->front());
  bool in_place = first.place.has_value();
  for (std::size_t rank = 1; rank < messages->size(); ++rank) {
    const PipelineMessage other = decode_pipeline((*messages)[rank]);
    if (other.text != first.text) {
      return group_.fail(pipeline_mismatch({0, first.text}, {static_cast<int>(rank), other.text},
                                           bootstrap.names()));
    }
    in_place = in_place && other.place == first.place;
  }
  return in_place;
}

Status Pipelines::agree_on(const PipelinedAllGatherMatmul& call, const Status& own) {
  Bootstrap& bootstrap = group_.bootstrap();
  const auto messages = bootstrap.all_gather(encode_ready(own), Deadline(timeout_of(call, group_)));
  if (!messages.is_ok()) return group_.fail(messages.status());
  for (std::size_t rank = 0; rank < messages->size(); ++rank) {
    const Status status = decode_ready((*messages)[rank]);
    if (status.is_ok()) continue;
    const std::string name = bootstrap.names().of(static_cast<int>(rank));
    return status.with_context(name).with_context(kAllGatherMatmul);
  }
  return Status::ok();
}

int Pipelines::free_slot() const {
  int slot = 0;
  const auto is_taken = [&](const PreparedPipeline& one) { return one.slot == slot; };
  while (std::any_of(prepared_.begin(), prepared_.end(), is_taken)) ++slot;
  return slot;
}

Result<PreparedPipeline> Pipelines::prepare(const PipelinedAllGatherMatmul& call, bool in_place) {
  PreparedPipeline made{.text = call.text, .slot = free_slot()};
  std::size_t bytes = 0;
  if (const auto* const rows = std::get_if<fused::FusedRows>(&call.description)) {
    const fused::HostFused fused(*rows, group_.bootstrap().rank());
    bytes = fused.memory_bytes();
    made.what = fused;
  } else {
    TUTTI_ASSIGN(DerivedPipeline derived,
                 derive_pipeline(std::get<pipelines::Description>(call.description), in_place));
    const pipelines::Program& program = derived.copying.without_output.program;
    made.words_bytes = round_up(backend_->words_bytes(program), pipelines::kWorkspaceAlignment);
    bytes = made.words_bytes + workspace_bytes(program);
    made.what = std::move(derived);
  }
  auto memory = allocate_(bytes);
  TUTTI_TRY(memory.status().with_context(kAllGatherMatmul));
  made.memory = std::move(*memory);
  return made;
}

// All variants: later, other ranks would wait for this one meanwhile.
Result<DerivedPipeline> Pipelines::derive_pipeline(const pipelines::Description& description,
                                                   bool in_place) const {
  DerivedPipeline made;
  TUTTI_ASSIGN(made.copying, derive_variants(description, false));
  if (in_place) {
    TUTTI_ASSIGN(made.in_place, derive_variants(description, true));
  }
  return made;
}

Result<DerivedPipeline::Variants> Pipelines::derive_variants(pipelines::Description description,
                                                             bool in_place) const {
  description.symmetric_a = in_place;
  const auto variant_of = [&](bool gathered) -> Result<DerivedPipeline::Variant> {
    description.gathered = gathered;
    TUTTI_ASSIGN(pipelines::Program program, derive(description));
    TUTTI_ASSIGN(auto lists, checked(program));
    auto& own = lists[static_cast<std::size_t>(group_.bootstrap().rank())];
    return DerivedPipeline::Variant{.program = std::move(program), .list = std::move(own)};
  };
  DerivedPipeline::Variants variants;
  TUTTI_ASSIGN(variants.without_output, variant_of(false));
  TUTTI_ASSIGN(variants.with_output, variant_of(true));
  return variants;
}

}  // namespace tutti
