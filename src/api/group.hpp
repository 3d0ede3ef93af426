// How a checked call gets to its communicator: at once, or noted between group_start and group_end.
#pragma once

#include "operation/call.hpp"
#include "tutti/communicator.hpp"

namespace tutti {

Status submit(Communicator& communicator, const Call& call);

// Calls of one message each, noted one behind the other for one communicator and stream, as
// operations: each of one row's messages. A rank's message to itself becomes one call of both ends.
Result<std::vector<Call>> operations_of(CommunicatorImpl& communicator,
                                        const std::vector<Call>& messages);

// Of this thread: whether calls are being noted.
bool in_group();

}  // namespace tutti
