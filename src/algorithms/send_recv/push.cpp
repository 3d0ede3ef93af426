#include "algorithms/send_recv/push.hpp"

#include "algorithms/send_recv/rows.hpp"
#include "transport/host_team.hpp"

namespace tutti {
namespace {

Outcome push_messages(HostTeam& team, const Work& work) {
  return send_recv_push(team, *work.messages);
}

}  // namespace

HostBody host_send_recv_push(DataType, OpKind) { return push_messages; }

}  // namespace tutti
