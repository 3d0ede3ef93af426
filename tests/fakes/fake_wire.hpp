// A network of ranks in one process, in virtual time: messages are delayed and overtake each other
// as a seed says, connections are cut and restored, ranks die and stop.
//
// A payload is read as late as a real wire may: when it arrives, or when it was sent, whichever
// comes first. Whoever changes it before it was sent is found out.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "drivers/wire.hpp"

namespace tutti::test {

class FakeWire;

class FakeNetwork {
 public:
  using Clock = Wire::Clock;
  using Duration = Clock::duration;

  struct Options {
    std::uint64_t seed = 1;
    // Of each message, at random between the two; the same of its completion at the sender.
    Duration least_delay = {}, most_delay = {};
    Duration least_sent_delay = {}, most_sent_delay = {};
    bool overtaking = true;             // else messages of a pair arrive in their order
    bool may_send_within_post = false;  // one of four is sent before post() returns
  };

  FakeNetwork(int ranks, Options options);
  ~FakeNetwork();

  Wire& wire(int rank);
  int ranks() const { return static_cast<int>(wires_.size()); }
  Clock::time_point now() const { return now_; }
  void advance(Duration by) { now_ += by; }
  // When the next thing happens, of ranks that run; max(): nothing will.
  Clock::time_point next_event() const;

  // Messages of the rank that have not arrived vanish, and others are told.
  void kill(int rank);
  // What the rank has posted goes on, but it handles nothing.
  void stop(int rank);
  void resume(int rank);
  bool runs(int rank) const;  // neither killed nor stopped
  // Messages between the two vanish until the connection is restored: then they arrive.
  void cut(int a, int b);
  void restore(int a, int b);

  // For explorers: what could happen next, whatever its time, and to let it happen.
  std::size_t pending() const;
  void make_due(std::size_t index);

  struct Record {
    std::vector<std::pair<int, Bytes>> connected;  // as connect() was called
    bool doors_closed = false, cancelled = false;
    std::size_t wakes = 0, sleeps = 0, posts = 0;
  };
  const Record& record(int rank) const;
  // "rank 1 changed the payload of message 7 before it was sent"; empty: nothing of the kind.
  const std::string& misdeed() const { return misdeed_; }
  // To be duplicated, or sent by a stranger: a message that arrives at once.
  void inject(int to, Bytes header, Bytes payload);

 private:
  friend class FakeWire;
  struct Message {
    std::uint64_t number = 0;
    int from = -1, to = 0;
    Bytes header;
    ByteView source;  // until it has been read
    Bytes at_post;    // what the source contained
    Bytes payload;    // as it arrives
    bool is_read = false, is_sent = false, has_arrived = false;
    bool counts = true;  // whether the sender is told
    Clock::time_point arrives = {}, sent = {};
  };
  Duration between(Duration least, Duration most);
  bool is_cut(int a, int b) const;
  bool may_arrive(const Message& message) const;
  void read(Message& message);
  void drop_done();

  Options options_;
  std::mt19937_64 random_;
  Clock::time_point now_ = Clock::time_point(std::chrono::hours(1));
  std::vector<std::unique_ptr<FakeWire>> wires_;
  std::vector<std::unique_ptr<Message>> messages_;  // by number
  std::vector<std::pair<int, int>> cuts_;
  std::uint64_t next_number_ = 1;
  std::string misdeed_;
};

}  // namespace tutti::test
