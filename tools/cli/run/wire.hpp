// What the launcher of `tutti run --hosts` and its agents tell each other over ssh: first the agent
// prints kAgentHello, then both send frames. Whatever a login prints comes before the hello.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "run/environment.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

// Another number for another wire.
inline constexpr std::string_view kAgentHello = "\ntutti agent 1\n";

struct StartRanks {
  RankPlace first;                    // of the first rank there
  std::vector<std::string> settings;  // "NAME=value", of all ranks; the secret is among them
  std::string folder, program;
  std::vector<std::string> arguments;
  int grace_seconds = 0;  // between SIGTERM and SIGKILL, if the launcher is lost
  bool bind = true, input = false;
};
struct SignalRanks {
  int number = 0;  // SIGINT, SIGTERM or SIGKILL
};
struct RankInput {
  std::string bytes;  // for rank 0; none: the end
};
using ToAgent = std::variant<StartRanks, SignalRanks, RankInput>;

struct AgentReady {
  int port = 0, root_port = 0;  // free on this host, and kept so
};
struct AgentFailed {
  std::string why;  // no rank is left
};
struct RankPrinted {
  int rank = 0, stream = 0;
  std::string bytes;
};
struct RankEnded {
  int rank = 0, wait_status = 0;
};
struct InputWanted {};  // all that came before has been read
using FromAgent = std::variant<AgentReady, AgentFailed, RankPrinted, RankEnded, InputWanted>;

std::string encode(ToAgent message);
std::string encode(FromAgent message);

// kMismatch where the bytes are no such message. Lengths are checked before they are believed, and
// numbers are in their ranges; whether a rank is one of this host is for the caller to check.
Result<ToAgent> decode_to_agent(std::string_view bytes);
Result<FromAgent> decode_from_agent(std::string_view bytes);

}  // namespace tutti::cli
