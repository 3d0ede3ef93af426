#include "tickets/ticket_executor.hpp"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/convert.hpp"
#include "base/guard.hpp"
#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "executors/executor.hpp"
#include "executors/make.hpp"
#include "support/reference.hpp"

namespace tutti::test {
namespace {

constexpr std::string_view kName = "tickets";
constexpr std::size_t kScalarBytes = sizeof(Scalar);

class TicketExecutor : public Executor {
 public:
  static Result<std::unique_ptr<Executor>> make(GroupServices& group) {
    const int rank = group.bootstrap().rank();
    TUTTI_ASSIGN(auto bootstrap, group.bootstrap().split(0, rank, group.deadline()));
    return std::unique_ptr<Executor>(new TicketExecutor(group, std::move(bootstrap)));
  }

  ~TicketExecutor() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::string_view name() const override { return kName; }

  Result<Ticket> enqueue(PlannedOperation& operation) override {
    Call call = operation.call;
    if (call.op.device_scalar != nullptr) {
      call.op.scalar = load_scalar(call.dtype, call.op.device_scalar);
    }
    const std::chrono::milliseconds own = call.options.timeout;
    const std::lock_guard lock(mutex_);
    jobs_.push_back({.call = call,
                     .words = to_string(operation.operation),
                     .bytes = operation.sides.input,
                     .deadline = Deadline(own.count() > 0 ? own : group_.timeout())});
    changed_.notify_all();
    return ++last_;
  }

  bool has_ended(Ticket ticket) override {
    return ended_.load(std::memory_order_acquire) >= ticket;
  }
  std::uint64_t ended_through(std::uint64_t started) override {
    return has_ended(last_.load()) ? started : 0;
  }

  // Ends the exchange that is under way, here and on the other ranks.
  void hear_of_failure() override {
    if (cancelled_.exchange(true)) return;
    const Status cause = group_.failure();
    bootstrap_->announce_failure({bootstrap_->rank(), cause.code(), cause.message()});
  }

  void drain(Deadline deadline) override {
    while (!has_ended(last_.load()) && !deadline.passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!has_ended(last_.load())) hear_of_failure();
  }

 private:
  struct Job {
    Call call;
    std::string words;
    std::size_t bytes;  // of the input
    Deadline deadline;
  };

  TicketExecutor(GroupServices& group, std::unique_ptr<Bootstrap> bootstrap)
      : group_(group), bootstrap_(std::move(bootstrap)), thread_([this] { work(); }) {}

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      const Status status = cancelled_ ? Status::ok() : run(job);
      if (!status.is_ok() && !cancelled_) (void)group_.fail(status.with_context(job.words));
      ended_.fetch_add(1, std::memory_order_release);
      lock.lock();
    }
  }

  // Each rank's multiplier, and its input.
  Status run(const Job& job) {
    const Call& call = job.call;
    Bytes mine(kScalarBytes + job.bytes);
    std::memcpy(mine.data(), &call.op.scalar, kScalarBytes);
    if (job.bytes > 0) std::memcpy(mine.data() + kScalarBytes, call.input, job.bytes);
    TUTTI_ASSIGN(const auto answers, bootstrap_->all_gather(mine, job.deadline));
    return call.collective == Collective::kAllGather ? place(job, answers) : reduce(job, answers);
  }

  Status place(const Job& job, const std::vector<Bytes>& answers) {
    auto* to = static_cast<std::byte*>(job.call.output);
    for (const Bytes& answer : answers) {
      TUTTI_TRY(compare(job, answer));
      if (job.bytes > 0) std::memcpy(to, answer.data() + kScalarBytes, job.bytes);
      to += job.bytes;
    }
    return Status::ok();
  }

  Status reduce(const Job& job, const std::vector<Bytes>& answers) {
    const Call& call = job.call;
    Reference reference(call.dtype, call.op.kind, call.count);
    for (const Bytes& answer : answers) {
      TUTTI_TRY(compare(job, answer));
      Scalar scalar;
      std::memcpy(&scalar, answer.data(), kScalarBytes);
      reference.add(ByteView(answer).subspan(kScalarBytes), scalar);
    }
    const Bytes result = reference.result();
    if (!result.empty()) std::memcpy(call.output, result.data(), result.size());
    return Status::ok();
  }

  static Status compare(const Job& job, const Bytes& answer) {
    if (answer.size() == kScalarBytes + job.bytes) return Status::ok();
    return {StatusCode::kMismatch, fmt::format("a rank gave {} bytes, and this one {}",
                                               answer.size() - kScalarBytes, job.bytes)};
  }

  GroupServices& group_;
  const std::unique_ptr<Bootstrap> bootstrap_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ending_ = false;
  std::atomic<bool> cancelled_ = false;
  std::atomic<Ticket> last_ = 0, ended_ = 0;
  std::thread thread_;
};

bool takes_all(DataType, OpKind) { return true; }
double all_to_all_ranks(int ranks) { return ranks; }

constexpr Algorithm exchanged(std::string_view id, Collective collective) {
  return {.id = id,
          .collective = collective,
          .max_ranks_host = 1024,
          .cost = {.steps = 1000, .wire = all_to_all_ranks},
          .text = "every rank sends its input to every other one over sockets",
          .executor = kName,
          .peers_read_input = false,
          .takes = takes_all};
}
constexpr Algorithm kAlgorithms[] = {exchanged("all_reduce/exchanged", Collective::kAllReduce),
                                     exchanged("all_gather/exchanged", Collective::kAllGather)};

}  // namespace

void register_ticket_executor() {
  register_executor({.name = kName, .make = TicketExecutor::make, .algorithms = kAlgorithms});
}

}  // namespace tutti::test
