#include "drivers/sockets.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "fakes/fake_sockets.hpp"
#include "support/patience.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;

TEST(SocketAddress, PrintsWhatItHolds) {
  EXPECT_EQ(SocketAddress::tcp("127.0.0.1", 80)->text(), "127.0.0.1:80");
  EXPECT_EQ(SocketAddress::tcp("::1", 80)->text(), "[::1]:80");
  EXPECT_EQ(SocketAddress::unix_path("/tmp/x")->text(), "/tmp/x");
  EXPECT_EQ(SocketAddress::tcp("10.0.0.1", 80)->with_port(81).text(), "10.0.0.1:81");
  EXPECT_EQ(SocketAddress::tcp("10.0.0.1", 80)->wildcard().text(), "0.0.0.0:80");
  EXPECT_EQ(SocketAddress::tcp("::1", 80)->wildcard().text(), "[::]:80");
  EXPECT_EQ(SocketAddress::tcp("localhost", 80).status().code(), StatusCode::kInvalidArgument);
}

TEST(SocketAddress, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(SocketAddress::tcp(host, 1)->is_loopback()) << host;
  }
  for (const char* host : {"128.0.0.1", "10.0.0.1", "::2", "0.0.0.0", "::", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(SocketAddress::tcp(host, 1)->is_loopback()) << host;
  }
}

TEST(SocketAddress, RefusesPathsThatDoNotFit) {
  EXPECT_TRUE(SocketAddress::unix_path(std::string(107, 'p')).is_ok());
  EXPECT_EQ(SocketAddress::unix_path(std::string(108, 'p')).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_FALSE(SocketAddress::unix_path("").is_ok());
}

TEST(HostPort, IsParsedOrRefused) {
  const auto plain = parse_host_port("node-1:4000");
  ASSERT_TRUE(plain.is_ok());
  EXPECT_EQ(plain->host, "node-1");
  EXPECT_EQ(plain->port, 4000);
  EXPECT_EQ(parse_host_port("[fe80::1]:1")->host, "fe80::1");
  for (const char* wrong : {"", "host", ":1", "host:", "host:0", "host:65536", "host:-1", "host:1x",
                            "fe80::1:1", "[]:1"}) {
    EXPECT_EQ(parse_host_port(wrong).status().code(), StatusCode::kInvalidArgument) << wrong;
  }
}

class Sockets : public ::testing::TestWithParam<bool> {
 protected:
  // A connected pair, by TCP or UNIX.
  void SetUp() override {
    const std::string path = "/tmp/tutti-sockets-" + std::to_string(::getpid());
    const auto address =
        GetParam() ? SocketAddress::unix_path(path) : SocketAddress::tcp("127.0.0.1", 0);
    auto listener = sockets_.listen(*address);
    ASSERT_TRUE(listener.is_ok()) << listener.status().to_string();
    EXPECT_FALSE(sockets_.accept(listener->get())->valid()) << "nobody has called yet";
    auto caller = sockets_.connect(*sockets_.local_address(listener->get()));
    ASSERT_TRUE(caller.is_ok()) << caller.status().to_string();
    here_ = std::move(caller).value();
    SocketWait wait{.fd = listener->get(), .read = true};
    ASSERT_TRUE(sockets_.wait({&wait, 1}, Deadline(test::kPatience)).is_ok());
    there_ = std::move(sockets_.accept(listener->get())).value();
    ASSERT_TRUE(there_.valid());
    EXPECT_TRUE(sockets_.connected(here_.get()).is_ok());
    ::unlink(path.c_str());
  }

  SocketWait state(const Fd& socket, std::chrono::milliseconds within = test::kPatience) {
    SocketWait wait{.fd = socket.get(), .read = true};
    EXPECT_TRUE(sockets_.wait({&wait, 1}, Deadline(within)).is_ok());
    return wait;
  }

  Result<SocketTransfer> send(std::string_view text) {
    const ByteView bytes = view_of(text);
    return sockets_.send(here_.get(), {&bytes, 1}, {});
  }

  Result<SocketTransfer> receive() { return sockets_.receive(there_.get(), buffer_, descriptors_); }

  FakeSockets sockets_{real_sockets()};
  Fd here_, there_;
  Bytes buffer_ = Bytes(1 << 16);
  std::vector<Fd> descriptors_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, Sockets, ::testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "unix" : "tcp"; });

TEST_P(Sockets, CarryBytesAndNeverBlock) {
  EXPECT_EQ(receive()->bytes, 0u);
  ASSERT_EQ(send("hello")->bytes, 5u);
  EXPECT_TRUE(state(there_).readable);
  EXPECT_EQ(receive()->bytes, 5u);
  const std::string much(1 << 20, 'm');
  for (int i = 0; i < 100; ++i) {
    if (send(much)->bytes == 0) return;  // full, and here we are
  }
  FAIL() << "a socket that nobody reads must fill up";
}

TEST_P(Sockets, TellOfTheOtherEndsEnd) {
  ASSERT_EQ(send("last words")->bytes, 10u);
  here_.reset();
  EXPECT_TRUE(state(there_).hung_up);
  EXPECT_EQ(receive()->bytes, 10u) << "what came before the end is still there";
  EXPECT_TRUE(receive()->closed);
  // Sending raises no signal; at the latest the second time it is known.
  const ByteView word = view_of(std::string_view("x"));
  bool closed = false;
  for (int i = 0; i < 100 && !closed; ++i) {
    const auto sent = sockets_.send(there_.get(), {&word, 1}, {});
    closed = !sent.is_ok() || sent->closed;
    ::usleep(1000);
  }
  EXPECT_TRUE(closed);
}

TEST_P(Sockets, WaitsEndAtTheirDeadline) {
  const auto began = Deadline::Clock::now();
  const SocketWait nothing = state(there_, 50ms);
  EXPECT_FALSE(nothing.readable || nothing.hung_up);
  EXPECT_GE(Deadline::Clock::now() - began, 50ms);
}

TEST_P(Sockets, FakesCutAndFail) {
  sockets_.max_transfer_bytes = 2;
  EXPECT_EQ(send("hello")->bytes, 2u);
  EXPECT_TRUE(state(there_).readable);
  sockets_.fail_receive_at = 0;
  EXPECT_FALSE(receive().is_ok());
  EXPECT_EQ(receive()->bytes, 2u);
  sockets_.fail_send_at = 1;
  EXPECT_TRUE(send("a").is_ok());
  EXPECT_FALSE(send("b").is_ok());
  sockets_.fail_connect_at = 0;
  EXPECT_EQ(sockets_.connect(*SocketAddress::tcp("127.0.0.1", 1)).status().code(),
            StatusCode::kUnavailable);
}

TEST_P(Sockets, KnowTheirPeer) {
  if (!GetParam()) GTEST_SKIP() << "TCP knows no users";
  EXPECT_EQ(sockets_.peer(there_.get())->process_id, ::getpid());
  EXPECT_EQ(sockets_.peer(there_.get())->user_id, sockets_.user_id());
  sockets_.foreign_user_id = 4711;
  EXPECT_EQ(sockets_.peer(there_.get())->user_id, 4711u);
}

// The limit itself: as many as fit are opened by the system, and closed here.
TEST_P(Sockets, LostDescriptorsAreTold) {
  if (!GetParam()) GTEST_SKIP() << "TCP carries no descriptors";
  const ByteView word = view_of(std::string_view("x"));
  const std::array<int, 2> mine{here_.get(), here_.get()};
  ASSERT_TRUE(sockets_.send(here_.get(), {&word, 1}, mine).is_ok());
  EXPECT_TRUE(state(there_).readable);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const Fd next(::dup(here_.get()));  // the lowest number that is free, and then one more
  const rlimit one_more{static_cast<rlim_t>(next.get()) + 2, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one_more), 0);
  const auto got = receive();
  const Status room = sockets_.reserve(2);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  ASSERT_TRUE(got.is_ok());
  EXPECT_EQ(got->bytes, 1u) << "what came with them is there";
  EXPECT_TRUE(got->lost_descriptors);
  EXPECT_TRUE(descriptors_.empty()) << "a part of them is of no use";
  EXPECT_EQ(room.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(room.message().find(std::to_string(one_more.rlim_cur)), std::string::npos) << "limit";
  EXPECT_TRUE(sockets_.reserve(2).is_ok());
}

TEST(SocketDriver, ResolvesNamesWithinItsDeadline) {
  const auto local = real_sockets().resolve("localhost", 80, Deadline(test::kPatience));
  ASSERT_TRUE(local.is_ok()) << local.status().to_string();
  EXPECT_TRUE(local->front().is_loopback());
  EXPECT_EQ(local->front().port(), 80);
  EXPECT_EQ(real_sockets().resolve("10.1.2.3", 80, Deadline(0s))->front().text(), "10.1.2.3:80");
}

TEST(SocketDriver, NobodyListeningIsUnavailable) {
  const auto missing = SocketAddress::unix_path("/tmp/tutti-nobody-listens-here");
  EXPECT_EQ(real_sockets().connect(*missing).status().code(), StatusCode::kUnavailable);
}

TEST(SocketDriver, AnAddressInUseIsUnavailable) {
  const auto first = real_sockets().listen(*SocketAddress::tcp("127.0.0.1", 0));
  ASSERT_TRUE(first.is_ok());
  const auto address = real_sockets().local_address(first->get());
  EXPECT_EQ(real_sockets().listen(*address).status().code(), StatusCode::kUnavailable);
}

TEST(SocketDriver, EventsWakeUntilCleared) {
  SocketDriver& sockets = real_sockets();
  const auto event = sockets.make_event();
  ASSERT_TRUE(event.is_ok());
  const auto readable = [&] {
    SocketWait wait{.fd = event->get(), .read = true};
    EXPECT_TRUE(sockets.wait({&wait, 1}, Deadline(0s)).is_ok());
    return wait.readable;
  };
  EXPECT_FALSE(readable());
  sockets.wake(event->get());
  sockets.wake(event->get());
  EXPECT_TRUE(readable());
  sockets.clear(event->get());
  EXPECT_FALSE(readable());
}

TEST(SocketDriver, SeesAProcessEnd) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto process = real_sockets().watch_process(child);
  ASSERT_TRUE(process.is_ok()) << process.status().to_string();
  SocketWait wait{.fd = process->get(), .read = true};
  ASSERT_TRUE(real_sockets().wait({&wait, 1}, Deadline(20ms)).is_ok());
  EXPECT_FALSE(wait.readable);
  ::kill(child, SIGKILL);
  ASSERT_TRUE(real_sockets().wait({&wait, 1}, Deadline(test::kPatience)).is_ok());
  EXPECT_TRUE(wait.readable);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(real_sockets().watch_process(child).is_ok());
}

}  // namespace
}  // namespace tutti
