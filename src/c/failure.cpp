#include "c/failure.hpp"

#include <fmt/format.h>

#include "c/arguments.hpp"

namespace tutti::c {
namespace {

// Its texts belong to `failure`.
void fill(tutti_failure_t& made, const Communicator::Failure& failure) {
  made.code = static_cast<tutti_status_t>(failure.code);
  made.waiting_rank = failure.waiting_rank;
  made.missing_rank = failure.missing_rank;
  made.failed_rank = failure.failed_rank;
  made.sequence = failure.sequence;
  made.expected = failure.expected;
  made.seen = failure.seen;
  made.text = failure.text.c_str();
  made.operation = failure.operation.c_str();
}

}  // namespace

Communicator::Failure& last_failure() noexcept {
  thread_local Communicator::Failure failure;
  return failure;
}

tutti_status_t fail(const Status& status, const Communicator* group) noexcept {
  Communicator::Failure& last = last_failure();
  // A group that has failed answers every call with its failure, which says more than the Status.
  if (group != nullptr) last = group->failure();
  if (group == nullptr || last.code != status.code()) last = {};
  last.code = status.code();
  // Without memory for the text, the code has to do.
  tutti::guarded([&] { last.text = status.message(); });
  return static_cast<tutti_status_t>(status.code());
}

Status invalid(const char* function, std::string_view what) {
  return {StatusCode::kInvalidArgument, fmt::format("{}: {}", function, what)};
}

Status no_handle(const char* function, const char* kind, bool is_null) {
  const char* const what = is_null ? "null" : "closed, or none of this library";
  return invalid(function, fmt::format("the handle ({}) is {}", kind, what));
}

tutti_status_t refuse_handle(const char* function, const char* kind, bool is_null) noexcept {
  return run([&] { return no_handle(function, kind, is_null); });
}

}  // namespace tutti::c

using namespace tutti::c;  // NOLINT(google-build-using-namespace)

extern "C" {

tutti_status_t tutti_last_failure(tutti_failure_t* failure) {
  const char* const name = __func__;
  return run([&] {
    return give_struct(name, "failure", failure,
                       [](tutti_failure_t& made) { fill(made, last_failure()); });
  });
}

const char* tutti_last_error(void) { return last_failure().text.c_str(); }

tutti_status_t tutti_communicator_failure(tutti_communicator_t* communicator,
                                          tutti_failure_t* failure) {
  const char* const name = __func__;
  return run_on(name, communicator, [&](OpenCommunicator& open) {
    return give_struct(name, "failure", failure, [&](tutti_failure_t& made) {
      last_failure() = open.communicator.failure();
      fill(made, last_failure());
    });
  });
}
}
