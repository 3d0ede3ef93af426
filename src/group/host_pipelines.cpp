#include "group/host_pipelines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "fused/host_pipeline.hpp"
#include "memory/wire.hpp"
#include "pipelines/check.hpp"
#include "pipelines/derive.hpp"

namespace tutti {
namespace {

// Tells these messages from those of other exchanges.
constexpr std::string_view kPipelineMessage = "pipeline";

Bytes encode_pipeline(const PipelinedAllGatherMatmul& call) {
  WireWriter writer;
  writer.put_text(kPipelineMessage);
  writer.put(hash_of(call.description));
  writer.put_text(call.text);
  return writer.take();
}

// What a rank calls, for people.
std::string decode_pipeline(const Bytes& message) {
  WireReader reader(message);
  const bool is_one = reader.get_text() == kPipelineMessage;
  reader.get<std::uint64_t>();
  std::string text = reader.get_text();
  return is_one && reader.complete() ? text : "something else";
}

}  // namespace

Status HostPipelines::run(const PipelinedAllGatherMatmul& call) {
  if (notices_) notices_->tell(call.text);
  TUTTI_ASSIGN(Prepared* const prepared, find_or_prepare(call));
  const Status status = run_prepared(*prepared, call);
  return status.is_ok() ? status : group_.fail(status);
}

std::chrono::milliseconds HostPipelines::timeout_of(const PipelinedAllGatherMatmul& call) const {
  return call.timeout.count() == 0 ? group_.timeout() : limited(call.timeout);
}

Result<HostPipelines::Prepared*> HostPipelines::find_or_prepare(
    const PipelinedAllGatherMatmul& call) {
  const auto found = std::find_if(prepared_.begin(), prepared_.end(), [&](const Prepared& one) {
    return one.description == call.description && one.text == call.text;
  });
  if (found != prepared_.end()) {
    prepared_.splice(prepared_.begin(), prepared_, found);
    return &prepared_.front();
  }
  TUTTI_TRY(agree(call));
  if (!notices_) TUTTI_TRY(open_notices(call));
  if (prepared_.size() == kMostKept) prepared_.pop_back();  // its memory may serve again
  TUTTI_ASSIGN(Prepared made, prepare(call));
  prepared_.push_front(std::move(made));
  return &prepared_.front();
}

// All ranks see the same texts, and name the same two.
Status HostPipelines::agree(const PipelinedAllGatherMatmul& call) {
  Bootstrap& bootstrap = group_.bootstrap();
  const auto messages = bootstrap.all_gather(encode_pipeline(call), Deadline(timeout_of(call)));
  if (!messages.is_ok()) return group_.fail(messages.status());
  const auto other = std::find_if(messages->begin(), messages->end(),
                                  [&](const Bytes& one) { return one != messages->front(); });
  if (other == messages->end()) return Status::ok();
  const auto rank = static_cast<int>(other - messages->begin());
  return group_.fail(
      mismatch({0, decode_pipeline(messages->front())}, {rank, decode_pipeline(*other)}));
}

Status HostPipelines::mismatch(const Caller& one, const Caller& other) const {
  const RankNames names = group_.bootstrap().names();
  const auto& [first, second] =
      std::minmax(one, other, [](const Caller& a, const Caller& b) { return a.rank < b.rank; });
  return {StatusCode::kMismatch,
          fmt::format("ranks run different operations: {} {}; {} {}", names.of(first.rank),
                      first.text, names.of(second.rank), second.text)};
}

// Of the first call, which all ranks make alike.
Status HostPipelines::open_notices(const PipelinedAllGatherMatmul& call) {
  auto memory = allocate_(PipelineNotices::kBytes);
  TUTTI_TRY(memory.status().with_context(kAllGatherMatmul));
  notices_.emplace(std::move(*memory), group_.bootstrap().rank());
  notices_->tell(call.text);
  return Status::ok();
}

Status HostPipelines::group_status(const PipelinedAllGatherMatmul& call) const {
  TUTTI_TRY(group_.failure());
  auto [rank, text] = notices_->find_other(call.text);
  if (rank < 0) return Status::ok();
  return mismatch({group_.bootstrap().rank(), call.text}, {rank, std::move(text)});
}

// Both variants: later, other ranks would wait for this one meanwhile.
Result<HostPipelines::Prepared> HostPipelines::prepare(const PipelinedAllGatherMatmul& call) {
  Prepared made{.description = call.description, .text = call.text};
  TUTTI_ASSIGN(made.without_output, derive_variant(call.description, false));
  TUTTI_ASSIGN(made.with_output, derive_variant(call.description, true));
  const pipelines::Program& program = made.without_output.program;
  made.words_bytes =
      round_up(words_per_rank(program) * sizeof(std::uint64_t), pipelines::kWorkspaceAlignment);
  auto memory = allocate_(made.words_bytes + workspace_bytes(program));
  TUTTI_TRY(memory.status().with_context(kAllGatherMatmul));
  made.memory = std::move(*memory);
  return made;
}

Result<HostPipelines::Variant> HostPipelines::derive_variant(pipelines::Description description,
                                                             bool gathered) const {
  description.gathered = gathered;
  TUTTI_ASSIGN(pipelines::Program program, derive(description));
  TUTTI_ASSIGN(auto lists, checked(program));
  auto& own = lists[static_cast<std::size_t>(group_.bootstrap().rank())];
  return Variant{.program = std::move(program), .list = std::move(own)};
}

Status HostPipelines::run_prepared(Prepared& prepared, const PipelinedAllGatherMatmul& call) {
  const Variant& variant =
      call.gathered != nullptr ? prepared.with_output : prepared.without_output;
  fused::HostPatience patience{
      .timeout = [&] { return timeout_of(call); },
      .group_status = [&] { return group_status(call); },
      .has_left = [this](int rank) { return group_.has_left(rank); },
      .name_of = [this](int rank) { return group_.bootstrap().names().of(rank); }};
  fused::HostPipeline runtime(variant.program, memory_of(prepared), host_multiply(call.product),
                              std::move(patience));
  ++prepared.epoch;
  return run_call(variant.program, variant.list, buffers_of(variant.program, call), runtime);
}

fused::HostPipelineMemory HostPipelines::memory_of(const Prepared& prepared) const {
  const SymmetricSegment& memory = *prepared.memory;
  fused::HostPipelineMemory made{.rank = group_.bootstrap().rank(),
                                 .epoch = prepared.epoch,
                                 .workspace = memory.local + prepared.words_bytes};
  for (std::byte* const at : memory.at) made.words.push_back(reinterpret_cast<std::uint64_t*>(at));
  // Only workspaces are symmetric.
  made.peer = [&memory](int rank, const std::byte* own) {
    return memory.at[static_cast<std::size_t>(rank)] + (own - memory.local);
  };
  return made;
}

}  // namespace tutti
