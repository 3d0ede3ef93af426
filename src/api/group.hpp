// How a checked call gets to its communicator: at once, or noted between group_start and group_end.
#pragma once

#include <vector>

#include "operation/call.hpp"
#include "tutti/communicator.hpp"

namespace tutti {

Status submit(Communicator& communicator, const Call& call);

// Calls of one message each, of one communicator, as operations in the order in which they run
// (operation/group_order.hpp). A rank's message to itself becomes one call of both ends.
Result<std::vector<Call>> operations_of(CommunicatorImpl& communicator, std::vector<Call> messages);

// Drops the calls that this thread has noted of a communicator that is being destroyed.
void drop_noted(const CommunicatorImpl& communicator);

// Of this thread: whether calls are being noted.
bool in_group();

}  // namespace tutti
