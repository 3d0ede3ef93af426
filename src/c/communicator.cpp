#include "tutti/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "c/arguments.hpp"
#include "c/failure.hpp"
#include "tutti/collectives.hpp"

namespace tutti::c {
namespace {

CommunicatorOptions options_of(const tutti_communicator_options_t* given, Arguments& in) {
  tutti_communicator_options_t own;
  const tutti_communicator_options_t& from = in.read_optional(given, own);
  return {.backend = in.backend(from.backend),
          .device = from.device,
          .timeout = std::chrono::milliseconds(from.timeout_ms),
          .deterministic = from.deterministic != 0};
}

Status give_id(const Result<UniqueId>& id, tutti_unique_id_t* out) {
  if (!id.is_ok()) return id.status();
  *out = {};
  id->text().copy(out->text, sizeof out->text - 1);
  return Status::ok();
}

Status give_group(Result<Communicator> made, tutti_communicator_t** out) {
  if (!made.is_ok()) return made.status();
  return give(std::make_unique<OpenCommunicator>(std::move(*made)), out);
}

// All of them, or none.
Status give_groups(std::vector<Communicator> made, tutti_communicator_t** out) {
  std::vector<tutti_communicator_t*> handles_of_ranks(made.size());
  Status status;
  for (std::size_t r = 0; r < made.size() && status.is_ok(); ++r) {
    status = give(std::make_unique<OpenCommunicator>(std::move(made[r])), &handles_of_ranks[r]);
  }
  for (std::size_t r = 0; r < made.size(); ++r) {
    if (status.is_ok()) out[r] = handles_of_ranks[r];
    if (!status.is_ok() && handles_of_ranks[r] != nullptr) (void)close(handles_of_ranks[r]);
  }
  return status;
}

// `missing` and `count` may be null.
Status give_survivors(Survivors made, tutti_communicator_t** out, int* missing, int* count) {
  Status given = give(std::make_unique<OpenCommunicator>(std::move(*made.communicator)), out);
  if (!given.is_ok()) return given;
  if (missing != nullptr) std::copy(made.missing.begin(), made.missing.end(), missing);
  if (count != nullptr) *count = static_cast<int>(made.missing.size());
  return given;
}

Communicator::Query query_of(const tutti_query_t* given, Arguments& in) {
  tutti_query_t own;
  const tutti_query_t& from = in.read(given, own);
  return {.count = from.count,
          .dtype = in.data_type(from.dtype),
          .op = in.op(from.op),
          .hidden = from.hidden,
          .symmetric = from.symmetric != 0,
          .in_place = from.in_place != 0,
          .algorithm = Arguments::text(from.algorithm),
          .sm_budget = Arguments::sm_budget(from.sm_budget),
          .counts_on_device = from.counts_on_device != 0,
          .captured = from.captured != 0};
}

void give_plan(const Plan& plan, tutti_plan_t* out) {
  OwnText algorithm = copy_of(plan.algorithm), text = copy_of(to_string(plan));
  tutti_plan_t made = tutti_plan_init();
  made.chunk_bytes = plan.chunk_bytes;
  made.blocks = plan.blocks;
  made.threads = plan.threads;
  made.source = static_cast<int>(plan.source);
  made.emulated = plan.emulated ? 1 : 0;
  made.alone = plan.alone ? 1 : 0;
  made.stream_barrier = plan.stream_barrier ? 1 : 0;
  made.algorithm = algorithm.release();
  made.text = text.release();
  write(made, out);
}

}  // namespace
}  // namespace tutti::c

using namespace tutti::c;  // NOLINT(google-build-using-namespace)
using tutti::Communicator;
using tutti::Status;

extern "C" {

tutti_status_t tutti_unique_id_create(tutti_unique_id_t* id) {
  const char* const name = __func__;
  return run([&] {
    return id == nullptr ? invalid(name, "`id` is null") : give_id(tutti::UniqueId::create(), id);
  });
}
tutti_status_t tutti_unique_id_create_tcp(const char* host, int port, tutti_unique_id_t* id) {
  const char* const name = __func__;
  return run([&] {
    if (host == nullptr || id == nullptr) return invalid(name, "`host` or `id` is null");
    return give_id(tutti::UniqueId::create_tcp(host, port), id);
  });
}
tutti_status_t tutti_unique_id_from_text(const char* text, tutti_unique_id_t* id) {
  const char* const name = __func__;
  return run([&] {
    if (text == nullptr || id == nullptr) return invalid(name, "`text` or `id` is null");
    return give_id(tutti::UniqueId::from_text(text), id);
  });
}

tutti_status_t tutti_communicator_create(const tutti_unique_id_t* id, int rank, int ranks,
                                         const tutti_communicator_options_t* options,
                                         tutti_communicator_t** communicator) {
  const char* const name = __func__;
  return run([&]() -> Status {
    Arguments in(name);
    const tutti::CommunicatorOptions made = options_of(options, in);
    in.check(id != nullptr, "`id` is null");
    in.check(communicator != nullptr, "`communicator` is null");
    if (!in.is_ok()) return in.status();
    const std::string_view text(id->text, strnlen(id->text, sizeof id->text));
    const auto of = tutti::UniqueId::from_text(text);
    if (!of.is_ok()) return of.status();
    return give_group(Communicator::create(*of, rank, ranks, made), communicator);
  });
}

tutti_status_t tutti_communicator_create_from_environment(
    const tutti_communicator_options_t* options, tutti_communicator_t** communicator) {
  const char* const name = __func__;
  return run([&]() -> Status {
    Arguments in(name);
    const tutti::CommunicatorOptions made = options_of(options, in);
    in.check(communicator != nullptr, "`communicator` is null");
    if (!in.is_ok()) return in.status();
    return give_group(Communicator::create_from_environment(made), communicator);
  });
}

tutti_status_t tutti_communicator_create_in_process(const int* devices, int ranks,
                                                    const tutti_communicator_options_t* options,
                                                    tutti_communicator_t** communicators) {
  const char* const name = __func__;
  return run([&]() -> Status {
    Arguments in(name);
    const tutti::CommunicatorOptions made = options_of(options, in);
    in.check(communicators != nullptr, "`communicators` is null");
    if (!in.is_ok()) return in.status();
    auto groups = devices == nullptr || ranks < 1
                      ? Communicator::create_in_process(ranks, made)
                      : Communicator::create_in_process(
                            std::span(devices, static_cast<std::size_t>(ranks)), made);
    return groups.is_ok() ? give_groups(std::move(*groups), communicators) : groups.status();
  });
}

tutti_status_t tutti_communicator_destroy(tutti_communicator_t* communicator) {
  const char* const name = __func__;
  const OpenCommunicator* const open = find(communicator);
  if (open == nullptr || open->dependents == 0) return end(name, communicator);
  return run([&] {
    return invalid(name, "sharded parameters of this communicator are open: destroy them first");
  });
}

tutti_status_t tutti_communicator_info(tutti_communicator_t* communicator,
                                       tutti_communicator_info_t* info) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) {
    return give_struct(name, "info", info, [&](tutti_communicator_info_t& made) {
      made.rank = open.communicator.rank();
      made.ranks = open.communicator.size();
      made.backend = static_cast<int>(open.communicator.backend());
      made.device = open.communicator.device();
    });
  });
}

tutti_status_t tutti_communicator_split(tutti_communicator_t* communicator, int color, int key,
                                        tutti_communicator_t** part) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) -> Status {
    if (part == nullptr) return invalid(name, "`part` is null");
    auto made = open.communicator.split(color, key);
    if (!made.is_ok()) return made.status();
    *part = nullptr;
    if (*made == nullptr) return Status::ok();
    return give(std::make_unique<OpenCommunicator>(std::move(**made)), part);
  });
}

tutti_status_t tutti_communicator_shrink(tutti_communicator_t* communicator, int64_t within_ms,
                                         tutti_communicator_t** survivors, int* missing,
                                         int* missing_count) {
  const char* const name = __func__;
  // Not run_on(): what went wrong here is not the failure of the communicator.
  return run([&]() -> Status {
    OpenCommunicator* const open = find(communicator);
    if (open == nullptr) return no_handle(name, "communicator", communicator == nullptr);
    Arguments in(name);
    in.check(survivors != nullptr, "`survivors` is null");
    in.check(missing == nullptr || missing_count != nullptr,
             "`missing_count` is null, and `missing` is not");
    if (!in.is_ok()) return in.status();
    auto made = open->communicator.shrink(std::chrono::milliseconds(within_ms));
    if (!made.is_ok()) return made.status();
    return give_survivors(std::move(*made), survivors, missing, missing_count);
  });
}

tutti_status_t tutti_start_capture(tutti_communicator_t* communicator) {
  return run_on(__func__, communicator,
                [](OpenCommunicator& open) { return open.communicator.start_capture(); });
}
tutti_status_t tutti_finish_capture(tutti_communicator_t* communicator) {
  return run_on(__func__, communicator,
                [](OpenCommunicator& open) { return open.communicator.finish_capture(); });
}
tutti_status_t tutti_communicator_prepare(tutti_communicator_t* communicator) {
  return run_on(__func__, communicator,
                [](OpenCommunicator& open) { return open.communicator.prepare(); });
}
tutti_status_t tutti_prepare_nccl(tutti_communicator_t* communicator) {
  return run_on(__func__, communicator,
                [](OpenCommunicator& open) { return open.communicator.prepare_nccl(); });
}
tutti_status_t tutti_communicator_set_timeout(tutti_communicator_t* communicator,
                                              int64_t timeout_ms) {
  return run_on(__func__, communicator, [&](OpenCommunicator& open) {
    return open.communicator.set_timeout(std::chrono::milliseconds(timeout_ms));
  });
}
tutti_status_t tutti_communicator_abort(tutti_communicator_t* communicator, const char* reason) {
  return run_on(__func__, communicator, [&](OpenCommunicator& open) {
    open.communicator.abort(Arguments::text(reason));
    return Status::ok();
  });
}
tutti_status_t tutti_communicator_status(tutti_communicator_t* communicator) {
  return run_on(__func__, communicator,
                [](OpenCommunicator& open) { return open.communicator.status(); });
}

tutti_status_t tutti_communicator_counters(tutti_communicator_t* communicator,
                                           tutti_counters_t* counters) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) {
    return give_struct(name, "counters", counters, [&](tutti_counters_t& made) {
      const Communicator::Counters counted = open.communicator.counters();
      made.allocations = counted.allocations;
      made.registrations = counted.registrations;
      made.exchanges = counted.exchanges;
    });
  });
}

tutti_status_t tutti_plan(tutti_communicator_t* communicator, const char* collective,
                          const tutti_query_t* query, tutti_plan_t* plan) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) -> Status {
    Arguments in(name);
    const Communicator::Query asked = query_of(query, in);
    in.check_output(plan, "plan");
    if (!in.is_ok()) return in.status();
    const auto made = open.communicator.plan(Arguments::text(collective), asked);
    if (!made.is_ok()) return made.status();
    give_plan(*made, plan);
    return Status::ok();
  });
}

tutti_status_t tutti_explain(tutti_communicator_t* communicator, const char* collective,
                             const tutti_query_t* query, char** text) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) -> Status {
    Arguments in(name);
    const Communicator::Query asked = query_of(query, in);
    in.check(text != nullptr, "`text` is null");
    if (!in.is_ok()) return in.status();
    // The text does not say that it is an error.
    const auto made = open.communicator.plan(Arguments::text(collective), asked);
    if (made.status().code() == tutti::StatusCode::kInvalidArgument) return made.status();
    *text = copy_of(explain(open.communicator, Arguments::text(collective), asked)).release();
    return Status::ok();
  });
}
}
