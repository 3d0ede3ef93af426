#include "group/recorder/peer_pages.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/try.hpp"
#include "bootstrap/bootstrap.hpp"
#include "drivers/shared_memory.hpp"

namespace tutti {
namespace {

// Of a rank of this process.
MappingKey key_of_page(const PeerIdentity& writer, std::uint64_t number) {
  static constexpr char kDriver = 0;  // its address is nobody else's
  MappingKey key;
  key.driver = &kDriver;
  key.process_token = writer.process_token;
  key.identity = number;
  return key;
}

std::shared_ptr<Mapping> map_page(const Fd& descriptor) {
  const auto page = real_shared_memory().map(descriptor.get(), kPageBytes);
  if (!page.is_ok()) return nullptr;
  return std::make_shared<Mapping>(*page, Mapping::Origin::kPeerProcess, [address = *page] {
    real_shared_memory().unmap(address, kPageBytes);
  });
}

}  // namespace

Result<std::unique_ptr<PeerPages>> PeerPages::open(Bootstrap& bootstrap, const FlightRecorder& own,
                                                   Deadline deadline) {
  const auto& identities = bootstrap.identities();
  const auto rank = static_cast<std::size_t>(bootstrap.rank());
  const PeerIdentity& self = identities[rank];
  const auto is_here = [&](const PeerIdentity& one) {
    return one.process_token == self.process_token;
  };
  // Of the mapping; 0: there is none.
  const std::uint64_t number = own.page() == nullptr ? 0 : own.page()->number();
  if (number != 0) MappingRegistry::process().publish(key_of_page(self, number), own.page());
  TUTTI_ASSIGN(const auto numbers, bootstrap.all_gather(view_of(number), deadline));

  std::vector<std::vector<int>> outgoing(identities.size());
  for (std::size_t r = 0; r < identities.size(); ++r) {
    if (number != 0 && !is_here(identities[r])) outgoing[r] = {own.descriptor()};
  }
  std::vector<std::vector<Fd>> descriptors(identities.size());
  if (!std::all_of(identities.begin(), identities.end(), is_here)) {
    auto exchanged = bootstrap.exchange_descriptors(outgoing, deadline);
    if (exchanged.is_ok()) {
      descriptors = std::move(exchanged).value();
    } else if (exchanged.status().code() != StatusCode::kResourceExhausted) {
      return exchanged.status();
    }
  }
  auto pages = std::make_unique<PeerPages>();
  for (std::size_t r = 0; number != 0 && r < identities.size(); ++r) {
    if (r == rank || numbers[r].size() != sizeof(std::uint64_t)) continue;
    const auto theirs = from_bytes<std::uint64_t>(numbers[r]);
    if (is_here(identities[r])) {
      pages->add(static_cast<int>(r), own,
                 MappingRegistry::process().find(key_of_page(identities[r], theirs)));
    } else if (!descriptors[r].empty()) {
      pages->add(static_cast<int>(r), own, map_page(descriptors[r].front()));
    }
  }
  return pages;
}

void PeerPages::add(int rank, const FlightRecorder& own, std::shared_ptr<Mapping> page) {
  if (page == nullptr) return;
  const PageComparison comparison(own.page()->address(), page->address());
  peers_.push_back({rank, std::move(page), comparison});
}

std::optional<PeerPages::Found> PeerPages::look() {
  const std::lock_guard lock(mutex_);
  for (Peer& peer : peers_) {
    if (auto different = peer.comparison.look()) return Found{peer.rank, std::move(*different)};
  }
  return std::nullopt;
}

}  // namespace tutti
