#include "bootstrap/handshake.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "fakes/fake_sockets.hpp"

namespace tutti {
namespace {

struct Ends {
  Ends() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
    initiator.reset(pair[0]);
    acceptor.reset(pair[1]);
  }
  Fd initiator, acceptor;
};

HandshakeTerms terms(int rank, int size, int secret = 1) {
  HandshakeTerms terms;
  terms.rank = rank;
  terms.size = size;
  terms.secret.fill(static_cast<std::byte>(secret));
  return terms;
}

Handshake::Admit welcome() {
  return [](const Handshake::Claim& claim) { return Verdict{VerdictCode::kWelcome, claim.size}; };
}

struct Outcome {
  Status initiator, acceptor;
};

// Steps both in turn until both are at an end. An end that has failed closes its socket, as its
// owner would.
Outcome shake(Handshake& initiator, Handshake& acceptor, Ends& ends, SocketDriver& sockets) {
  Outcome outcome;
  for (int round = 0; round < 2000; ++round) {
    if (ends.initiator.valid() && !initiator.done()) {
      outcome.initiator = initiator.step(sockets, ends.initiator.get());
      if (!outcome.initiator.is_ok()) ends.initiator.reset();
    }
    if (ends.acceptor.valid() && !acceptor.done()) {
      outcome.acceptor = acceptor.step(sockets, ends.acceptor.get());
      if (!outcome.acceptor.is_ok()) ends.acceptor.reset();
    }
  }
  return outcome;
}

Outcome shake(HandshakeTerms initiator_terms, HandshakeTerms acceptor_terms,
              Handshake::Admit admit = welcome()) {
  Ends ends;
  Handshake initiator = Handshake::initiator(initiator_terms, acceptor_terms.rank);
  Handshake acceptor = Handshake::acceptor(acceptor_terms, std::move(admit));
  return shake(initiator, acceptor, ends, real_sockets());
}

TEST(Handshake, LetsInWhoKnowsTheSecret) {
  Ends ends;
  HandshakeTerms mine = terms(2, 4);
  mine.listen_port = 4321;
  Handshake initiator = Handshake::initiator(mine, 1);
  Handshake acceptor = Handshake::acceptor(terms(1, 4), welcome());
  const Outcome outcome = shake(initiator, acceptor, ends, real_sockets());
  EXPECT_TRUE(outcome.initiator.is_ok()) << outcome.initiator.to_string();
  EXPECT_TRUE(outcome.acceptor.is_ok()) << outcome.acceptor.to_string();
  EXPECT_TRUE(initiator.done() && acceptor.done());
  EXPECT_TRUE(initiator.proved() && acceptor.proved());
  EXPECT_EQ(acceptor.peer().rank, 2);
  EXPECT_EQ(acceptor.peer().port, 4321);
}

TEST(Handshake, WorksByteByByteAndReadsNoByteTooMany) {
  Ends ends;
  FakeSockets sockets(real_sockets());
  sockets.max_transfer_bytes = 1;
  Handshake initiator = Handshake::initiator(terms(1, 2), 0);
  Handshake acceptor = Handshake::acceptor(terms(0, 2), welcome());
  const Outcome outcome = shake(initiator, acceptor, ends, sockets);
  EXPECT_TRUE(outcome.initiator.is_ok() && outcome.acceptor.is_ok());
  ASSERT_TRUE(initiator.done() && acceptor.done());
  ASSERT_EQ(::write(ends.acceptor.get(), "after", 5), 5);
  std::array<char, 8> next{};
  EXPECT_EQ(::read(ends.initiator.get(), next.data(), next.size()), 5);
}

TEST(Handshake, RefusesAnotherSecretOnBothSides) {
  const Outcome outcome = shake(terms(1, 2, 1), terms(0, 2, 2));
  EXPECT_EQ(outcome.initiator.code(), StatusCode::kPermission);
  EXPECT_FALSE(outcome.acceptor.is_ok());
}

// Negative control: without the check the test above would see both let in.
TEST(Handshake, NegativeControlWithoutTheCheckStrangersGetIn) {
  HandshakeTerms initiator = terms(1, 2, 1), acceptor = terms(0, 2, 2);
  initiator.check_proofs = acceptor.check_proofs = false;
  const Outcome outcome = shake(initiator, acceptor);
  EXPECT_TRUE(outcome.initiator.is_ok() && outcome.acceptor.is_ok());
}

// An initiator that checks nothing must still prove itself to the acceptor.
TEST(Handshake, AcceptorDoesNotRelyOnTheInitiatorsCheck) {
  HandshakeTerms careless = terms(1, 2, 1);
  careless.check_proofs = false;
  const Outcome outcome = shake(careless, terms(0, 2, 2));
  EXPECT_EQ(outcome.acceptor.code(), StatusCode::kPermission);
  EXPECT_FALSE(outcome.initiator.is_ok());
}

// What has come from `from` goes on to `to` as a process of another version would have said it: the
// word behind the magic is the version.
void relay_as_version(std::uint32_t version, int from, int to) {
  std::array<std::byte, 256> greeting{};
  const ssize_t got = ::read(from, greeting.data(), greeting.size());
  ASSERT_GT(got, 8);
  std::memcpy(greeting.data() + 4, &version, sizeof version);
  ASSERT_EQ(::write(to, greeting.data(), static_cast<std::size_t>(got)), got);
}

TEST(Handshake, SaysOnBothSidesWhichVersionsDiffer) {
  for (const std::uint32_t other : {1u, 7u}) {  // 1: this version, so that both go on
    Ends first, second;                         // the relay sits between them
    Handshake initiator = Handshake::initiator(terms(1, 2), 0);
    Handshake acceptor = Handshake::acceptor(terms(0, 2), welcome());
    EXPECT_TRUE(initiator.step(real_sockets(), first.initiator.get()).is_ok());
    relay_as_version(other, first.acceptor.get(), second.initiator.get());
    const Status refused = acceptor.step(real_sockets(), second.acceptor.get());
    EXPECT_EQ(refused.is_ok(), other == 1) << refused.to_string();
    if (other != 1) {
      EXPECT_NE(refused.message().find("it speaks version 7 of the protocol, this rank version 1"),
                std::string::npos)
          << refused.message();
      continue;
    }
    relay_as_version(9, second.initiator.get(), first.acceptor.get());
    EXPECT_NE(initiator.step(real_sockets(), first.initiator.get())
                  .message()
                  .find("it speaks version 9 of the protocol, this rank version 1"),
              std::string::npos);
  }
}

TEST(Handshake, TellsAMemberThatItsSizeDiffers) {
  const auto admit = [](const Handshake::Claim&) { return Verdict{VerdictCode::kSizeDiffers, 8}; };
  const Outcome outcome = shake(terms(1, 4), terms(0, 8), admit);
  EXPECT_EQ(outcome.initiator.code(), StatusCode::kMismatch);
  EXPECT_NE(outcome.initiator.message().find("group of 8"), std::string::npos);
  EXPECT_NE(outcome.initiator.message().find("group of 4"), std::string::npos);
}

TEST(Handshake, TellsAMemberThatItsRankIsTaken) {
  const auto admit = [](const Handshake::Claim&) { return Verdict{VerdictCode::kRankTaken, 4}; };
  const Outcome outcome = shake(terms(1, 4), terms(0, 4), admit);
  EXPECT_EQ(outcome.initiator.code(), StatusCode::kMismatch);
}

TEST(Handshake, RefusesRanksThatCannotDialHere) {
  for (const HandshakeTerms& wrong : {terms(0, 4), terms(1, 4), terms(4, 4), terms(-1, 4)}) {
    Ends ends;
    Handshake initiator = Handshake::initiator(wrong, 1);
    Handshake acceptor = Handshake::acceptor(terms(1, 4), welcome());
    EXPECT_FALSE(shake(initiator, acceptor, ends, real_sockets()).acceptor.is_ok()) << wrong.rank;
  }
}

Bytes drain(int fd) {
  std::array<std::byte, 4096> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  return got <= 0 ? Bytes() : Bytes(buffer.begin(), buffer.begin() + got);
}

// Carries a good handshake from one connection to another and keeps what the initiator said.
std::vector<Bytes> record_initiator() {
  Ends left, right;
  Handshake initiator = Handshake::initiator(terms(1, 2), 0);
  Handshake acceptor = Handshake::acceptor(terms(0, 2), welcome());
  std::vector<Bytes> said;
  for (int round = 0; round < 4; ++round) {
    EXPECT_TRUE(initiator.step(real_sockets(), left.initiator.get()).is_ok());
    if (Bytes words = drain(left.acceptor.get()); !words.empty()) {
      EXPECT_EQ(::write(right.initiator.get(), words.data(), words.size()),
                static_cast<ssize_t>(words.size()));
      said.push_back(std::move(words));
    }
    EXPECT_TRUE(acceptor.step(real_sockets(), right.acceptor.get()).is_ok());
    const Bytes answer = drain(right.initiator.get());
    EXPECT_EQ(::write(left.acceptor.get(), answer.data(), answer.size()),
              static_cast<ssize_t>(answer.size()));
  }
  EXPECT_TRUE(initiator.done() && acceptor.done()) << "the recording itself must succeed";
  return said;
}

Status replay(const std::vector<Bytes>& said, const HandshakeTerms& against) {
  Ends ends;
  Handshake acceptor = Handshake::acceptor(against, welcome());
  Status last;
  for (const Bytes& words : said) {
    EXPECT_EQ(::write(ends.initiator.get(), words.data(), words.size()),
              static_cast<ssize_t>(words.size()));
    last = acceptor.step(real_sockets(), ends.acceptor.get());
    if (!last.is_ok()) return last;
  }
  return last;
}

TEST(Handshake, RefusesARecordedHandshake) {
  const std::vector<Bytes> said = record_initiator();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(replay(said, terms(0, 2)).code(), StatusCode::kPermission);
  HandshakeTerms careless = terms(0, 2);  // negative control
  careless.check_proofs = false;
  EXPECT_TRUE(replay(said, careless).is_ok());
}

// A stranger that dials a rank and gives it its own proof back.
TEST(Handshake, RefusesItsOwnProofReflected) {
  Ends ends;
  Handshake acceptor = Handshake::acceptor(terms(0, 2), welcome());
  Handshake borrowed = Handshake::initiator(terms(1, 2, 99), 0);  // only for its hello
  ASSERT_TRUE(borrowed.step(real_sockets(), ends.initiator.get()).is_ok());
  ASSERT_TRUE(acceptor.step(real_sockets(), ends.acceptor.get()).is_ok());
  const Bytes challenge = drain(ends.initiator.get());
  ASSERT_EQ(challenge.size(), 80u);
  ASSERT_EQ(::write(ends.initiator.get(), challenge.data() + 48, 32), 32);
  EXPECT_EQ(acceptor.step(real_sockets(), ends.acceptor.get()).code(), StatusCode::kPermission);
}

TEST(Handshake, RefusesNoise) {
  for (const std::string& noise :
       {std::string(200, 'x'),
        std::string("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n" + std::string(40, ' ')),
        std::string(200, '\0'), std::string(200, '\xff')}) {
    Ends ends;
    Handshake acceptor = Handshake::acceptor(terms(0, 2), welcome());
    ASSERT_EQ(::write(ends.initiator.get(), noise.data(), noise.size()),
              static_cast<ssize_t>(noise.size()));
    EXPECT_FALSE(acceptor.step(real_sockets(), ends.acceptor.get()).is_ok());
  }
}

}  // namespace
}  // namespace tutti
