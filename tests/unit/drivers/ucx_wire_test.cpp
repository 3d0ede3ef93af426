#include "drivers/ucx_wire.hpp"

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>

#include "drivers/listening_sockets.hpp"
#include "drivers/sockets.hpp"
#include "unit/drivers/ucx_station.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using test::progress_until;
using test::Station;
using testing::HasSubstr;

Bytes filled(std::size_t bytes, int seed) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    made[i] = static_cast<std::byte>((i * 7 + i / 251 + static_cast<std::size_t>(seed)) & 0xFF);
  return made;
}

class UcxWireTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_ucx(); !why.empty()) GTEST_SKIP() << why;
  }

  // So many ranks, each connected to all others.
  void make(int ranks, GpuMemory gpus = GpuMemory::kNone) {
    for (int rank = 0; rank < ranks; ++rank) {
      stations_.emplace_back("tcp", gpus);
      ASSERT_TRUE(stations_.back().failure.is_ok()) << stations_.back().failure.to_string();
      all_.push_back(&stations_.back());
    }
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < ranks; ++b) {
        if (a == b) continue;
        const Status status = at(a).wire->connect(b, at(b).wire->address());
        ASSERT_TRUE(status.is_ok()) << status.to_string();
      }
    }
  }

  Station& at(int rank) { return stations_[static_cast<std::size_t>(rank)]; }

  void post(int from, int to, const Bytes& payload) {
    const std::array<int, 2> header = {from, to};
    const auto ticket = at(from).wire->post(to, view_of(header), payload);
    ASSERT_TRUE(ticket.is_ok()) << ticket.status().to_string();
  }

  // A message in each direction.
  void greet() {
    const Bytes greeting = filled(8, 1);
    for (Station* station : all_) station->arrived.clear();
    for (int a = 0; a < static_cast<int>(all_.size()); ++a) {
      for (int b = 0; b < static_cast<int>(all_.size()); ++b) {
        if (a != b) post(a, b, greeting);
      }
    }
    ASSERT_TRUE(progress_until(all_, [this] {
      return std::all_of(all_.begin(), all_.end(), [this](const Station* station) {
        return station->arrived.size() == all_.size() - 1;
      });
    }));
    for (Station* station : all_) station->arrived.clear();
  }

  std::deque<Station> stations_;
  std::vector<Station*> all_;
};

TEST_F(UcxWireTest, CarriesMessagesOfAnySizeBetweenThree) {
  make(3);
  int round = 0;
  for (const std::size_t bytes : {0UL, 1UL, 8UL, 65535UL, 65536UL, 1048576UL}) {
    const Bytes payload = filled(bytes, ++round);
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b) {
        if (a != b) post(a, b, payload);
      }
    }
    ASSERT_TRUE(progress_until(all_, [&] {
      return std::all_of(all_.begin(), all_.end(), [&](const Station* station) {
        return station->arrived.size() == 2 &&
               station->sent.size() == 2 * static_cast<std::size_t>(round);
      });
    })) << bytes;
    for (int rank = 0; rank < 3; ++rank) {
      int senders = 0;
      for (const Station::Message& message : at(rank).arrived) {
        const auto header = from_bytes<std::array<int, 2>>(message.header);
        EXPECT_EQ(header[1], rank);
        senders += 1 << header[0];
        EXPECT_EQ(message.payload, payload) << bytes;
      }
      EXPECT_EQ(senders, 7 - (1 << rank));
      at(rank).arrived.clear();
    }
  }
}

// UCX_RNDV_THRESH is a user's to set: then payloads come after their headers.
TEST_F(UcxWireTest, CarriesWhatComesByRendezvous) {
  ::setenv("UCX_RNDV_THRESH", "1K", 1);
  make(2);
  ::unsetenv("UCX_RNDV_THRESH");
  std::vector<Bytes> payloads;
  for (const std::size_t bytes : {8UL, 1024UL, 65536UL, 1048576UL})
    payloads.push_back(filled(bytes, static_cast<int>(payloads.size())));
  for (const Bytes& payload : payloads) post(0, 1, payload);
  ASSERT_TRUE(progress_until(all_, [&] { return at(1).arrived.size() == payloads.size(); }));
  for (const Station::Message& message : at(1).arrived)
    EXPECT_TRUE(std::find(payloads.begin(), payloads.end(), message.payload) != payloads.end());
  ASSERT_TRUE(progress_until(all_, [&] { return at(0).sent.size() == payloads.size(); }));
}

// Memory of the host stands for the GPU's. What has no place is received elsewhere.
TEST_F(UcxWireTest, PutsPayloadsOfGpusWhereTheyArePlaced) {
  make(2, GpuMemory::kHostInstead);
  ASSERT_TRUE(at(0).wire->reaches_gpus());
  std::vector<Bytes> payloads;
  std::vector<Bytes> places;
  for (const std::size_t bytes : {1UL, 1000UL, 524288UL, 3145728UL}) {
    payloads.push_back(filled(bytes, static_cast<int>(payloads.size())));
    places.emplace_back(bytes);
  }
  std::size_t here = 0;
  at(1).on_place = [&](ByteView header, std::size_t bytes) -> std::byte* {
    const auto index = from_bytes<std::size_t>(header);
    EXPECT_EQ(bytes, payloads[index].size());
    return index == 1 ? nullptr : places[index].data();
  };
  at(1).on_arrival = [&](ByteView header, ByteView came) {
    const auto index = from_bytes<std::size_t>(header);
    EXPECT_EQ(came.data() == places[index].data(), index != 1) << index;
    EXPECT_EQ(to_bytes(came), payloads[index]) << index;
    ++here;
  };
  for (std::size_t k = 0; k < payloads.size(); ++k) {
    ASSERT_TRUE(at(0).wire->post_from_gpu(1, view_of(k), payloads[k]).is_ok());
  }
  ASSERT_TRUE(progress_until(
      all_, [&] { return here == payloads.size() && at(0).sent.size() == payloads.size(); }));
  // Others come as they always do.
  at(1).on_arrival = nullptr;
  post(0, 1, payloads[2]);
  ASSERT_TRUE(progress_until(all_, [&] { return at(1).arrived.size() == 1; }));
  EXPECT_EQ(at(1).arrived.front().payload, payloads[2]);
}

// As soon as cancel_all() returns, both memories are their owners'.
TEST_F(UcxWireTest, ACancelEndsWhatIsPlaced) {
  make(2, GpuMemory::kHostInstead);
  greet();
  const Bytes payload = filled(64UL << 20, 1);
  Bytes place(payload.size());
  bool is_placed = false, is_here = false;
  at(1).on_place = [&](ByteView, std::size_t) {
    is_placed = true;
    return place.data();
  };
  at(1).on_arrival = [&](ByteView, ByteView) { is_here = true; };
  ASSERT_TRUE(at(0).wire->post_from_gpu(1, view_of(1), payload).is_ok());
  ASSERT_TRUE(progress_until(all_, [&] { return is_placed; }));
  const auto start = Station::Clock::now();
  at(1).wire->cancel_all();
  EXPECT_LT(Station::Clock::now() - start, 1s) << "UCX has not given it back";
  const Bytes seen = place;
  at(0).wire->cancel_all();
  EXPECT_FALSE(is_here);
  EXPECT_EQ(place, seen);
}

TEST_F(UcxWireTest, AWireOfTheHostDoesNotReachGpus) {
  make(2);
  EXPECT_FALSE(at(0).wire->reaches_gpus());
}

TEST_F(UcxWireTest, CarriesTenThousandMessagesBothWaysAtOnceEachOnce) {
  constexpr int kMessages = 10000;
  make(2);
  const Bytes payload = filled(200, 3);
  std::array<std::vector<int>, 2> times;
  for (int rank = 0; rank < 2; ++rank) {
    auto& own = times[static_cast<std::size_t>(rank)];
    own.resize(kMessages);
    at(rank).on_arrival = [&own, &payload](ByteView header, ByteView came) {
      ++own[static_cast<std::size_t>(from_bytes<int>(header))];
      EXPECT_TRUE(std::equal(came.begin(), came.end(), payload.begin(), payload.end()));
    };
  }
  for (int k = 0; k < kMessages; ++k) {
    ASSERT_TRUE(at(0).wire->post(1, view_of(k), payload).is_ok());
    ASSERT_TRUE(at(1).wire->post(0, view_of(k), payload).is_ok());
    if (k % 64 == 0) progress_until(all_, [] { return true; });
  }
  const auto complete = [&](const std::vector<int>& counts) {
    return std::find(counts.begin(), counts.end(), 0) == counts.end();
  };
  ASSERT_TRUE(progress_until(all_, [&] {
    return at(0).sent.size() == kMessages && at(1).sent.size() == kMessages && complete(times[0]) &&
           complete(times[1]);
  }));
  for (const auto& own : times) EXPECT_EQ(*std::max_element(own.begin(), own.end()), 1);
  std::sort(at(0).sent.begin(), at(0).sent.end());  // each ticket once
  EXPECT_EQ(std::unique(at(0).sent.begin(), at(0).sent.end()), at(0).sent.end());
}

TEST_F(UcxWireTest, AWakeEndsASleepAlsoOneThatHasNotBegun) {
  make(2);
  greet();
  Wire& wire = *at(0).wire;
  const auto sleep_until_woken = [&wire](std::chrono::milliseconds limit) {
    const auto start = Station::Clock::now();
    bool woken = false;
    // Sleeps may end early.
    while (!woken && Station::Clock::now() < start + limit) {
      wire.progress();
      const auto before = Station::Clock::now();
      wire.sleep(start + limit);
      woken = Station::Clock::now() - before > 1us && Station::Clock::now() < start + limit / 2;
    }
    return Station::Clock::now() - start;
  };
  wire.wake();
  EXPECT_LT(sleep_until_woken(10s), 5s);
  std::thread waker([&wire] {
    std::this_thread::sleep_for(20ms);
    wire.wake();
  });
  EXPECT_LT(sleep_until_woken(10s), 5s);
  waker.join();
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// UCX's own threads count, and its looks after peers.
TEST_F(UcxWireTest, SleepsWithoutWork) {
  make(2);
  greet();
  ASSERT_TRUE(at(0).wire->close_doors().is_ok());
  const auto idle = [this](Station::Clock::duration span) {
    const auto end = Station::Clock::now() + span;
    while (Station::Clock::now() < end) {
      if (!at(0).wire->progress()) at(0).wire->sleep(end);
    }
  };
  idle(100ms);  // what is left of the beginning
  const double before = cpu_seconds();
  constexpr auto kSpan = 1200ms;  // two looks after peers
  idle(kSpan);
  EXPECT_LT(cpu_seconds() - before, 0.01 * std::chrono::duration<double>(kSpan).count());
}

// The peer takes nothing before the messages are cancelled, so most of them are still here.
TEST_F(UcxWireTest, CancelledPayloadsMayBeChangedAndFreed) {
  make(2);
  greet();
  const Bytes whole = filled(1 << 20, 5);
  std::vector<Bytes> payloads(24, whole);
  for (const Bytes& payload : payloads) post(0, 1, payload);
  at(0).sent.clear();
  at(0).wire->cancel_all();
  for (Bytes& payload : payloads) std::fill(payload.begin(), payload.end(), std::byte{0xEE});
  // What UCX still held would go out now, changed.
  progress_until(
      all_, [] { return false; }, 100ms);
  payloads.clear();
  payloads.shrink_to_fit();
  EXPECT_EQ(at(0).wire->post(1, {}, {}).status().code(), StatusCode::kAborted);
  at(0).wire.reset();
  EXPECT_TRUE(progress_until({&at(1)}, [this] { return !at(1).lost.empty(); }));
  for (const Station::Message& message : at(1).arrived) EXPECT_EQ(message.payload, whole);
  EXPECT_LT(at(1).arrived.size(), 24U);
  EXPECT_TRUE(at(0).sent.empty());
}

TEST_F(UcxWireTest, APeerThatGoesIsLostOnce) {
  make(3);
  greet();
  stations_.pop_back();
  all_.pop_back();
  ASSERT_TRUE(progress_until(all_, [this] { return !at(0).lost.empty() && !at(1).lost.empty(); }));
  EXPECT_EQ(at(0).lost.front().first, 2);
  EXPECT_EQ(at(0).lost.front().second.code(), StatusCode::kPeerFailed);
  EXPECT_THAT(at(0).lost.front().second.message(), HasSubstr("rank 2 over UCX"));
  greet();  // the others go on
  EXPECT_EQ(at(0).lost.size(), 1U);
  EXPECT_EQ(at(0).wire->post(2, {}, {}).status().code(), StatusCode::kUnavailable);
}

TEST_F(UcxWireTest, BadCallsAreRefused) {
  make(2);
  Wire& wire = *at(0).wire;
  const Bytes header(Wire::kMostHeaderBytes + 1);
  EXPECT_EQ(wire.post(1, header, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(wire.post(7, {}, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(wire.connect(1, at(1).wire->address()).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(wire.connect(2, {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(wire.connect(2, Bytes(Wire::kMostAddressBytes + 1)).code(),
            StatusCode::kInvalidArgument);
  WireOptions options;
  options.interfaces = "no-such-interface";
  const Status status = open_ucx_wire(options).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("TUTTI_SOCKET_IFNAME=no-such-interface"));
  options = {.one_host = true, .transports = "no-such-transport"};
  EXPECT_THAT(open_ucx_wire(options).status().message(), HasSubstr("no such transport or device"));
}

// Two ranks and their ports, and a port that is none of UCX's.
class UcxDoors : public UcxWireTest {
 protected:
  void SetUp() override {
    UcxWireTest::SetUp();
    if (IsSkipped()) return;
    own_ = listen_on_loopback();
    const auto before = *listening_sockets();
    make(2);
    const auto now = *listening_sockets();
    for (const ListeningSocket& socket : now) {
      const bool is_old = std::any_of(before.begin(), before.end(),
                                      [&](const auto& old) { return old.inode == socket.inode; });
      if (!is_old) doors_.push_back(socket.address);
    }
    ASSERT_EQ(doors_.size(), 2U);  // of each rank
    greet();
  }

  static Fd listen_on_loopback() {
    return *real_sockets().listen(*SocketAddress::tcp("127.0.0.1", 0));
  }

  // Invalid where nobody takes it.
  static Fd knock(const SocketAddress& address) {
    auto connection = real_sockets().connect(address);
    if (!connection.is_ok()) return {};
    std::array<SocketWait, 1> wait = {{{.fd = connection->get(), .write = true}}};
    (void)real_sockets().wait(wait, Deadline(200ms));
    if (!wait[0].writable || !real_sockets().connected(connection->get()).is_ok()) return {};
    return *std::move(connection);
  }

  Fd own_;
  std::vector<SocketAddress> doors_;
};

TEST_F(UcxDoors, NegativeControlStrangersGetInBefore) {
  for (const SocketAddress& door : doors_) EXPECT_TRUE(knock(door).valid()) << door.text();
}

TEST_F(UcxDoors, StrangersFindNoneOnceClosed) {
  Fd early = knock(doors_[0]);
  ASSERT_TRUE(early.valid());
  for (Station* station : all_) {
    const Status status = station->wire->close_doors();
    ASSERT_TRUE(status.is_ok()) << status.to_string();
  }
  for (const SocketAddress& door : doors_) EXPECT_FALSE(knock(door).valid()) << door.text();
  greet();
  // Who came early and talks nonsense is thrown out.
  const Bytes garbage(64, std::byte{0x5A});
  const ByteView part = garbage;
  (void)real_sockets().send(early.get(), {&part, 1}, {});
  greet();
  EXPECT_TRUE(all_[0]->lost.empty() && all_[1]->lost.empty());
}

TEST_F(UcxDoors, OthersPortsStayOpen) {
  const Fd later = listen_on_loopback();
  ASSERT_TRUE(at(0).wire->close_doors().is_ok());
  for (const int listener : {own_.get(), later.get()})
    EXPECT_TRUE(knock(*real_sockets().local_address(listener)).valid());
  EXPECT_EQ(knock(doors_[0]).valid(), false);
  EXPECT_EQ(knock(doors_[1]).valid(), true);  // another wire of this process
}

}  // namespace
}  // namespace tutti
