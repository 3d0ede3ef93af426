// How two ends of a fresh connection prove to each other that they belong to the same group.
//
//   initiator -> acceptor   Hello:     who I am, whom I want, my nonce
//   acceptor  -> initiator  Challenge: who I am, my nonce, my proof
//   initiator -> acceptor   Proof
//   acceptor  -> initiator  Verdict:   welcome, or why not
//
// A proof is an HMAC under the group's secret over everything said so far and its sender's part in
// it. Fresh nonces on both sides make a recorded handshake worthless; the part makes it useless to
// hand a proof back. Nothing about the group is told to an end that has not proved itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bootstrap/sha256.hpp"
#include "drivers/sockets.hpp"

namespace tutti {

struct HandshakeTerms {
  int rank = 0, size = 1;
  Digest secret{};
  std::uint16_t listen_port = 0;  // where this rank listens, told to the acceptor; 0: nowhere
  bool check_proofs = true;       // tests turn it off, to see that they would notice
};

enum class VerdictCode : std::uint32_t { kWelcome, kRankTaken, kSizeDiffers };
struct Verdict {
  VerdictCode code = VerdictCode::kWelcome;
  std::int32_t size = 0;  // the acceptor's
};

class Handshake {
 public:
  struct Claim {
    int rank = -1, size = 0;
    std::uint16_t port = 0;
  };
  // Asked once the other end has proved itself.
  using Admit = std::function<Verdict(const Claim&)>;

  static Handshake initiator(const HandshakeTerms& terms, int acceptor);
  static Handshake acceptor(const HandshakeTerms& terms, Admit admit);

  // Goes on as far as the socket lets it. kPermission: the other end did not prove itself;
  // kMismatch: it did, and cannot be let in, or has turned us down. Any failure is final.
  Status step(SocketDriver& sockets, int socket);

  bool done() const { return stage_ == Stage::kDone; }
  bool wants_to_write() const { return !done() && writes(); }
  // What the other end says of itself. To be believed once proved() is true.
  const Claim& peer() const { return peer_; }
  bool proved() const { return proved_; }
  Verdict verdict() const { return verdict_; }

 private:
  enum class Stage : std::uint8_t { kHello, kChallenge, kProof, kVerdict, kDone };

  explicit Handshake(const HandshakeTerms& terms) : terms_(terms) {}
  bool writes() const;
  Status prepare();  // the stage's message, or room for it
  Status take();     // the stage's message, received whole
  Status take_hello();
  Status take_challenge();
  Status take_proof(const Digest& proof, bool by_initiator);
  Status take_verdict();
  Digest proof(bool by_initiator) const;

  HandshakeTerms terms_;
  bool initiates_ = false;
  int wanted_ = -1;  // the acceptor's rank
  Admit admit_;
  Stage stage_ = Stage::kHello;
  Bytes buffer_;
  std::size_t done_bytes_ = 0;
  bool prepared_ = false, proved_ = false;
  Digest my_nonce_{}, peer_nonce_{};
  Claim peer_;
  Verdict verdict_;
};

}  // namespace tutti
