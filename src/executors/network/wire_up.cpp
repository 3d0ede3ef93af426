#include "executors/network/wire_up.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/identity.hpp"
#include "executors/network/message.hpp"

namespace tutti {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{20};

// What a rank says of its wire: a nonce and an address, or why it has none.
struct Offer {
  enum class Reach : std::uint8_t { kNothing, kHosts, kGpus };
  Digest nonce{};
  Reach reach = Reach::kNothing;
  Bytes rest;  // the address, or the reason
};

Bytes encode(const Offer& offer) {
  Bytes bytes = to_bytes(view_of(offer.nonce));
  bytes.push_back(static_cast<std::byte>(offer.reach));
  bytes.insert(bytes.end(), offer.rest.begin(), offer.rest.end());
  return bytes;
}

Result<Offer> decode(ByteView bytes, const std::string& name) {
  constexpr std::size_t kHead = sizeof(Digest) + 1;
  const auto reach = bytes.size() < kHead ? 0xFFU : std::to_integer<unsigned>(bytes[kHead - 1]);
  if (bytes.size() > kHead + Wire::kMostAddressBytes ||
      reach > static_cast<unsigned>(Offer::Reach::kGpus)) {
    return Status(StatusCode::kMismatch,
                  fmt::format("{} gave {} bytes for its network address", name, bytes.size()));
  }
  return Offer{.nonce = from_bytes<Digest>(bytes.first(sizeof(Digest))),
               .reach = static_cast<Offer::Reach>(reach),
               .rest = to_bytes(bytes.subspan(kHead))};
}

std::string text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class WireUp {
 public:
  WireUp(Bootstrap& bootstrap, Wire& wire, ByteView offers)
      : bootstrap_(bootstrap),
        wire_(wire),
        offers_(sha256(offers)),
        proved_(static_cast<std::size_t>(bootstrap.size()), false) {
    proved_[static_cast<std::size_t>(bootstrap.rank())] = true;
    id_ = first_word(proof_of(-1, -1));
  }

  std::uint64_t id() const { return id_; }

  Status prove_all() {
    const int ranks = bootstrap_.size(), rank = bootstrap_.rank();
    proofs_.reserve(static_cast<std::size_t>(ranks));
    for (int step = 1; step < ranks; ++step) {  // not all of them to rank 0 first
      const int peer = (rank + step) % ranks;
      proofs_.push_back(proof_of(rank, peer));
      const auto header =
          to_header({.kind = NetworkMessage::Kind::kProof, .group = id_, .from = rank});
      ++unsent_;
      TUTTI_TRY(wire_.post(peer, header, view_of(proofs_.back())).status());
    }
    return Status::ok();
  }

  void arrived(ByteView header, ByteView payload) {
    const auto message = parse_network_message(header);
    const bool is_proof = message.is_ok() && message->kind == NetworkMessage::Kind::kProof &&
                          message->group == id_ && message->from >= 0 &&
                          message->from < bootstrap_.size() && payload.size() == sizeof(Digest);
    if (is_proof && equal_in_constant_time(from_bytes<Digest>(payload),
                                           proof_of(message->from, bootstrap_.rank()))) {
      proved_[static_cast<std::size_t>(message->from)] = true;
    } else {
      log_once(LogLevel::kWarn, "messages of a stranger came over the network, and are dropped");
    }
  }
  void sent() { --unsent_; }
  void lost(int peer, const Status& why) {
    if (failure_.is_ok()) failure_ = why.with_context(bootstrap_.names().of(peer));
  }

  // Until all ranks have proved themselves here, and this rank's proofs are on their way.
  Status wait(Deadline deadline, const std::function<bool()>& given_up) {
    while (failure_.is_ok()) {
      while (wire_.progress()) continue;
      if (unsent_ == 0 && missing().empty()) return Status::ok();
      if (given_up()) return {StatusCode::kAborted, "the group has failed"};
      if (deadline.passed()) {
        return {StatusCode::kPermission,
                fmt::format("{} did not prove over the network that it belongs to the group",
                            bootstrap_.names().of(missing()))};
      }
      wire_.sleep(Wire::Clock::now() + kBetweenLooks);
    }
    return failure_;
  }

 private:
  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t r = 0; r < proved_.size(); ++r) {
      if (!proved_[r]) ranks.push_back(static_cast<int>(r));
    }
    return ranks;
  }

  Digest proof_of(int from, int to) const {
    Bytes statement = to_bytes(view_of(offers_));
    for (const ByteView part : {view_of("network"), view_of(from), view_of(to)}) {
      statement.insert(statement.end(), part.begin(), part.end());
    }
    return bootstrap_.prove(statement);
  }

  Bootstrap& bootstrap_;
  Wire& wire_;
  const Digest offers_;  // of all ranks' offers
  std::vector<bool> proved_;
  std::vector<Digest> proofs_;
  std::uint64_t id_ = 0;
  int unsent_ = 0;
  Status failure_;
};

// Every rank's offer, once all have a wire.
Result<std::vector<Offer>> exchange(Bootstrap& bootstrap, const Offer& mine, Deadline deadline,
                                    Bytes& all) {
  TUTTI_ASSIGN(const auto answers, bootstrap.all_gather(encode(mine), deadline));
  std::vector<Offer> offers;
  for (std::size_t r = 0; r < answers.size(); ++r) {
    const std::string name = bootstrap.names().of(static_cast<int>(r));
    TUTTI_ASSIGN(Offer offer, decode(answers[r], name));
    if (offer.reach == Offer::Reach::kNothing) {
      return Status(StatusCode::kUnavailable,
                    fmt::format("{} has no network: {}", name, text_of(offer.rest)));
    }
    const std::uint64_t length = answers[r].size();
    const ByteView head = view_of(length);
    all.insert(all.end(), head.begin(), head.end());
    all.insert(all.end(), answers[r].begin(), answers[r].end());
    offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace

Result<WiredGroup> wire_up(Bootstrap& bootstrap, const OpenWire& open, Deadline deadline,
                           const std::function<bool()>& given_up) {
  TUTTI_ASSIGN(const Digest nonce, random_digest());
  auto opened = open();
  Offer mine{.nonce = nonce};
  if (opened.is_ok()) {
    mine.reach = (*opened)->reaches_gpus() ? Offer::Reach::kGpus : Offer::Reach::kHosts;
    mine.rest = (*opened)->address();
  } else {
    mine.rest = to_bytes(view_of(opened.status().message()));
  }
  Bytes all;
  TUTTI_ASSIGN(const auto offers, exchange(bootstrap, mine, deadline, all));
  WiredGroup group{.wire = std::move(opened).value()};
  group.reaches_gpus = std::all_of(offers.begin(), offers.end(), [](const Offer& offer) {
    return offer.reach == Offer::Reach::kGpus;
  });
  for (int r = 0; r < bootstrap.size(); ++r) {
    if (r == bootstrap.rank()) continue;
    const Status known = group.wire->connect(r, offers[static_cast<std::size_t>(r)].rest);
    if (known.is_ok()) continue;
    // Not kUnavailable: this rank may be the only one that finds it.
    return Status(
        StatusCode::kSystem,
        fmt::format("{}: {}; TUTTI_SOCKET_IFNAME has to name interfaces of one network on "
                    "all hosts",
                    bootstrap.names().of(r), known.message()));
  }
  WireUp proofs(bootstrap, *group.wire, all);
  group.id = proofs.id();
  group.wire->set_handlers({.arrived = [&](ByteView h, ByteView p) { proofs.arrived(h, p); },
                            .sent = [&](WireTicket) { proofs.sent(); },
                            .lost = [&](int peer, const Status& why) { proofs.lost(peer, why); }});
  const auto prove = [&]() -> Status {
    TUTTI_TRY(proofs.prove_all());
    TUTTI_TRY(proofs.wait(deadline, given_up));
    // Nobody is waiting for a connection any more.
    return bootstrap.barrier(deadline);
  };
  const Status proven = prove();
  if (!proven.is_ok()) {
    group.wire->cancel_all();  // while the proofs that it may still send are there
    return proven;
  }
  TUTTI_TRY(group.wire->close_doors());
  TUTTI_TRY(bootstrap.barrier(deadline));
  group.wire->set_handlers({});
  return group;
}

}  // namespace tutti
