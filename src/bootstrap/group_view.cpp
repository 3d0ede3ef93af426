#include "bootstrap/group_view.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/guard.hpp"
#include "base/system_error.hpp"
#include "base/try.hpp"
#include "bootstrap/failure_notice.hpp"
#include "bootstrap/identity.hpp"
#include "bootstrap/join.hpp"

namespace tutti {
namespace {

// Every member derives the same id without a word; never the parent's, nor a sibling's.
std::uint64_t child_group_id(std::uint64_t parent, std::uint64_t split, int color) {
  Sha256 hash;
  hash.add(view_of("tutti split")).add(view_of(parent)).add(view_of(split)).add(view_of(color));
  return first_word(hash.finish());
}

using Descriptors = std::vector<std::vector<Fd>>;  // per rank

Status check_descriptors(const std::vector<std::vector<int>>& outgoing, std::size_t ranks) {
  if (outgoing.size() != ranks) {
    return {StatusCode::kInvalidArgument,
            fmt::format("descriptors for {} ranks were given in a group of {}", outgoing.size(),
                        ranks)};
  }
  for (std::size_t rank = 0; rank < outgoing.size(); ++rank) {
    if (outgoing[rank].size() > Bootstrap::kMaxDescriptors) {
      return {StatusCode::kInvalidArgument,
              fmt::format("{} descriptors for rank {}, at most {} fit into one call",
                          outgoing[rank].size(), rank, Bootstrap::kMaxDescriptors)};
    }
    for (const int fd : outgoing[rank]) {
      if (::fcntl(fd, F_GETFD) >= 0) continue;
      return {StatusCode::kInvalidArgument, fmt::format("{} is no open descriptor", fd)};
    }
  }
  return Status::ok();
}

Result<Descriptors> duplicate(const std::vector<std::vector<int>>& outgoing) {
  Descriptors copies(outgoing.size());
  for (std::size_t rank = 0; rank < outgoing.size(); ++rank) {
    for (const int fd : outgoing[rank]) {
      copies[rank].emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
      if (!copies[rank].back().valid())
        return system_failure("cannot duplicate a descriptor", errno);
    }
  }
  return copies;
}

// What came from every rank, or who has no descriptors left: first a rank that could send none,
// which all see, then this one.
Result<Descriptors> take_descriptors_of(std::vector<Message> messages, int self,
                                        const RankNames& names) {
  const int ranks = static_cast<int>(messages.size());
  for (int rank = 0; rank < ranks; ++rank) {
    if (messages[rank].payload->empty()) continue;
    TUTTI_ASSIGN(const GroupFailure failure, decode_failure(*messages[rank].payload, ranks));
    return to_status(failure).with_context(names.of(rank));
  }
  Descriptors incoming;
  incoming.reserve(messages.size());
  for (int rank = 0; rank < ranks; ++rank) {
    if (messages[rank].lost_descriptors) {
      return system_failure(
          fmt::format("{}: cannot take the descriptors of {}", names.of(self), names.of(rank)),
          EMFILE);
    }
    incoming.push_back(std::move(messages[rank].descriptors));
  }
  return incoming;
}

// Whether a rank can open the connections of the side group, and rank 0's place for it.
Bytes encode_readiness(const Status& ready, std::string_view place) {
  Bytes bytes(1, std::byte{ready.is_ok()});
  const Bytes rest = ready.is_ok() ? to_bytes(view_of(place))
                                   : encode_failure({-1, ready.code(), ready.message()});
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

Result<Bytes> decode_readiness(const Bytes& answer, int ranks) {
  if (answer.empty()) return Status(StatusCode::kMismatch, "it said nothing of its descriptors");
  const ByteView rest = ByteView(answer).subspan(1);
  if (answer.front() == std::byte{1}) return to_bytes(rest);
  TUTTI_ASSIGN(const GroupFailure failure, decode_failure(rest, ranks));
  return to_status(failure);
}

struct SplitVote {
  std::int32_t color = 0, key = 0;
};

}  // namespace

GroupView::GroupView(std::shared_ptr<Mesh> mesh, Members members)
    : mesh_(std::move(mesh)), members_(std::move(members)) {
  const auto at = std::find(members_.ranks.begin(), members_.ranks.end(), mesh_->rank());
  rank_ = static_cast<int>(at - members_.ranks.begin());
  mesh_->inbox().open(members_.group, members_.ranks, members_.names, members_.split_from);
}

GroupView::~GroupView() {
  if (mesh_->lost_in_fork()) {
    new std::shared_ptr<Mesh>(mesh_);  // kept for ever: only its owner may take it down
    static_cast<void>(side_.release());
    return;
  }
  guarded([&] { leave({}); });
  mesh_->inbox().close(members_.group);
}

Message GroupView::message(FrameKind kind) const {
  Message message;
  message.kind = kind;
  message.group = members_.group;
  message.sequence = sequence_;
  return message;
}

Result<std::vector<Message>> GroupView::finish(FrameKind kind, Deadline deadline) {
  auto messages = mesh_->inbox().receive({members_.group, sequence_, kind}, deadline);
  if (messages.is_ok()) {
    const std::vector<int> blocked = mesh_->flush(members_.ranks, deadline);
    if (!blocked.empty()) {
      broken_ = {StatusCode::kTimeout,
                 fmt::format("{} did not take what was sent to it in time: stopped, or overloaded",
                             names().of(blocked))};
    }
  } else {
    broken_ = messages.status();
  }
  TUTTI_TRY(broken_);
  return messages;
}

Result<std::vector<Bytes>> GroupView::all_gather(ByteView mine, Deadline deadline) {
  if (mine.size() > kMaxMessageBytes) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} bytes are too many for one all_gather, at most {} are possible",
                              mine.size(), kMaxMessageBytes));
  }
  TUTTI_TRY(broken_);
  ++sequence_;
  const auto payload = std::make_shared<const Bytes>(to_bytes(mine));
  for (const int member : members_.ranks) {
    Message part = message(FrameKind::kGather);
    part.payload = payload;
    mesh_->send(member, std::move(part));
  }
  TUTTI_ASSIGN(const auto messages, finish(FrameKind::kGather, deadline));
  std::vector<Bytes> parts;
  parts.reserve(messages.size());
  for (const Message& part : messages) parts.push_back(*part.payload);
  return parts;
}

Result<std::vector<std::vector<Fd>>> GroupView::exchange_descriptors(
    const std::vector<std::vector<int>>& outgoing, Deadline deadline) {
  TUTTI_TRY(broken_);
  TUTTI_TRY(check_descriptors(outgoing, members_.ranks.size()));
  if (!mesh_->carries_descriptors()) return exchange_beside(outgoing, deadline);
  ++sequence_;
  // Who has none left takes part all the same, so that all stay in step.
  auto copies = duplicate(outgoing);
  for (std::size_t rank = 0; rank < outgoing.size(); ++rank) {
    Message part = message(FrameKind::kDescriptors);
    if (copies.is_ok()) {
      part.descriptors = std::move((*copies)[rank]);
    } else {
      part = without_descriptors(part, copies.status());
    }
    mesh_->send(members_.ranks[rank], std::move(part));
  }
  TUTTI_ASSIGN(auto messages, finish(FrameKind::kDescriptors, deadline));
  return take_descriptors_of(std::move(messages), rank_, names());
}

bool GroupView::passes_descriptors() const {
  return mesh_->carries_descriptors() || all_can_meet(members_.identities);
}

// Rank 0 invents a meeting place and tells it over the connections there are. Nobody goes there
// unless all have the descriptors that it takes.
Result<Bytes> GroupView::agree_on_place(Deadline deadline) {
  Status ready = real_sockets().reserve(descriptors_to_join(size()));
  std::string place;
  if (rank_ == 0 && ready.is_ok()) {
    const auto id = GroupId::local();
    ready = id.status();
    if (id.is_ok()) place = id->address();
  }
  TUTTI_ASSIGN(const auto answers, all_gather(encode_readiness(ready, place), deadline));
  std::vector<Bytes> places;
  for (int rank = 0; rank < size(); ++rank) {
    auto answer = decode_readiness(answers[rank], size());
    TUTTI_TRY(answer.status().with_context(names().of(rank)));
    places.push_back(std::move(answer).value());
  }
  return places.front();
}

// Its secret is never sent: everyone derives it from the mesh's.
Status GroupView::open_side_group(ByteView address, Deadline deadline) {
  TUTTI_ASSIGN(const GroupId id,
               group_id_from(true, {reinterpret_cast<const char*>(address.data()), address.size()},
                             hmac_sha256(mesh_->secret(), address)));
  JoinOptions options;
  options.names = names();
  TUTTI_ASSIGN(side_, join_group_with(id, rank_, size(), deadline, options));
  return Status::ok();
}

Result<std::vector<std::vector<Fd>>> GroupView::exchange_beside(
    const std::vector<std::vector<int>>& outgoing, Deadline deadline) {
  if (!passes_descriptors()) {
    return Status(StatusCode::kUnsupported,
                  "descriptors cannot go from host to host, nor to a container with other folders "
                  "(TUTTI_RUNTIME_DIR can name one that all ranks see); split the group");
  }
  if (side_ == nullptr) {
    TUTTI_ASSIGN(const Bytes place, agree_on_place(deadline));
    const Status opened = open_side_group(place, deadline);
    if (!opened.is_ok()) {
      broken_ = opened.with_context("opening UNIX connections for descriptors");
      return broken_;
    }
  }
  auto incoming = side_->exchange_descriptors(outgoing, deadline);
  // Who lacks descriptors may have some later.
  if (incoming.status().code() != StatusCode::kResourceExhausted) broken_ = incoming.status();
  return incoming;
}

Result<std::unique_ptr<Bootstrap>> GroupView::split(int color, int key, Deadline deadline) {
  const SplitVote vote{color, key};
  TUTTI_ASSIGN(const auto votes, all_gather(view_of(vote), deadline));
  const std::uint64_t split = ++splits_;
  std::vector<std::tuple<int, int>> chosen;  // (key, rank of this group)
  for (int r = 0; r < size(); ++r) {
    if (votes[r].size() != sizeof(SplitVote)) {
      broken_ = {
          StatusCode::kMismatch,
          fmt::format("{} gave no colour and key: all ranks must call split", names().of(r))};
      return broken_;
    }
    const auto theirs = from_bytes<SplitVote>(votes[r]);
    if (theirs.color == color) chosen.emplace_back(theirs.key, r);
  }
  if (color < 0) return std::unique_ptr<Bootstrap>();
  std::sort(chosen.begin(), chosen.end());
  Members child{child_group_id(members_.group, split, color), {}, {}};
  std::vector<int> ranks;
  for (const auto& [their_key, r] : chosen) {
    ranks.push_back(r);
    child.ranks.push_back(members_.ranks[r]);
    child.identities.push_back(members_.identities[r]);
  }
  child.names = names().split(ranks);
  child.split_from = members_.group;
  return std::unique_ptr<Bootstrap>(std::make_unique<GroupView>(mesh_, std::move(child)));
}

Digest GroupView::prove(ByteView statement) const {
  Bytes text = to_bytes(view_of("tutti proof of a group"));
  for (const ByteView part : {view_of(members_.group), statement}) {
    text.insert(text.end(), part.begin(), part.end());
  }
  return hmac_sha256(mesh_->secret(), text);
}

void GroupView::found() {
  mesh_->inbox().found(members_.group);
  if (side_ != nullptr) side_->found();
}

void GroupView::set_failure_handler(FailureHandler handler) {
  mesh_->inbox().set_handler(members_.group, std::move(handler));
}

std::optional<GroupFailure> GroupView::first_failure() const {
  return mesh_->inbox().first_failure(members_.group);
}

void GroupView::announce_failure(const GroupFailure& failure) {
  Message notice;
  notice.kind = FrameKind::kFailure;
  notice.group = members_.group;
  notice.payload = std::make_shared<const Bytes>(encode_failure(failure));
  for (const int member : members_.ranks) {
    if (member == mesh_->rank()) continue;
    mesh_->send(member, {notice.kind, notice.group, notice.sequence, notice.payload, {}});
  }
  mesh_->inbox().fail(members_.group, failure);
}

void GroupView::set_leave_handler(LeaveHandler handler) {
  mesh_->inbox().set_leave_handler(members_.group, std::move(handler));
}

void GroupView::leave(std::string_view last) {
  if (mesh_->lost_in_fork() || left_.exchange(true)) return;
  mesh_->inbox().leave(members_.group);
  const auto words = std::make_shared<const Bytes>(encode_last_words(last));
  for (const int member : members_.ranks) {
    if (member == mesh_->rank()) continue;
    mesh_->send(member, {FrameKind::kLeave, members_.group, 0, words, {}});
  }
  if (side_ != nullptr) side_->leave({});
}

int GroupView::departed() const { return mesh_->inbox().departed(members_.group); }

Result<std::unique_ptr<Bootstrap>> make_root_group(std::shared_ptr<Mesh> mesh, Deadline deadline,
                                                   const RankNames& names) {
  GroupView::Members members{kHelloGroup, {}, {}, names};
  for (int r = 0; r < mesh->size(); ++r) members.ranks.push_back(r);
  members.identities.resize(members.ranks.size());
  GroupView hello(mesh, members);
  const PeerIdentity mine = this_process();
  auto gathered = hello.all_gather(view_of(mine), deadline);
  // Some may still wait for ranks that will never come, and would take our end for the cause.
  const Status& status = gathered.status();
  if (!gathered.is_ok()) hello.announce_failure({-1, status.code(), status.message()});
  TUTTI_ASSIGN(const auto answers, std::move(gathered));
  std::vector<std::string> hosts;
  for (std::size_t r = 0; r < answers.size(); ++r) {
    if (answers[r].size() != sizeof(PeerIdentity)) {
      return Status(StatusCode::kMismatch,
                    fmt::format("rank {} said who it is in {} bytes instead of {}: all ranks must "
                                "run the same version of tutti",
                                r, answers[r].size(), sizeof(PeerIdentity)));
    }
    members.identities[r] = from_bytes<PeerIdentity>(answers[r]);
    members.identities[r].host.back() = '\0';  // whatever has come, it is read as text
    hosts.emplace_back(members.identities[r].host.data());
  }
  members.names.set_hosts(std::move(hosts));
  members.group = kHelloGroup + 1;
  return std::unique_ptr<Bootstrap>(
      std::make_unique<GroupView>(std::move(mesh), std::move(members)));
}

}  // namespace tutti
