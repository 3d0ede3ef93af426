// A stranger that says anything at all to either end of a handshake. The first byte chooses: which
// end it talks to, whether that end checks proofs, and how its words are cut.
#include "bootstrap/handshake.hpp"

#include "fuzz/fuzz.hpp"
#include "fuzz/scripted_socket.hpp"

namespace tutti::fuzz {
namespace {

constexpr int kRank = 1, kRanks = 4;
// Hello and proof; challenge and verdict.
constexpr std::size_t kInitiatorSays = 56 + 32, kAcceptorSays = 80 + 8;

struct Victim {
  bool initiates = false, careless = false;
};

struct Outcome {
  StatusCode code = StatusCode::kOk;
  bool done = false, proved = false, admitted = false;
  std::size_t bytes = 0;  // that were read
  Handshake::Claim peer;

  bool same_as(const Outcome& other) const {
    return code == other.code && done == other.done && proved == other.proved &&
           admitted == other.admitted && bytes == other.bytes && peer.rank == other.peer.rank;
  }
};

Outcome meet(const Victim& victim, ByteView script, std::size_t cut) {
  HandshakeTerms terms;
  terms.rank = kRank;
  terms.size = kRanks;
  terms.secret.fill(std::byte{0x5e});
  terms.check_proofs = !victim.careless;
  Outcome outcome;
  const auto admit = [&](const Handshake::Claim& claim) {
    outcome.admitted = true;
    return Verdict{VerdictCode::kWelcome, claim.size};
  };
  Handshake handshake =
      victim.initiates ? Handshake::initiator(terms, 0) : Handshake::acceptor(terms, admit);
  ScriptedSocket socket(script, cut);
  // Neither end of it ever blocks, so one step goes on to the end.
  outcome.code = handshake.step(socket, 0).code();
  outcome.done = handshake.done();
  outcome.proved = handshake.proved();
  outcome.peer = handshake.peer();
  outcome.bytes = script.size() - socket.unread();
  return outcome;
}

void check(const Victim& victim, const Outcome& outcome) {
  const std::size_t whole = victim.initiates ? kAcceptorSays : kInitiatorSays;
  must_hold(outcome.done == (outcome.code == StatusCode::kOk), "it ends, or it fails");
  must_hold(outcome.bytes <= whole, "not a byte is read that belongs to what comes after");
  must_hold(!outcome.done || outcome.bytes == whole, "all of it is read before it is believed");
  if (victim.careless) {
    must_hold(!outcome.admitted || (outcome.peer.rank > kRank), "only who dials here is admitted");
  } else {
    must_hold(!outcome.proved && !outcome.admitted && !outcome.done, "no stranger gets in");
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::fuzz;
  tutti::ByteView input = tutti::view_of(text_of(data, size));
  const std::size_t choice = take_choice(input);
  const Victim victim{.initiates = (choice & 1) != 0, .careless = (choice & 2) != 0};
  const Outcome cut = meet(victim, input, 1 + choice / 4);
  check(victim, cut);
  must_hold(cut.same_as(meet(victim, input, SIZE_MAX)), "how it is cut makes no difference");
  return 0;
}
