// The executors that every group has: those of the library, and a caller's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executors/executor.hpp"
#include "executors/peer_services.hpp"

namespace tutti {

class NcclDriver;
class NetworkDriver;
class TuningTable;
struct ProtocolMutation;

// A caller's own kind, for each group of this process: its name, what makes one for a group
// (collective; it may ask the other ranks), and the algorithms that run on it, which name it.
struct ExecutorKind {
  std::string_view name;
  Result<std::unique_ptr<Executor>> (*make)(GroupServices& group) = nullptr;
  std::span<const Algorithm> algorithms;
};
// Before the process makes a group or asks for the catalogue.
void register_executor(const ExecutorKind& kind);

// What the library's are made with; all outlives them.
struct ExecutorParts {
  NcclDriver* nccl = nullptr;  // null: not loadable
  NetworkDriver* network = nullptr;
  const TuningTable& table;
  const std::string& tune;  // the text of TUTTI_TUNE
  bool deterministic = false;
  const ProtocolMutation* mutation = nullptr;  // tests': what bodies on the host leave out
  std::uint64_t* waits_for = nullptr;          // where these say for whom they wait
};

struct Executors {
  std::vector<std::unique_ptr<Executor>> all;
  PeerServices* peers;  // of one of them
};
Result<Executors> make_executors(GroupServices& group, const ExecutorParts& parts);

}  // namespace tutti
