#include "api/group.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "api/group_streams.hpp"
#include "api/guard.hpp"
#include "base/try.hpp"
#include "group/communicator_impl.hpp"
#include "operation/checks.hpp"
#include "operation/group_order.hpp"

namespace tutti {
namespace {

struct Noted {
  CommunicatorImpl* communicator;  // null: it was destroyed
  Call call;
  std::unique_ptr<const std::string> algorithm;  // the caller's text may be gone by group_end
};

thread_local int depth = 0;
thread_local std::vector<Noted> noted;

struct Prepared {
  CommunicatorImpl* communicator;
  OperationPlace place;
  PlannedOperation operation;

  GroupStreams::Use use() const { return {communicator, operation.call.stream}; }
  Batch* batch() const {
    return operation.executor == nullptr ? nullptr : operation.executor->batch();
  }
};

// What a group of calls asks of one communicator.
struct Share {
  CommunicatorImpl* communicator;
  std::vector<Call> collectives = {}, messages = {};  // each in the order of the calls
  std::vector<Prepared> prepared = {};
  Status status = {};

  bool is_on_host() const { return communicator->backend() == Backend::kHost; }
  void note(const Status& one) {
    if (status.is_ok()) status = one;
  }
};

// In the order of OperationPlace.
std::vector<Share> shares_of(const std::vector<Noted>& calls) {
  std::vector<Share> shares;
  for (const Noted& each : calls) {
    auto share = std::find_if(shares.begin(), shares.end(), [&](const Share& one) {
      return one.communicator == each.communicator;
    });
    if (share == shares.end()) share = shares.insert(shares.end(), Share{each.communicator});
    (each.call.messages.empty() ? share->collectives : share->messages).push_back(each.call);
  }
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return std::make_tuple(a.communicator->number(), a.communicator->rank()) <
           std::make_tuple(b.communicator->number(), b.communicator->rank());
  });
  return shares;
}

// The communicator's messages as operations; where they cannot be, its collectives run alone.
std::vector<Call> message_operations_of(Share& share) {
  if (share.messages.empty()) return {};
  auto operations = operations_of(*share.communicator, share.messages);
  share.note(operations.status());
  return operations.is_ok() ? std::move(operations).value() : std::vector<Call>();
}

void run_on_host(Share& share) {
  const std::vector<Call> messages = message_operations_of(share);
  std::vector<const Call*> calls;
  calls.reserve(share.collectives.size() + messages.size());
  for (const Call& call : share.collectives) calls.push_back(&call);
  for (const Call& call : messages) calls.push_back(&call);
  share.note(share.communicator->execute_on_host(calls));
}

void prepare(Share& share, const Call& call) {
  auto one = share.communicator->prepare(call);
  share.note(one.status());
  if (!one.is_ok()) return;
  const bool message = !call.messages.empty();
  const OperationPlace place{.communicator = share.communicator->number(),
                             .messages_by = message ? one->operation.row->id : std::string_view(),
                             .index = share.prepared.size(),
                             .rank = share.communicator->rank()};
  share.prepared.push_back({share.communicator, place, std::move(*one)});
}

// What messages run on may depend on what the collectives have made.
void prepare(Share& share) {
  for (const Call& call : share.collectives) prepare(share, call);
  for (const Call& call : message_operations_of(share)) prepare(share, call);
}

// Runs each in a thread, since each may wait for other ranks; the last one, or what is to be done
// meanwhile, in this one.
template <class Meanwhile>
void in_threads(std::span<Share> shares, void (*run)(Share&), const Meanwhile& meanwhile) {
  const auto run_one = [run](Share& share) {
    share.note(guarded(*share.communicator, [&] {
      run(share);
      return Status::ok();
    }));
  };
  std::vector<std::jthread> threads;
  threads.reserve(shares.size());
  for (Share& share : shares) {
    guarded_by([&] { (void)threads.emplace_back([&] { run_one(share); }); },
               [&](const Status& failure) { share.note(share.communicator->break_off(failure)); });
  }
  meanwhile();
}

void in_threads(std::span<Share> shares, void (*run)(Share&)) {
  if (shares.empty()) return;
  in_threads(shares.first(shares.size() - 1), run, [&] { run(shares.back()); });
}

std::vector<GroupStreams::Use> uses_of(const Share& share) {
  std::vector<GroupStreams::Use> uses;
  for (const auto* calls : {&share.collectives, &share.messages}) {
    for (const Call& call : *calls) uses.push_back({share.communicator, call.stream});
  }
  return uses;
}

// Of one batch, or a single one.
Status start_together(std::span<Prepared> operations, GroupStreams& streams) {
  std::vector<GroupStreams::Use> uses;
  uses.reserve(operations.size());
  for (const Prepared& each : operations) uses.push_back(each.use());
  Batch* const batch = operations.front().batch();
  Status first = streams.hold(uses);
  if (first.is_ok() && batch != nullptr) first = batch->begin();
  Status ended = first;
  const auto note = [&first](const Status& status) {
    if (first.is_ok()) first = status;
  };
  if (ended.is_ok()) {
    for (Prepared& each : operations) note(each.communicator->start(each.operation));
    if (batch != nullptr) ended = batch->end();
    note(ended);
  } else {
    // Nothing was started, which the other ranks wait for.
    for (Prepared& each : operations) (void)each.communicator->break_off(ended);
  }
  for (Prepared& each : operations) note(each.communicator->settle(each.operation, ended));
  streams.advance(uses);
  return first;
}

// An executor's operations are one batch as far as nothing of another executor comes between them:
// what a batch holds starts at its end.
Status start_in_order(std::vector<Prepared>& operations, GroupStreams& streams) {
  std::sort(operations.begin(), operations.end(),
            [](const Prepared& a, const Prepared& b) { return a.place < b.place; });
  Status first;
  const std::span<Prepared> all = operations;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const Batch* const batch = all[begin].batch();
    const auto belongs = [&](const Prepared& next) {
      const Batch* const other = next.batch();
      return batch != nullptr && other != nullptr && other->key() == batch->key();
    };
    end = begin + 1;
    while (end < all.size() && belongs(all[end])) ++end;
    const Status status = start_together(all.subspan(begin, end - begin), streams);
    if (first.is_ok()) first = status;
  }
  return first;
}

// Operations that only have to be enqueued: all are prepared before any is started.
Status run_on_devices(std::span<Share> shares) {
  std::vector<GroupStreams::Use> uses;
  for (const Share& share : shares) {
    const auto its = uses_of(share);
    uses.insert(uses.end(), its.begin(), its.end());
  }
  GroupStreams streams(uses);
  bool agree = false;
  for (Share& share : shares) {
    share.note(streams.add(uses_of(share)));
    if (!share.status.is_ok()) share.collectives = share.messages = {};
    for (const auto* calls : {&share.collectives, &share.messages}) {
      agree = agree || std::any_of(calls->begin(), calls->end(), [&](const Call& call) {
                return share.communicator->must_agree(call);
              });
    }
  }
  if (agree) {
    in_threads(shares, prepare);
  } else {
    for (Share& share : shares) prepare(share);
  }
  std::vector<Prepared> operations;
  for (Share& share : shares) {
    std::move(share.prepared.begin(), share.prepared.end(), std::back_inserter(operations));
  }
  const Status started = start_in_order(operations, streams);
  const Status released = streams.release();
  return started.is_ok() ? released : started;
}

Status run_noted(const std::vector<Noted>& calls) {
  std::vector<Share> shares = shares_of(calls);
  const auto devices = std::stable_partition(shares.begin(), shares.end(),
                                             [](const Share& share) { return share.is_on_host(); });
  const std::span<Share> on_host(shares.begin(), devices), on_devices(devices, shares.end());
  Status enqueued;
  if (on_devices.empty()) {
    in_threads(on_host, run_on_host);
  } else {
    in_threads(on_host, run_on_host, [&] { enqueued = run_on_devices(on_devices); });
  }
  for (const Share& share : shares) TUTTI_TRY(share.status);
  return enqueued;
}

Status not_in_group() {
  return {StatusCode::kInvalidArgument, "group_end() without group_start()"};
}

Status run_what_is_left(std::vector<Noted>& calls) {
  const auto is_lost = [](const Noted& each) { return each.communicator == nullptr; };
  const bool lost = std::erase_if(calls, is_lost) > 0;
  TUTTI_TRY(run_noted(calls));
  if (!lost) return Status::ok();
  return {StatusCode::kInvalidArgument,
          "group_end(): a communicator was destroyed after group_start(): its calls did not run"};
}

}  // namespace

Status submit(Communicator& communicator, const Call& call) {
  TUTTI_TRY(check_options(to_string(call.collective), call.options));
  if (depth == 0 && call.messages.empty()) return communicator.impl().execute(call);
  if (depth == 0) {
    TUTTI_ASSIGN(const auto operations, operations_of(communicator.impl(), {call}));
    return communicator.impl().execute(operations.front());
  }
  noted.push_back(
      {&communicator.impl(), call, std::make_unique<const std::string>(call.options.algorithm)});
  noted.back().call.options.algorithm = *noted.back().algorithm;
  return Status::ok();
}

bool in_group() { return depth > 0; }

void group_start() { ++depth; }

void drop_noted(const CommunicatorImpl& communicator) {
  if (depth == 0) return;
  for (Noted& each : noted) {
    if (each.communicator == &communicator) each.communicator = nullptr;
  }
}

Status group_end() {
  const bool outside = depth == 0;
  if (!outside && --depth > 0) return Status::ok();
  std::vector<Noted> operations;
  operations.swap(noted);
  return guarded_by([&] { return outside ? not_in_group() : run_what_is_left(operations); },
                    [&](const Status& failure) {
                      for (const Noted& operation : operations) {
                        (void)operation.communicator->break_off(failure);
                      }
                      return failure;
                    });
}

}  // namespace tutti
