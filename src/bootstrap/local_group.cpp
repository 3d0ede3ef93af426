// A group on one host: UNIX sockets in a directory of this user, and no TCP at all.
#include "base/knobs.hpp"
#include "base/try.hpp"
#include "bootstrap/failure_notice.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/left_behind.hpp"
#include "bootstrap/meeting_place.hpp"
#include "bootstrap/private_directory.hpp"
#include "bootstrap/rendezvous.hpp"

namespace tutti {
namespace {

Result<std::string> base_directory(const JoinRequest& request) {
  if (!request.options.runtime_directory.empty()) return request.options.runtime_directory;
  return runtime_directory(Knobs::process().text("TUTTI_RUNTIME_DIR"));
}

Rendezvous::Setup rendezvous_setup(const JoinRequest& request, const MeetingPlace& place) {
  Rendezvous::Setup setup;
  setup.sockets = request.options.sockets;
  setup.terms = {request.rank, request.size, request.id.secret(), 0, request.options.check_proofs};
  setup.place = place.directory();
  setup.check_user = true;
  setup.stranger_deadline = request.options.stranger_deadline;
  setup.called_off = request.options.called_off;
  setup.names = request.options.names;
  setup.told = [&place, rank = request.rank] { return place.word_for(rank); };
  setup.leave_word = [&place, create = request.options.create_directory](const auto& absent,
                                                                         const auto& failure) {
    place.leave_word(absent, failure, create);
  };
  return setup;
}

Result<Fd> listen(const JoinRequest& request, MeetingPlace& place) {
  const JoinOptions& options = request.options;
  TUTTI_TRY(options.sockets->reserve(descriptors_to_join(request.size)));
  if (request.rank + 1 == request.size) return Fd();  // nobody dials the last rank
  return place.listen(request.rank, options.create_directory, request.deadline);
}

// Every rank listens for those above it and dials those below it.
Status meet(const JoinRequest& request, MeetingPlace& place, Rendezvous& rendezvous) {
  for (int r = request.rank + 1; r < request.size; ++r) rendezvous.expect(r);
  for (int r = 0; r < request.rank; ++r) {
    TUTTI_ASSIGN(const SocketAddress address, place.address(r));
    rendezvous.dial(r, {address});
  }
  auto listener = listen(request, place);
  if (listener.status().code() == StatusCode::kResourceExhausted) {
    return rendezvous.fail_here(listener.status());
  }
  TUTTI_TRY(listener.status());
  rendezvous.listen_at(std::move(listener).value());
  TUTTI_TRY(rendezvous.run(request.deadline));
  rendezvous.close_listener();
  // Before this rank says who it is: once all have, no socket of any rank is left.
  place.close();
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_local(const JoinRequest& request) {
  TUTTI_ASSIGN(const std::string base, base_directory(request));
  if (request.rank == 0) remove_left_behind(*request.options.sockets, base, request.id.address());
  const std::string directory = base + "/" + request.id.address();
  MeetingPlace place(*request.options.sockets, directory, request.size);
  Rendezvous rendezvous(rendezvous_setup(request, place));
  const Status met = meet(request, place, rendezvous);
  if (request.options.strangers != nullptr) *request.options.strangers += rendezvous.strangers();
  auto group = met.is_ok() ? make_socket_group(request, rendezvous.take_connections())
                           : Result<std::unique_ptr<Bootstrap>>(met);
  // A rank that left a word may have been let in just before: its end alone says less.
  if (const auto word = group.is_ok() ? std::nullopt : place.word_for(request.rank)) {
    group = to_status(*word);
  }
  place.end(request.rank, group.status());
  return group;
}

}  // namespace tutti
