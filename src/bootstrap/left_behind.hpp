// What is left in the folder where ranks meet when all processes of a group are killed while it
// forms.
#pragma once

#include <string>
#include <string_view>

#include "drivers/sockets.hpp"

namespace tutti {

// Takes down the directories of this user's groups in `base` at whose sockets nobody listens any
// more, and of jobs that lead to none. Leaves alone the one named `own`, what it does not know, and
// what has changed within the last minute: its processes may just be starting.
void remove_left_behind(SocketDriver& sockets, const std::string& base, std::string_view own);

}  // namespace tutti
