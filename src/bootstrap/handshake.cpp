#include "bootstrap/handshake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/try.hpp"
#include "bootstrap/identity.hpp"

namespace tutti {
namespace {

constexpr std::uint32_t kMagic = 0x48697475;  // "utiH"
constexpr std::uint32_t kVersion = 1;

struct Hello {
  std::uint32_t magic = kMagic, version = kVersion;
  std::int32_t rank = 0, size = 0, wanted = 0;
  std::uint32_t port = 0;
  Digest nonce{};
};
static_assert(sizeof(Hello) == 56);

struct Challenge {
  std::uint32_t magic = kMagic, version = kVersion;
  std::int32_t rank = 0, size = 0;
  Digest nonce{}, proof{};
};
static_assert(sizeof(Challenge) == 80);

static_assert(sizeof(Verdict) == 8);

// What a proof is made over; no padding, so that its bytes are its value.
struct Transcript {
  std::array<char, 16> part{};
  std::uint32_t version = kVersion;
  std::int32_t initiator_rank = 0, initiator_size = 0, acceptor_rank = 0, acceptor_size = 0;
  std::uint32_t initiator_port = 0;
  Digest initiator_nonce{}, acceptor_nonce{};
};
static_assert(sizeof(Transcript) == 16 + 6 * 4 + 2 * 32);

Status stray(std::string why) { return {StatusCode::kPermission, std::move(why)}; }

Status check_greeting(std::uint32_t magic, std::uint32_t version) {
  if (magic != kMagic) return stray("it does not speak tutti's protocol");
  if (version == kVersion) return Status::ok();
  return stray(
      fmt::format("it speaks version {} of the protocol, this rank version {}: all ranks "
                  "must run the same tutti",
                  version, kVersion));
}

}  // namespace

Handshake Handshake::initiator(const HandshakeTerms& terms, int acceptor) {
  Handshake handshake(terms);
  handshake.initiates_ = true;
  handshake.wanted_ = acceptor;
  return handshake;
}

Handshake Handshake::acceptor(const HandshakeTerms& terms, Admit admit) {
  Handshake handshake(terms);
  handshake.wanted_ = terms.rank;
  handshake.admit_ = std::move(admit);
  return handshake;
}

bool Handshake::writes() const {
  const bool initiators_turn = stage_ == Stage::kHello || stage_ == Stage::kProof;
  return initiators_turn == initiates_;
}

Digest Handshake::proof(bool by_initiator) const {
  const Claim mine{terms_.rank, terms_.size, terms_.listen_port};
  const Claim& initiator = initiates_ ? mine : peer_;
  const Claim& acceptor = initiates_ ? peer_ : mine;
  Transcript said;
  const std::string_view part = by_initiator ? "tutti initiator" : "tutti acceptor";
  std::copy(part.begin(), part.end(), said.part.begin());
  said.initiator_rank = initiator.rank;
  said.initiator_size = initiator.size;
  said.initiator_port = initiator.port;
  said.acceptor_rank = acceptor.rank;
  said.acceptor_size = acceptor.size;
  said.initiator_nonce = initiates_ ? my_nonce_ : peer_nonce_;
  said.acceptor_nonce = initiates_ ? peer_nonce_ : my_nonce_;
  return hmac_sha256(terms_.secret, view_of(said));
}

Status Handshake::prepare() {
  if (stage_ == Stage::kHello || (stage_ == Stage::kChallenge && !initiates_)) {
    TUTTI_ASSIGN(my_nonce_, random_digest());
  }
  switch (stage_) {
    case Stage::kHello: {
      Hello hello;
      hello.rank = terms_.rank;
      hello.size = terms_.size;
      hello.wanted = wanted_;
      hello.port = terms_.listen_port;
      hello.nonce = my_nonce_;
      buffer_ = to_bytes(view_of(hello));
      break;
    }
    case Stage::kChallenge: {
      Challenge challenge;
      challenge.rank = terms_.rank;
      challenge.size = terms_.size;
      challenge.nonce = my_nonce_;
      if (writes()) challenge.proof = proof(false);
      buffer_ = to_bytes(view_of(challenge));
      break;
    }
    case Stage::kProof:
      buffer_ = to_bytes(writes() ? proof(true) : Digest{});
      break;
    case Stage::kVerdict:
      if (writes()) verdict_ = admit_(peer_);
      buffer_ = to_bytes(view_of(verdict_));
      break;
    case Stage::kDone:
      break;
  }
  done_bytes_ = 0;
  prepared_ = true;
  return Status::ok();
}

Status Handshake::step(SocketDriver& sockets, int socket) {
  while (!done()) {
    if (!prepared_) TUTTI_TRY(prepare());
    const auto rest = std::span(buffer_).subspan(done_bytes_);
    std::vector<Fd> unwanted;  // a stranger's descriptors are closed
    const ByteView part = rest;
    TUTTI_ASSIGN(const SocketTransfer moved, writes() ? sockets.send(socket, {&part, 1}, {})
                                                      : sockets.receive(socket, rest, unwanted));
    if (moved.closed) return {StatusCode::kUnavailable, "the connection was closed half-way"};
    if (moved.bytes == 0) return Status::ok();
    done_bytes_ += moved.bytes;
    if (done_bytes_ < buffer_.size()) continue;
    if (!writes()) TUTTI_TRY(take());
    stage_ = static_cast<Stage>(static_cast<int>(stage_) + 1);
    prepared_ = false;
  }
  return Status::ok();
}

Status Handshake::take() {
  switch (stage_) {
    case Stage::kHello:
      return take_hello();
    case Stage::kChallenge:
      return take_challenge();
    case Stage::kProof:
      return take_proof(from_bytes<Digest>(buffer_), true);
    case Stage::kVerdict:
      return take_verdict();
    case Stage::kDone:
      break;
  }
  return Status::ok();
}

Status Handshake::take_hello() {
  const auto hello = from_bytes<Hello>(buffer_);
  TUTTI_TRY(check_greeting(hello.magic, hello.version));
  if (hello.wanted != terms_.rank || hello.rank <= terms_.rank || hello.rank >= hello.size ||
      hello.port > 0xffff) {
    return stray(fmt::format("it says it is rank {} of {} and looks for rank {}; this is rank {}",
                             hello.rank, hello.size, hello.wanted, terms_.rank));
  }
  peer_ = {hello.rank, hello.size, static_cast<std::uint16_t>(hello.port)};
  peer_nonce_ = hello.nonce;
  return Status::ok();
}

Status Handshake::take_challenge() {
  const auto challenge = from_bytes<Challenge>(buffer_);
  TUTTI_TRY(check_greeting(challenge.magic, challenge.version));
  if (challenge.rank != wanted_) {
    return stray(fmt::format("it says it is rank {}, not rank {}", challenge.rank, wanted_));
  }
  peer_ = {challenge.rank, challenge.size, 0};
  peer_nonce_ = challenge.nonce;
  return take_proof(challenge.proof, false);
}

Status Handshake::take_proof(const Digest& claimed, bool by_initiator) {
  proved_ = equal_in_constant_time(claimed, proof(by_initiator)) || !terms_.check_proofs;
  return proved_
             ? Status::ok()
             : stray("it does not know the group's secret: it belongs to another job, or to none");
}

Status Handshake::take_verdict() {
  verdict_ = from_bytes<Verdict>(buffer_);
  switch (verdict_.code) {
    case VerdictCode::kWelcome:
      return Status::ok();
    case VerdictCode::kRankTaken:
      return {StatusCode::kMismatch,
              fmt::format("rank {} turned this process away: another one has already joined as "
                          "rank {}; give every process a rank of its own",
                          wanted_, terms_.rank)};
    case VerdictCode::kSizeDiffers:
      return {StatusCode::kMismatch,
              fmt::format("rank {} joins a group of {}, this rank {} a group of {}: all ranks must "
                          "give the same size",
                          wanted_, verdict_.size, terms_.rank, terms_.size)};
  }
  return stray(fmt::format("it answered {}", static_cast<std::uint32_t>(verdict_.code)));
}

}  // namespace tutti
