// What all ranks of a group must have alike, by name: so that the error where they do not says
// which rank has what. Ranks compare hashes first, and exchange this where those differ.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/knobs.hpp"
#include "bootstrap/rank_names.hpp"
#include "planning/table.hpp"
#include "tutti/communicator.hpp"

namespace tutti {

struct AgreedValue {
  std::string name;   // "TUTTI_STAGING_BYTES"
  std::string value;  // what is compared
  std::string where;  // a file it is from, for people; may differ
};

// Settings of group scope, tuning tables, and a communicator's options.
std::vector<AgreedValue> agreed_values(const Knobs& knobs, const TuningTable& table,
                                       const CommunicatorOptions& options);

Bytes encode(const std::vector<AgreedValue>& values);
// kMismatch where the bytes are none.
Result<std::vector<AgreedValue>> decode_agreed_values(ByteView bytes);

// "rank 1 has TUTTI_STAGING_BYTES=65536, rank 0 has 1048576", and so on for all that differs from
// rank 0's; empty where nothing does.
std::string differences(std::span<const std::vector<AgreedValue>> per_rank, const RankNames& names);

// "0.1.0" of TUTTI_VERSION.
std::string version_text(std::uint64_t version);

}  // namespace tutti
