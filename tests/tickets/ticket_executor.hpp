// An executor that knows nothing of peers' memory: a thread of its own exchanges the ranks' data
// over a split of the group's bootstrap, and completes tickets. It shows what an executor needs of
// the house, and stands for engines of networks where none is installed.
#pragma once

namespace tutti::test {

// Registers it, with the algorithms all_reduce/exchanged and all_gather/exchanged.
void register_ticket_executor();

}  // namespace tutti::test
