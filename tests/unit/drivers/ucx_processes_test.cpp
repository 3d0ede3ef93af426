// Wires of two processes, one of which is killed. The parent makes none: UCX starts threads.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>

#include "base/fd.hpp"
#include "support/children.hpp"
#include "unit/drivers/ucx_station.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using test::Children;
using test::progress_until;
using test::Station;

constexpr std::chrono::milliseconds kLostWithin = 1000ms;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

Bytes exchange(int socket, const Bytes& own) {
  const std::size_t bytes = own.size();
  require(::write(socket, &bytes, sizeof bytes) == sizeof bytes, "telling a length");
  require(::write(socket, own.data(), bytes) == static_cast<ssize_t>(bytes), "telling an address");
  std::size_t others = 0;
  require(::read(socket, &others, sizeof others) == sizeof others, "hearing a length");
  Bytes address(others);
  require(::recv(socket, address.data(), others, MSG_WAITALL) == static_cast<ssize_t>(others),
          "hearing an address");
  return address;
}

// Both send and receive; then child 1 kills itself, and child 0 says when it noticed.
void run_pair(int index, test::Wire& parent, int socket, const std::string& transports) {
  if (const std::string why = test::why_no_ucx(); !why.empty()) {
    return parent.say("skipped: " + why);
  }
  Station station(transports);
  require(station.failure.is_ok(), station.failure.to_string());
  const Bytes peer = exchange(socket, station.wire->address());
  const Status status = station.wire->connect(1 - index, peer);
  require(status.is_ok(), status.to_string());
  constexpr std::size_t kMessages = 200;
  const Bytes payload(65536, std::byte(index));
  for (std::size_t k = 0; k < kMessages; ++k)
    require(station.wire->post(1 - index, view_of(k), payload).is_ok(), "posting");
  const auto complete = [&station] {
    return station.arrived.size() == kMessages && station.sent.size() == kMessages;
  };
  require(progress_until({&station}, complete), "the messages did not all come");
  const Bytes expected(65536, std::byte(1 - index));
  for (const Station::Message& message : station.arrived)
    require(message.payload == expected, "another payload");
  const Status closed = station.wire->close_doors();
  require(closed.is_ok(), closed.to_string());
  (void)exchange(socket, {std::byte{1}});  // both have all
  if (index == 1) ::raise(SIGKILL);
  const auto start = Station::Clock::now();
  while (station.lost.empty() && Station::Clock::now() < start + 10s) {
    if (!station.wire->progress()) station.wire->sleep(start + 10s);
  }
  require(!station.lost.empty(), "the killed one was not lost");
  require(station.lost.front().first == 1, "another one was lost");
  const auto took = Station::Clock::now() - start;
  require(took < kLostWithin,
          fmt::format("it was lost after {} s", std::chrono::duration<double>(took).count()));
  parent.say("lost");
}

class UcxProcesses : public testing::TestWithParam<const char*> {};

TEST_P(UcxProcesses, ExchangeMessagesAndNoticeAKill) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const std::array<Fd, 2> owned = {Fd(sockets[0]), Fd(sockets[1])};
  const std::string transports = GetParam();
  Children children(2, [&](int index, test::Wire& parent) {
    run_pair(index, parent, sockets[static_cast<std::size_t>(index)], transports);
  });
  const auto& ended = children.finish(60s);
  const auto& lines = ended[0].lines;
  if (!lines.empty() && lines[0].starts_with("skipped")) GTEST_SKIP() << lines[0];
  EXPECT_TRUE(ended[0].succeeded())
      << ended[0].describe_end() << (lines.empty() ? "" : ": " + lines.back());
  EXPECT_EQ(ended[1].describe_end(), "was killed by signal 9 (Killed)")
      << (ended[1].lines.empty() ? "" : ended[1].lines.back());
}

// UCX's own choice is shared memory here.
INSTANTIATE_TEST_SUITE_P(Over, UcxProcesses, testing::Values("tcp", ""),
                         [](const auto& transports) {
                           return std::string(transports.param).empty() ? "what_ucx_takes"
                                                                        : transports.param;
                         });

}  // namespace
}  // namespace tutti
