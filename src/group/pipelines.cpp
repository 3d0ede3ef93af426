#include "group/pipelines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
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
  writer.put_text(call.text);
  return writer.take();
}

// What a rank calls, for people.
std::string decode_pipeline(const Bytes& message) {
  WireReader reader(message);
  const bool is_one = reader.get_text() == kPipelineMessage;
  std::string text = reader.get_text();
  return is_one && reader.complete() ? text : "something else";
}

}  // namespace

fused::PipelineBuffers PreparedPipeline::buffers_of(const DerivedPipeline::Variant& variant,
                                                    int rank) const {
  const auto peer = [memory = memory.get()](int of, const std::byte* own) {
    return memory->at[static_cast<std::size_t>(of)] + (own - memory->local);
  };
  return {variant.program, rank, memory->local + words_bytes, peer};
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

Status Pipelines::run(const PipelinedAllGatherMatmul& call) {
  backend_->tell(call);
  TUTTI_ASSIGN(PreparedPipeline* const prepared, find_or_prepare(call));
  return backend_->run(*prepared, call);
}

Result<PreparedPipeline*> Pipelines::find_or_prepare(const PipelinedAllGatherMatmul& call) {
  const auto found = std::find_if(prepared_.begin(), prepared_.end(),
                                  [&](const auto& one) { return one.text == call.text; });
  if (found != prepared_.end()) {
    prepared_.splice(prepared_.begin(), prepared_, found);
    return &prepared_.front();
  }
  TUTTI_TRY(agree(call));
  TUTTI_TRY(backend_->open(call));
  if (prepared_.size() == kMostKeptPipelines) {
    TUTTI_TRY(backend_->await_earlier(call));
    prepared_.pop_back();  // its memory may serve again
  }
  TUTTI_ASSIGN(PreparedPipeline made, prepare(call));
  prepared_.push_front(std::move(made));
  return &prepared_.front();
}

// All ranks see the same texts, and name the same two.
Status Pipelines::agree(const PipelinedAllGatherMatmul& call) {
  Bootstrap& bootstrap = group_.bootstrap();
  const auto messages =
      bootstrap.all_gather(encode_pipeline(call), Deadline(timeout_of(call, group_)));
  if (!messages.is_ok()) return group_.fail(messages.status());
  const auto other = std::find_if(messages->begin(), messages->end(),
                                  [&](const Bytes& one) { return one != messages->front(); });
  if (other == messages->end()) return Status::ok();
  const auto rank = static_cast<int>(other - messages->begin());
  return group_.fail(pipeline_mismatch({0, decode_pipeline(messages->front())},
                                       {rank, decode_pipeline(*other)}, bootstrap.names()));
}

int Pipelines::free_slot() const {
  int slot = 0;
  const auto is_taken = [&](const PreparedPipeline& one) { return one.slot == slot; };
  while (std::any_of(prepared_.begin(), prepared_.end(), is_taken)) ++slot;
  return slot;
}

Result<PreparedPipeline> Pipelines::prepare(const PipelinedAllGatherMatmul& call) {
  PreparedPipeline made{.text = call.text, .slot = free_slot()};
  std::size_t bytes = 0;
  if (const auto* const rows = std::get_if<fused::FusedRows>(&call.description)) {
    const fused::HostFused fused(*rows, group_.bootstrap().rank());
    bytes = fused.memory_bytes();
    made.what = fused;
  } else {
    TUTTI_ASSIGN(DerivedPipeline derived,
                 derive_pipeline(std::get<pipelines::Description>(call.description)));
    const pipelines::Program& program = derived.without_output.program;
    made.words_bytes = round_up(backend_->words_bytes(program), pipelines::kWorkspaceAlignment);
    bytes = made.words_bytes + workspace_bytes(program);
    made.what = std::move(derived);
  }
  auto memory = allocate_(bytes);
  TUTTI_TRY(memory.status().with_context(kAllGatherMatmul));
  made.memory = std::move(*memory);
  return made;
}

// Both variants: later, other ranks would wait for this one meanwhile.
Result<DerivedPipeline> Pipelines::derive_pipeline(
    const pipelines::Description& description) const {
  DerivedPipeline made;
  TUTTI_ASSIGN(made.without_output, derive_variant(description, false));
  TUTTI_ASSIGN(made.with_output, derive_variant(description, true));
  return made;
}

Result<DerivedPipeline::Variant> Pipelines::derive_variant(pipelines::Description description,
                                                           bool gathered) const {
  description.gathered = gathered;
  TUTTI_ASSIGN(pipelines::Program program, derive(description));
  TUTTI_ASSIGN(auto lists, checked(program));
  auto& own = lists[static_cast<std::size_t>(group_.bootstrap().rank())];
  return DerivedPipeline::Variant{.program = std::move(program), .list = std::move(own)};
}

}  // namespace tutti
