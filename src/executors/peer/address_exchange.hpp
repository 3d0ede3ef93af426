// Ranks that are threads of one process reach each other's buffers wherever these lie. Before an
// operation each rank writes the addresses of its own buffers into its channel; behind a barrier it
// reads those of the others. So a barrier, which is cheaper than a copy, replaces staging.
//
// Why that is right:
//   - Addresses of exchange k are overwritten for exchange k + 2. The owner has passed barrier
//     k + 1 by then, to which every other rank came after it had read those of exchange k.
//   - While an operation runs, the rows' own barriers protect buffers, as they do symmetric ones.
//   - A rank whose operation fails returns to its caller, who may free the buffers, while others
//     still use them. So it waits until they do not (await_users()). It has taken its flags back
//     by then, or they find by its flags that it runs another operation: nobody comes in any more.
#pragma once

#include "device/host_shared/host_team.hpp"

namespace tutti {

// One exchange. While it exists, this rank uses addresses of others.
class AddressExchange {
 public:
  // The `number`-th of the communicator. `work` gets the addresses, and outlives it.
  AddressExchange(KernelArgs& work, std::uint64_t number);
  ~AddressExchange();
  AddressExchange(const AddressExchange&) = delete;
  AddressExchange& operator=(const AddressExchange&) = delete;

  // Fails, and leaves a failure record, where the ranks do not meet in this operation.
  Outcome meet(const ProtocolMutation* weakening, std::uint64_t* waits_for);

  // For a rank that has failed, and whose group has told the others so, which ends their waits:
  // returns once none of them uses its buffers. `channels`: of all ranks.
  static void await_users(const PeerPointers& channels, int rank, int ranks);

 private:
  AddressMemory& memory(int rank) const;
  AddressMemory::Buffers& buffers(int rank) const { return memory(rank).buffers[number_ % 2]; }

  KernelArgs& work_;
  const std::uint64_t number_;
};

}  // namespace tutti
