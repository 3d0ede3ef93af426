#include "run/remote_host.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/process_environment.hpp"
#include "base/trim.hpp"
#include "base/try.hpp"
#include "completion/quote.hpp"
#include "drivers/sockets.hpp"

namespace tutti::cli {
namespace {

// To log in and to start, and to end after SIGKILL.
constexpr std::chrono::seconds kStartTime{60}, kEndTime{5};
constexpr std::size_t kMostSaid = 1024, kMostLoginOutput = std::size_t{1} << 20;
constexpr int kNotFound = 127;  // as shells have it

}  // namespace

RemoteHost::RemoteHost(Setup setup) : setup_(std::move(setup)), deadline_(kStartTime) {
  for (int i = 0; i < setup_.host.ranks; ++i) running_.insert(setup_.first_rank + i);
}

Result<RemoteHost> RemoteHost::start(Setup setup) {
  RemoteHost host(std::move(setup));
  TUTTI_ASSIGN(Pipe in, make_pipe());
  TUTTI_ASSIGN(Pipe out, make_pipe());
  TUTTI_ASSIGN(Pipe err, make_pipe());
  ::fcntl(in.read.get(), F_SETFL, 0);
  never_block(in.write.get());
  const std::vector<std::string>& ssh = host.setup_.ssh;
  Command command{.program = ssh.front(),
                  .arguments = {ssh.begin() + 1, ssh.end()},
                  .environment = process_environment(),
                  .inherited = {},
                  .input = in.read.get(),
                  .output = out.write.get(),
                  .error = err.write.get(),
                  // The terminal's Ctrl-C is for the launcher, which then ends the ranks.
                  .own_group = true};
  command.arguments.push_back(host.setup_.host.login);
  command.arguments.push_back(fmt::format("{} run --agent", shell_quoted(host.setup_.tutti)));
  TUTTI_ASSIGN(ChildProcess process, ChildProcess::start(command));
  auto ended = real_sockets().watch_process(process.pid());
  if (ended.is_ok()) host.ended_ = std::move(ended).value();
  host.ssh_.emplace(std::move(process));
  host.in_ = std::move(in.write);
  host.out_ = std::move(out.read);
  host.err_ = std::move(err.read);
  return host;
}

void RemoteHost::add_descriptors(std::vector<pollfd>& descriptors) const {
  if (running_.empty()) return;
  for (const Fd* fd : {&ended_, &out_, &err_}) {
    descriptors.push_back({.fd = fd->get(), .events = POLLIN, .revents = 0});
  }
  const int full = outbox_.size() > 0 ? in_.get() : -1;
  descriptors.push_back({.fd = full, .events = POLLOUT, .revents = 0});
}

Status RemoteHost::look(RankEvents& events) {
  if (running_.empty()) return Status::ok();
  // Asked before its output is read: what the agent has sent is then there.
  const auto end = ssh_->poll_end();
  if (err_.valid()) {
    const bool open = read_pipe(err_.get(), [&](std::string_view bytes) { said_ += bytes; });
    if (!open) err_.reset();
    if (said_.size() > kMostSaid) said_.erase(0, said_.size() - kMostSaid);
  }
  if (const Status status = read_output(events); !status.is_ok()) {
    return lose(fmt::format("{}: {}", host().login, status.message()));
  }
  if (running_.empty()) {
    drop();
    return Status::ok();
  }
  const bool writable = !in_.valid() || outbox_.flush(in_.get());
  if (end) {
    const char* const what = said_hello_ ? "the connection to {} was lost: {} {}{}{}"
                                         : "cannot start ranks on {}: {} {}{}{}";
    const bool not_found = WIFEXITED(*end) && WEXITSTATUS(*end) == kNotFound;
    return lose(fmt::format(fmt::runtime(what), host().login, setup_.ssh.front(),
                            describe_end(*end), what_ssh_said(),
                            not_found ? "; --remote-tutti gives the path of tutti there" : ""));
  }
  if (in_.valid() && (!writable || !out_.valid())) {
    // Then ssh ends, too, and is waited for, so that it is known what it says.
    in_.reset();
    deadline_.emplace(kEndTime);
  }
  if (!deadline_ || !deadline_->passed()) return Status::ok();
  return lose(said_hello_ ? fmt::format("{} does not answer; its ranks may still run", host().login)
                          : fmt::format("cannot start ranks on {}: {} does not bring an answer{}",
                                        host().login, setup_.ssh.front(), what_ssh_said()));
}

Status RemoteHost::read_output(RankEvents& events) {
  if (!out_.valid()) return Status::ok();
  if (!said_hello_) TUTTI_TRY(look_for_hello());
  return said_hello_ ? read_frames(events) : Status::ok();
}

Status RemoteHost::look_for_hello() {
  char c = 0;
  while (!said_hello_) {
    const ssize_t count = ::read(out_.get(), &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) out_.reset();
    if (count <= 0) return Status::ok();
    login_output_ += c;
    said_hello_ = login_output_.ends_with(kAgentHello);
    if (login_output_.size() > kMostLoginOutput) {
      return {StatusCode::kMismatch,
              "what answers is not this version of tutti; --remote-tutti gives its path"};
    }
  }
  return Status::ok();
}

Status RemoteHost::read_frames(RankEvents& events) {
  TUTTI_TRY(reader_.read_from(out_.get()));
  while (auto frame = reader_.next()) {
    TUTTI_ASSIGN(const FromAgent message, decode_from_agent(*frame));
    TUTTI_TRY(take(message, events));
  }
  if (reader_.at_end()) out_.reset();
  return Status::ok();
}

Status RemoteHost::take(const FromAgent& message, RankEvents& events) {
  const Status not_its_own(StatusCode::kMismatch, "it speaks of ranks that do not run there");
  if (const auto* ready = std::get_if<AgentReady>(&message)) {
    ready_ = *ready;
    deadline_.reset();
  } else if (const auto* failed = std::get_if<AgentFailed>(&message)) {
    return {StatusCode::kUnavailable, failed->why};
  } else if (const auto* printed = std::get_if<RankPrinted>(&message)) {
    if (!is_running(printed->rank)) return not_its_own;
    events.printed(printed->rank, static_cast<std::size_t>(printed->stream), printed->bytes);
  } else if (const auto* ended = std::get_if<RankEnded>(&message)) {
    if (running_.erase(ended->rank) == 0) return not_its_own;
    events.ended(ended->rank, ended->wait_status);
  } else {
    wants_input_ = true;
  }
  return Status::ok();
}

void RemoteHost::start_ranks(const StartRanks& order) {
  was_told_ = true;
  send(order);
}

// Ranks that have not been told to start need no signal.
void RemoteHost::signal(int number) {
  if (!was_told_) return drop();
  send(SignalRanks{number});
  if (number == SIGKILL && !deadline_) deadline_.emplace(kEndTime);
}

void RemoteHost::give_input(std::string bytes) {
  wants_input_ = false;
  send(RankInput{std::move(bytes)});
}

void RemoteHost::send(const ToAgent& message) {
  const auto frame = to_frame(encode(message));
  if (frame.is_ok()) outbox_.add(*frame);
  if (in_.valid() && !outbox_.flush(in_.get())) in_.reset();
}

void RemoteHost::drop() {
  running_.clear();
  wants_input_ = false;
  in_.reset();  // tells the agent
  out_.reset();
  err_.reset();
}

Status RemoteHost::lose(const std::string& why) {
  drop();
  return {StatusCode::kPeerFailed, why};
}

std::string RemoteHost::what_ssh_said() const {
  std::string line;
  for (const char c : trim(said_, " \t\r\n")) {
    if (c == '\n') line += "; ";
    if (c != '\n' && c != '\r') line += c;
  }
  return line.empty() ? "" : fmt::format(", and said: {}", line);
}

}  // namespace tutti::cli
