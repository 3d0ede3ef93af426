#include "api/group.hpp"

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "operation/checks.hpp"

namespace tutti {
namespace {

struct Noted {
  CommunicatorImpl* communicator;
  Call call;
  std::string algorithm;  // the caller's text may be gone by group_end
};

// Whether two messages may be of one operation.
bool belong_together(const Noted& a, const Noted& b) {
  const CallOptions &x = a.call.options, &y = b.call.options;
  return a.communicator == b.communicator && a.call.stream == b.call.stream &&
         a.algorithm == b.algorithm && x.timeout == y.timeout && x.blocks == y.blocks &&
         x.threads == y.threads && x.chunk_bytes == y.chunk_bytes && x.sm_budget == y.sm_budget;
}

// Messages as operations, where the first of each stands. The first thing that is wrong with some
// of them is told; the others remain.
Status join_messages(std::vector<Noted>& operations) {
  Status first;
  std::vector<Noted> joined;
  std::vector<bool> done(operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (done[i]) continue;
    if (operations[i].call.messages.empty()) {
      joined.push_back(std::move(operations[i]));
      continue;
    }
    std::vector<Call> messages;
    for (std::size_t k = i; k < operations.size(); ++k) {
      if (operations[k].call.messages.empty() || !belong_together(operations[i], operations[k])) {
        continue;
      }
      messages.push_back(operations[k].call);
      done[k] = true;
    }
    auto whole = operations_of(*operations[i].communicator, messages);
    if (first.is_ok()) first = whole.status();
    if (!whole.is_ok()) continue;
    for (Call& call : *whole) {
      joined.push_back({operations[i].communicator, std::move(call), operations[i].algorithm});
    }
  }
  operations = std::move(joined);
  return first;
}

thread_local int depth = 0;
thread_local std::vector<Noted> noted;

Status run_in_order(CommunicatorImpl& communicator, const std::vector<Noted*>& queue) {
  if (communicator.backend() == Backend::kHost) {
    std::vector<const Call*> calls;
    calls.reserve(queue.size());
    for (const Noted* operation : queue) calls.push_back(&operation->call);
    return communicator.execute_on_host(calls);
  }
  Status first;
  for (const Noted* operation : queue) {
    const Status one = communicator.execute(operation->call);
    if (first.is_ok()) first = one;
  }
  return first;
}

// Operations that ask the other ranks something (or, on the host, wait for them) need a thread per
// communicator; within one communicator order is kept.
Status run_in_threads(std::vector<Noted>& operations) {
  std::map<CommunicatorImpl*, std::vector<Noted*>> by_communicator;
  for (Noted& operation : operations) by_communicator[operation.communicator].push_back(&operation);
  std::vector<Status> statuses(by_communicator.size());
  {
    std::vector<std::jthread> threads;
    threads.reserve(by_communicator.size());
    std::size_t next = 0;
    for (const auto& entry : by_communicator) {
      Status& status = statuses[next++];
      const auto run = [&entry, &status] {
        status = guarded(*entry.first, [&] { return run_in_order(*entry.first, entry.second); });
      };
      guarded_by([&] { (void)threads.emplace_back(run); },
                 [&](const Status& failure) { status = entry.first->break_off(failure); });
    }
  }
  const auto failed = std::find_if(statuses.begin(), statuses.end(),
                                   [](const Status& status) { return !status.is_ok(); });
  return failed == statuses.end() ? Status::ok() : *failed;
}

// Whether one of these begins it, too: executors of several groups may hand over together.
bool holds(const std::vector<Batch*>& batches, const Batch& batch) {
  return std::any_of(batches.begin(), batches.end(),
                     [&](const Batch* one) { return one->key() == batch.key(); });
}

// Operations that only have to be enqueued: prepared one after the other, then started together,
// within the batches of their executors.
Status run_in_this_thread(std::vector<Noted>& operations) {
  Status first;
  const auto note = [&first](const Status& status) {
    if (first.is_ok()) first = status;
  };
  std::vector<std::pair<CommunicatorImpl*, PlannedOperation>> prepared;
  std::vector<Batch*> batches;
  for (const Noted& operation : operations) {
    auto one = operation.communicator->prepare(operation.call);
    note(one.status());
    if (!one.is_ok()) continue;
    Batch* const batch = one->executor == nullptr ? nullptr : one->executor->batch();
    if (batch != nullptr && !holds(batches, *batch)) batches.push_back(batch);
    prepared.emplace_back(operation.communicator, std::move(*one));
  }
  for (std::size_t begun = 0; begun < batches.size(); ++begun) {
    const Status refused = batches[begun]->begin();
    if (refused.is_ok()) continue;
    for (std::size_t earlier = 0; earlier < begun; ++earlier) (void)batches[earlier]->end();
    for (auto& [communicator, operation] : prepared) (void)communicator->settle(operation, refused);
    return refused;
  }
  for (auto& [communicator, operation] : prepared) note(communicator->start(operation));
  Status ended;
  for (Batch* batch : batches) {
    const Status one = batch->end();
    if (ended.is_ok()) ended = one;
  }
  note(ended);
  for (auto& [communicator, operation] : prepared) note(communicator->settle(operation, ended));
  return first;
}

Status not_in_group() {
  return {StatusCode::kInvalidArgument, "group_end() without group_start()"};
}

Status run_noted(std::vector<Noted>& operations) {
  for (Noted& operation : operations) operation.call.options.algorithm = operation.algorithm;
  const Status joined = join_messages(operations);
  for (Noted& operation : operations) operation.call.options.algorithm = operation.algorithm;
  const bool agree = std::any_of(operations.begin(), operations.end(), [](const Noted& operation) {
    return operation.communicator->must_agree(operation.call);
  });
  const Status ended = agree ? run_in_threads(operations) : run_in_this_thread(operations);
  return joined.is_ok() ? ended : joined;
}

}  // namespace

Status submit(Communicator& communicator, const Call& call) {
  TUTTI_TRY(check_options(to_string(call.collective), call.options));
  if (depth == 0 && call.messages.empty()) return communicator.impl().execute(call);
  if (depth == 0) {
    TUTTI_ASSIGN(const auto operations, operations_of(communicator.impl(), {call}));
    return communicator.impl().execute(operations.front());
  }
  noted.push_back({&communicator.impl(), call, std::string(call.options.algorithm)});
  return Status::ok();
}

bool in_group() { return depth > 0; }

void group_start() { ++depth; }

Status group_end() {
  const bool outside = depth == 0;
  if (!outside && --depth > 0) return Status::ok();
  std::vector<Noted> operations;
  operations.swap(noted);
  return guarded_by([&] { return outside ? not_in_group() : run_noted(operations); },
                    [&](const Status& failure) {
                      for (const Noted& operation : operations) {
                        (void)operation.communicator->break_off(failure);
                      }
                      return failure;
                    });
}

}  // namespace tutti
