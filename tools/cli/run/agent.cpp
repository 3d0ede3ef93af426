#include "run/agent.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/deadline.hpp"
#include "base/try.hpp"
#include "bench/frame.hpp"
#include "bench/interrupts.hpp"
#include "exit_code.hpp"
#include "run/local_ranks.hpp"
#include "run/options.hpp"
#include "run/pipes.hpp"
#include "run/port.hpp"
#include "run/wire.hpp"
#include "tell.hpp"

namespace tutti::cli {
namespace {

// Until all hosts have been reached. Longer than the launcher waits for them.
constexpr std::chrono::seconds kOrderTime{90};

// What rank 0 reads. The launcher sends the next part when this one has been taken.
class InputPipe {
 public:
  // The end to read, for the rank.
  Result<Fd> open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return Status(StatusCode::kSystem,
                    fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    }
    write_.reset(ends[1]);
    never_block(write_.get());
    return Fd(ends[0]);
  }
  void add(const std::string& bytes) {
    if (bytes.empty()) at_end_ = true;
    outbox_.add(bytes);
  }
  // Whether all is taken that was not before.
  bool flush() {
    if (!write_.valid()) return false;
    const bool had_some = outbox_.size() > 0;
    const bool is_read = outbox_.flush(write_.get());
    if (!is_read || (at_end_ && outbox_.size() == 0)) write_.reset();
    return write_.valid() && had_some && outbox_.size() == 0;
  }
  pollfd descriptor() const {
    return {.fd = outbox_.size() > 0 ? write_.get() : -1, .events = POLLOUT, .revents = 0};
  }

 private:
  Fd write_;
  Outbox outbox_;
  bool at_end_ = false;
};

class Agent final : RankEvents {
 public:
  int run() {
    outlive(SIGPIPE);
    outlive(SIGHUP);            // the end of standard input tells the same
    never_block(STDIN_FILENO);  // and with it standard output, where sshd has one socket for both
    never_block(STDOUT_FILENO);
    outbox_.add(kAgentHello);
    if (const Status status = reserve_ports(); !status.is_ok()) fail(status);
    while (!is_over()) {
      wait();
      listen();
      look();
      if (!lost_ && !outbox_.flush(STDOUT_FILENO)) lose();
    }
    return failed_ || lost_ ? kFailure : kSuccess;
  }

 private:
  Status reserve_ports() {
    TUTTI_ASSIGN(port_, reserve_port());
    TUTTI_ASSIGN(root_port_, reserve_port());
    tell(AgentReady{.port = port_.number, .root_port = root_port_.number});
    return Status::ok();
  }

  void fail(const Status& status) {
    failed_ = true;
    awaited_ = false;
    tell(AgentFailed{std::string(status.message())});
  }

  bool are_running() const { return ranks_ && !ranks_->running().empty(); }

  // All ranks have ended, and the launcher knows or is gone.
  bool is_over() const { return !awaited_ && !are_running() && (lost_ || outbox_.size() == 0); }

  void wait() const {
    std::vector<pollfd> descriptors{
        {.fd = lost_ ? -1 : STDIN_FILENO, .events = POLLIN, .revents = 0},
        {.fd = outbox_.size() > 0 && !lost_ ? STDOUT_FILENO : -1, .events = POLLOUT, .revents = 0},
        input_.descriptor()};
    if (ranks_ && takes_output()) ranks_->add_descriptors(descriptors);
    interrupts_.poll(descriptors, static_cast<int>(Deadline::kBetweenLooks.count()));
  }

  // Ranks wait while the launcher does not read.
  bool takes_output() const {
    constexpr std::size_t kMost = std::size_t{1} << 20;
    return lost_ || outbox_.size() < kMost;
  }

  void listen() {
    if (lost_) return;
    if (interrupts_.received() != 0 || (awaited_ && order_time_.passed())) return lose();
    Status status = reader_.read_from(STDIN_FILENO);
    while (status.is_ok()) {
      const auto frame = reader_.next();
      if (!frame) break;
      const auto message = decode_to_agent(*frame);
      status = message.status();
      if (message.is_ok()) std::visit([&](const auto& m) { take(m); }, *message);
    }
    if (!status.is_ok() || reader_.at_end()) lose();
  }

  void take(const StartRanks& order) {
    if (!awaited_) return;
    awaited_ = false;
    grace_ = std::chrono::seconds(order.grace_seconds);
    if (const Status status = start(order); !status.is_ok()) fail(status);
  }

  Status start(const StartRanks& order) {
    if (::chdir(order.folder.c_str()) != 0) {
      return {StatusCode::kInvalidArgument,
              fmt::format("cannot run in the folder '{}': {}; --folder names another one",
                          order.folder, std::strerror(errno))};
    }
    const char* const path = std::getenv("PATH");
    TUTTI_ASSIGN(const std::string program,
                 find_program(order.program, path == nullptr ? "" : path));
    Fd input;
    const bool feeds = order.input && order.first.rank == 0;
    if (feeds) {
      TUTTI_ASSIGN(input, input_.open());
    }
    TUTTI_ASSIGN(LocalRanks ranks, LocalRanks::start({.first = order.first,
                                                      .settings = order.settings,
                                                      .program = program,
                                                      .arguments = order.arguments,
                                                      .input = input.get(),
                                                      .bind = order.bind}));
    ranks_.emplace(std::move(ranks));
    if (feeds) tell(InputWanted{});
    return Status::ok();
  }

  void take(const SignalRanks& signal) {
    if (ranks_) ranks_->signal(signal.number);
    awaited_ = false;
  }
  void take(const RankInput& input) { input_.add(input.bytes); }

  void look() {
    if (input_.flush()) tell(InputWanted{});
    if (ranks_ && takes_output()) (void)ranks_->look(*this);
    if (killing_ && killing_->passed() && are_running()) ranks_->signal(SIGKILL);
  }

  void printed(int rank, std::size_t stream, std::string_view bytes) override {
    tell(
        RankPrinted{.rank = rank, .stream = static_cast<int>(stream), .bytes = std::string(bytes)});
  }
  void ended(int rank, int wait_status) override {
    tell(RankEnded{.rank = rank, .wait_status = wait_status});
  }

  void tell(FromAgent message) {
    const auto frame = to_frame(encode(std::move(message)));
    if (!lost_ && frame.is_ok()) outbox_.add(*frame);
  }

  // Nobody reads what the ranks print any more, or could end them.
  void lose() {
    lost_ = true;
    awaited_ = false;
    killing_.emplace(grace_);
    if (ranks_) ranks_->signal(SIGTERM);
  }

  const Interrupts interrupts_;
  Port port_, root_port_;  // held for the ranks
  FrameReader reader_;
  Outbox outbox_;
  InputPipe input_;
  std::optional<LocalRanks> ranks_;
  std::chrono::seconds grace_{0};
  Deadline order_time_{kOrderTime};
  bool awaited_ = true;  // the order to start ranks
  bool lost_ = false;    // the launcher
  bool failed_ = false;  // to start
  std::optional<Deadline> killing_;
};

}  // namespace

int run_agent() {
  if (::isatty(STDIN_FILENO) == 1) {
    tell_line(stderr, "tutti run: --agent is for `tutti run --hosts`, which starts it by ssh");
    return kUsage;
  }
  return Agent().run();
}

}  // namespace tutti::cli
