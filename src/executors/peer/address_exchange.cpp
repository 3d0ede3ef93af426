#include "executors/peer/address_exchange.hpp"

#include <atomic>

#include "tutti/device/impl/host_wait.hpp"

namespace tutti {
namespace {

AddressMemory& addresses_in(std::byte* channel) {
  return reinterpret_cast<ChannelMemory*>(channel)->addresses;
}

}  // namespace

// A rank that enters and one that asks whether it has entered both change the word, so one of them
// is first. If it is the one that asks, then the other one sees that its flags are taken back.
AddressExchange::AddressExchange(KernelArgs& work, std::uint64_t number)
    : work_(work), number_(number) {
  std::atomic_ref(memory(work_.rank).users).fetch_add(1, std::memory_order_acq_rel);
}

// Release: what it has read and written is over for whoever sees the word.
AddressExchange::~AddressExchange() {
  std::atomic_ref(memory(work_.rank).users).fetch_sub(1, std::memory_order_release);
}

AddressMemory& AddressExchange::memory(int rank) const {
  return addresses_in(work_.channels.at[rank]);
}

Outcome AddressExchange::meet(const ProtocolMutation* weakening, std::uint64_t* waits_for) {
  HostTeam team(work_, 0, weakening, waits_for);
  buffers(work_.rank) = {work_.input, work_.output};
  if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
  for (int r = 0; r < work_.ranks; ++r) {
    work_.inputs.at[r] = const_cast<std::byte*>(buffers(r).input);
    work_.outputs.at[r] = buffers((work_.rank + 1 + r) % work_.ranks).output;
  }
  return team.finish();
}

void AddressExchange::await_users(const PeerPointers& channels, int rank, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    const std::atomic_ref users(addresses_in(channels.at[r]).users);
    device::impl::HostWait wait;
    while (users.fetch_add(0, std::memory_order_acq_rel) != 0) wait.pause();
  }
}

}  // namespace tutti
