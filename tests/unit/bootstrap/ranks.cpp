#include "unit/bootstrap/ranks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <thread>

namespace tutti::testing {

TemporaryDirectory::TemporaryDirectory() {
  std::string path = "/tmp/tutti-test-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) std::abort();
  path_ = path;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryDirectory::entries() const {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_, ignored)) {
    names.push_back(entry.path().lexically_relative(path_));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void run_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

namespace {

void write_line(int fd, std::string text) {
  text += '\n';
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

constexpr std::string_view kComplaint = "complaint: ";

}  // namespace

ForkedRank::ForkedRank(const Body& body) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    std::string complaint = body([&](const std::string& text) { write_line(ends[1], text); });
    std::replace(complaint.begin(), complaint.end(), '\n', ' ');
    write_line(ends[1], std::string(kComplaint) + complaint);
    ::_exit(0);
  }
  ::close(ends[1]);
  lines_.reset(ends[0]);
}

ForkedRank::ForkedRank(ForkedRank&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      lines_(std::move(other.lines_)),
      pending_(std::move(other.pending_)) {}

ForkedRank::~ForkedRank() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  reap();
}

void ForkedRank::reap() {
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void ForkedRank::signal(int number) const {
  ::kill(pid_, number);
  if (number == SIGSTOP) {
    // The signal has arrived once the parent is told of the stop.
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOWAIT);
  }
}

std::string ForkedRank::line(std::chrono::milliseconds within) {
  const Deadline deadline(within);
  for (;;) {
    if (const auto end = pending_.find('\n'); end != std::string::npos) {
      std::string text = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return text;
    }
    pollfd wait{lines_.get(), POLLIN, 0};
    if (::poll(&wait, 1, deadline.poll_ms()) == 0) {
      if (deadline.passed()) return "(silent)";
      continue;
    }
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(lines_.get(), buffer.data(), buffer.size());
    if (got <= 0) return "(ended)";
    pending_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::string ForkedRank::complaint(std::chrono::milliseconds within) {
  const Deadline deadline(within);
  for (;;) {
    std::string text = line(std::chrono::ceil<std::chrono::milliseconds>(deadline.left()));
    if (text.starts_with(kComplaint)) {
      reap();
      return text.substr(kComplaint.size());
    }
    if (text == "(ended)" || text == "(silent)") return text;
  }
}

std::string wait_to_be_killed() {
  for (;;) ::pause();
}

SharedFlag::SharedFlag() {
  void* const memory =
      ::mmap(nullptr, sizeof *flag_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  flag_ = new (memory) std::atomic<bool>(false);
}

SharedFlag::~SharedFlag() { ::munmap(flag_, sizeof *flag_); }

std::unique_ptr<Bootstrap> join_or_fail(const GroupId& id, int rank, int size,
                                        const JoinOptions& options) {
  auto group = join_group_with(id, rank, size, soon(), options);
  EXPECT_TRUE(group.is_ok()) << "rank " << rank << ": " << group.status().to_string();
  return group.is_ok() ? std::move(group).value() : nullptr;
}

JoinOptions options_in(const TemporaryDirectory& directory) {
  JoinOptions options;
  options.runtime_directory = directory.path();
  return options;
}

Bytes pattern(int rank, std::size_t bytes) {
  std::array<std::byte, 251> block{};  // no power of two: shifted parts differ
  for (std::size_t i = 0; i < block.size(); ++i) {
    block[i] = static_cast<std::byte>(static_cast<std::size_t>(rank) * 37 + bytes + i * 7);
  }
  Bytes value(bytes);
  for (std::size_t at = 0; at < bytes; at += block.size()) {
    std::memcpy(value.data() + at, block.data(), std::min(block.size(), bytes - at));
  }
  return value;
}

bool is_pattern(const Bytes& value, int rank, std::size_t bytes) {
  const Bytes expected = pattern(rank, bytes);
  return value.size() == bytes &&
         (bytes == 0 || std::memcmp(value.data(), expected.data(), bytes) == 0);
}

std::string content_of(int fd) {
  std::array<char, 256> buffer{};
  const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), 0);
  return got < 0 ? "(not open)" : std::string(buffer.data(), static_cast<std::size_t>(got));
}

Fd file_with(const std::string& text) {
  Fd file(::memfd_create("tutti-test", MFD_CLOEXEC));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    std::abort();
  }
  return file;
}

}  // namespace tutti::testing
