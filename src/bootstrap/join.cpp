#include "bootstrap/join.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "bootstrap/identity.hpp"
#include "bootstrap/socket_mesh.hpp"

namespace tutti {

Result<std::unique_ptr<Bootstrap>> make_socket_group(const JoinRequest& request,
                                                     std::vector<Fd> connections) {
  SocketMesh::Setup setup;
  setup.sockets = request.options.sockets;
  setup.rank = request.rank;
  setup.connections = std::move(connections);
  setup.secret = request.id.secret();
  setup.is_unix = request.id.is_local();
  TUTTI_ASSIGN(const std::shared_ptr<SocketMesh> mesh, SocketMesh::start(std::move(setup)));
  TUTTI_ASSIGN(auto group, make_root_group(mesh, request.deadline, request.options.names));
  mesh->established(group->identities());
  return group;
}

Result<std::unique_ptr<Bootstrap>> join_group_with(const GroupId& id, int rank, int size,
                                                   Deadline deadline, const JoinOptions& options) {
  constexpr int kMaxRanks = 4096;
  if (size < 1 || size > kMaxRanks || rank < 0 || rank >= size) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("rank {} of {} is not possible: a group has 1 to {} ranks, counted "
                              "from 0",
                              rank, size, kMaxRanks));
  }
  if (size == 1) return std::move(make_in_process_group(1).front());
  const JoinRequest request{id, rank, size, deadline, options};
  return id.is_local() ? join_local(request) : join_tcp(request);
}

Result<std::unique_ptr<Bootstrap>> join_group(const GroupId& id, int rank, int size,
                                              Deadline deadline) {
  auto group = join_group_with(id, rank, size, deadline, {});
  const StatusCode code = group.status().code();
  if (code != StatusCode::kTimeout && code != StatusCode::kMismatch) return group;
  return Status(code,
                fmt::format("{}; start all {} ranks, each with its own rank, and with the same "
                            "UniqueId and size",
                            group.status().message(), size));
}

}  // namespace tutti
