#include "drivers/nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "base/convert.hpp"
#include "base/knobs.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "drivers/nccl_library.hpp"

namespace tutti {
namespace {

bool is_fp8(DataType dtype) {
  return dtype == DataType::kFloat8E4M3 || dtype == DataType::kFloat8E5M2;
}

Status nccl_status(const NcclLibrary& library, int result, const char* call, NcclComm comm) {
  if (result == kNcclSuccess) return Status::ok();
  if (result == kNcclInProgress) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{}: NCCL_COMM_BLOCKING=0 makes calls return before they are done: "
                              "unset it",
                              call));
  }
  std::string text = fmt::format("{}: {}", call, library.get_error_string(result));
  const char* detail = library.get_last_error ? library.get_last_error(comm) : nullptr;
  if (detail != nullptr && *detail != '\0') text += fmt::format(": {}", detail);
  if (text.find("NCCL_DEBUG") == std::string::npos) text += " (NCCL_DEBUG=WARN tells more)";
  return Status(result == kNcclRemoteError ? StatusCode::kPeerFailed : StatusCode::kNccl, text);
}

// ncclCommInitRank waits without an end for a rank that never comes, so it runs on a thread that
// can be left behind. (A communicator that is not blocking could be aborted instead, but would make
// a thread for each operation.)
class Join {
 public:
  Join(std::shared_ptr<const NcclLibrary> library, const NcclMember& member)
      : library_(std::move(library)), member_(member) {}

  // On the thread of its own. `device` is the caller's; negative: none.
  void run(int device) {
    Status status;
    NcclComm comm = nullptr;
    if (device >= 0) status = real_cuda()->set_device(device);
    if (status.is_ok()) {
      status = nccl_status(*library_, call(&comm), "ncclCommInitRank", nullptr);
    }
    NcclComm const made = status.is_ok() ? comm : nullptr;
    const bool taken = finish(made, std::move(status));
    // A failed init leaves a communicator behind, too.
    if (comm != nullptr && !taken) library_->comm_abort(comm);
  }

  Result<NcclComm> wait(Deadline deadline, const NcclDriver::GiveUp& give_up) {
    constexpr std::chrono::milliseconds kPeriod{10};
    std::unique_lock lock(mutex_);
    while (!done_) {
      if (deadline.passed()) {
        return abandon(StatusCode::kTimeout,
                       "waited in vain for the others; see which rank did not call, or raise "
                       "TUTTI_TIMEOUT_MS");
      }
      if (give_up && give_up()) {
        return abandon(StatusCode::kAborted, "gave up waiting for the others");
      }
      ended_.wait_until(lock, deadline.next_look(kPeriod));
    }
    TUTTI_TRY(status_);
    return comm_;
  }

 private:
  int call(NcclComm* comm) const {
    const auto& [id, rank, size, mover] = member_;
    if (mover == NcclMover::kKernels) return library_->comm_init_rank(comm, size, id, rank);
    NcclConfig config;
    config.cta_policy = kNcclCtaPolicyZero;
    return library_->comm_init_rank_config(comm, size, id, rank, &config);
  }

  Status abandon(StatusCode code, const char* why) {
    abandoned_ = true;
    return {code,
            fmt::format("ncclCommInitRank: rank {} of {} {}", member_.rank, member_.size, why)};
  }

  // Whether somebody takes the communicator.
  bool finish(NcclComm comm, Status status) {
    const std::lock_guard lock(mutex_);
    comm_ = comm;
    status_ = std::move(status);
    done_ = true;
    ended_.notify_one();
    return comm != nullptr && !abandoned_;
  }

  const std::shared_ptr<const NcclLibrary> library_;
  const NcclMember member_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false, abandoned_ = false;
  NcclComm comm_ = nullptr;
  Status status_;
};

class RealNccl final : public NcclDriver {
 public:
  explicit RealNccl(std::shared_ptr<const NcclLibrary> library) : library_(std::move(library)) {}

  Result<std::string> version() override { return nccl_version_text(library_->version); }
  int version_number() override { return library_->version; }

  Result<NcclId> unique_id() override {
    NcclId id;
    TUTTI_TRY(check(library_->get_unique_id(&id), "ncclGetUniqueId"));
    return id;
  }

  Result<NcclComm> create(const NcclMember& member, Deadline deadline,
                          const GiveUp& give_up) override {
    if (member.mover == NcclMover::kCopyEngines &&
        (library_->version < kNcclFirstCopyVersion || library_->comm_init_rank_config == nullptr)) {
      return too_old_to("move data with copy engines", "2.28");
    }
    int device = -1;
    if (CudaDriver* cuda = real_cuda()) {
      TUTTI_ASSIGN(device, cuda->current_device());
    }
    const auto join = std::make_shared<Join>(library_, member);
    std::thread([join, device] { join->run(device); }).detach();
    return join->wait(deadline, give_up);
  }

  Status destroy(NcclComm comm) override {
    return check(library_->comm_destroy(comm), "ncclCommDestroy");
  }

  Status abort(NcclComm comm) override {
    return check(library_->comm_abort(comm), "ncclCommAbort");
  }

  Status interrupt(NcclComm comm) override {
    if (library_->comm_revoke == nullptr) {
      return {StatusCode::kUnsupported,
              fmt::format("NCCL {} has no ncclCommRevoke: it takes 2.28 or newer",
                          nccl_version_text(library_->version))};
    }
    return check(library_->comm_revoke(comm, kNcclRevokeDefault), "ncclCommRevoke");
  }

  Status async_error(NcclComm comm) override {
    int error = kNcclSuccess;
    TUTTI_TRY(check(library_->comm_get_async_error(comm, &error), "ncclCommGetAsyncError", comm));
    if (error == kNcclInProgress) return Status::ok();
    return check(error, "NCCL, asynchronously", comm);
  }

  Status all_reduce(NcclComm comm, const NcclReduction& call) override {
    return reduce({library_->all_reduce, "ncclAllReduce"}, comm, call);
  }

  Status all_gather(NcclComm comm, const NcclAllGather& call) override {
    return check(library_->all_gather(call.input, call.output, call.bytes,
                                      nccl_data_type(DataType::kUint8), comm, call.stream),
                 "ncclAllGather", comm);
  }

  Status reduce_scatter(NcclComm comm, const NcclReduction& call) override {
    return reduce({library_->reduce_scatter, "ncclReduceScatter"}, comm, call);
  }

  Status reduce(NcclComm comm, const NcclReduction& call) override {
    return reduce({nullptr, "ncclReduce", library_->reduce}, comm, call);
  }

  Status broadcast(NcclComm comm, const NcclBroadcast& call) override {
    return check(
        library_->broadcast(call.input, call.output, call.bytes, nccl_data_type(DataType::kUint8),
                            call.root, comm, call.stream),
        "ncclBroadcast", comm);
  }

  Status exchange(NcclComm comm, const NcclExchange& call) override {
    TUTTI_TRY(group_start());
    const Status exchanged = send_and_receive(comm, call);
    const Status ended =
        group_end();  // in any case: a group that stays open holds up all that follows
    return exchanged.is_ok() ? ended : exchanged;
  }

  Result<NcclWindow> register_window(NcclComm comm, std::byte* base, std::size_t bytes) override {
    if (library_->version < kNcclFirstWindowVersion || library_->window_register == nullptr ||
        library_->window_deregister == nullptr) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("NCCL {} has no windows: it takes 2.27 or newer",
                                nccl_version_text(library_->version)));
    }
    NcclWindow window = nullptr;
    TUTTI_TRY(check(library_->window_register(comm, base, bytes, &window, kNcclWindowSymmetric),
                    "ncclCommWindowRegister", comm));
    if (window != nullptr) return window;
    // Where it cannot have them NCCL says so by success without a window.
    return Status(StatusCode::kUnsupported,
                  "ncclCommWindowRegister made no window: NCCL_WIN_ENABLE or NCCL_CUMEM_ENABLE is "
                  "0, or not every GPU reaches every other directly (NCCL_DEBUG=INFO tells more)");
  }

  Status deregister_window(NcclComm comm, NcclWindow window) override {
    return check(library_->window_deregister(comm, window), "ncclCommWindowDeregister", comm);
  }

  Status move_pieces(NcclComm comm, const NcclPieces& call) override {
    if (library_->all_to_all == nullptr || library_->gather == nullptr ||
        library_->scatter == nullptr) {
      return too_old_to("move pieces in one call", "2.28");
    }
    const auto [input, output, bytes] = std::tuple(call.input, call.output, call.bytes);
    const int type = nccl_data_type(DataType::kUint8);
    switch (call.way) {
      case NcclPieces::Way::kGather:
        return check(library_->gather(input, output, bytes, type, call.root, comm, call.stream),
                     "ncclGather", comm);
      case NcclPieces::Way::kScatter:
        return check(library_->scatter(input, output, bytes, type, call.root, comm, call.stream),
                     "ncclScatter", comm);
      case NcclPieces::Way::kAllToAll:
        break;
    }
    return check(library_->all_to_all(input, output, bytes, type, comm, call.stream),
                 "ncclAlltoAll", comm);
  }

  Status group_start() override { return check(library_->group_start(), "ncclGroupStart"); }
  Status group_end() override { return check(library_->group_end(), "ncclGroupEnd"); }

 private:
  Status too_old_to(std::string_view what, std::string_view first) const {
    return {StatusCode::kUnsupported,
            fmt::format("NCCL {} does not {}: it takes {} or newer",
                        nccl_version_text(library_->version), what, first)};
  }

  Status check(int result, const char* call, NcclComm comm = nullptr) const {
    return nccl_status(*library_, result, call, comm);
  }

  // Of all_reduce, reduce_scatter and reduce, which differ in this alone.
  struct Entry {
    NcclReducing function;
    const char* name;
    NcclReducingTo to_root = nullptr;  // instead
  };

  Status reduce(const Entry& entry, NcclComm comm, const NcclReduction& call) const {
    if (is_fp8(call.dtype) && library_->version < kNcclFirstFp8Version) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("NCCL {} does not reduce {}: it takes 2.24 or newer",
                                nccl_version_text(library_->version), to_string(call.dtype)));
    }
    if (call.op.kind == OpKind::kPreMulSum) return pre_mul_sum(entry, comm, call);
    return enqueue(entry, comm, call, nccl_op(call.op.kind));
  }

  Status enqueue(const Entry& entry, NcclComm comm, const NcclReduction& call, int op) const {
    const int dtype = nccl_data_type(call.dtype);
    const int result =
        entry.to_root != nullptr
            ? entry.to_root(call.input, call.output, call.count, dtype, op, call.root, comm,
                            call.stream)
            : entry.function(call.input, call.output, call.count, dtype, op, comm, call.stream);
    return check(result, entry.name, comm);
  }

  Status send_and_receive(NcclComm comm, const NcclExchange& call) const {
    const int bytes = nccl_data_type(DataType::kUint8);
    for (const auto& [rank, from, count] : call.sends) {
      TUTTI_TRY(
          check(library_->send(from, count, bytes, rank, comm, call.stream), "ncclSend", comm));
    }
    for (const auto& [rank, to, count] : call.receives) {
      TUTTI_TRY(
          check(library_->receive(to, count, bytes, rank, comm, call.stream), "ncclRecv", comm));
    }
    return Status::ok();
  }

  Status pre_mul_sum(const Entry& entry, NcclComm comm, const NcclReduction& call) const {
    if (library_->create_pre_mul_sum == nullptr || library_->destroy_op == nullptr) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("NCCL {} has no pre-multiplied sum: it takes 2.11 or newer",
                                nccl_version_text(library_->version)));
    }
    // NCCL takes the scalar as one element. What is on the host it reads before it returns.
    alignas(8) std::array<std::byte, 8> scalar{};
    store_element(call.dtype, scalar.data(), call.op.scalar);
    const bool on_device = call.op.device_scalar != nullptr;
    // NCCL does not write to it.
    void* const at = on_device ? const_cast<void*>(call.op.device_scalar) : scalar.data();
    int op = 0;
    TUTTI_TRY(check(library_->create_pre_mul_sum(
                        &op, at, nccl_data_type(call.dtype),
                        on_device ? kNcclScalarDevice : kNcclScalarHostImmediate, comm),
                    "ncclRedOpCreatePreMulSum", comm));
    // The operation is copied when a call is enqueued, so it may go at once.
    const Status enqueued = enqueue(entry, comm, call, op);
    const Status destroyed = check(library_->destroy_op(op, comm), "ncclRedOpDestroy", comm);
    return enqueued.is_ok() ? destroyed : enqueued;
  }

  const std::shared_ptr<const NcclLibrary> library_;
};

std::unique_ptr<NcclDriver> driver_of(const Result<DynamicLibrary>& opened, std::string* why) {
  const auto refuse = [why](const Status& status) {
    if (why != nullptr) *why = status.message();
    return nullptr;
  };
  if (!opened.is_ok()) return refuse(opened.status());
  Result<NcclLibrary> calls = load_nccl_calls(*opened);
  if (!calls.is_ok()) return refuse(calls.status());
  return std::make_unique<RealNccl>(std::make_shared<const NcclLibrary>(std::move(*calls)));
}

}  // namespace

std::unique_ptr<NcclDriver> open_nccl(const std::string& library, std::string* why) {
  return driver_of(DynamicLibrary::open(library), why);
}

NcclDriver* real_nccl(std::string* why) {
  static std::string reason;
  // Never deleted: NCCL's own threads outlive main().
  static NcclDriver* const nccl =
      driver_of(find_nccl(Knobs::process().text("TUTTI_NCCL_LIBRARY")), &reason).release();
  if (why != nullptr) *why = reason;
  return nccl;
}

}  // namespace tutti
