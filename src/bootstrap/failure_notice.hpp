// A failure, and a member's last words, as they travel between ranks.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "bootstrap/bootstrap.hpp"

namespace tutti {

// The text is cut to 4 KiB.
Bytes encode_failure(const GroupFailure& failure);
// kMismatch where the bytes cannot be one, or its rank is none of `group_size`.
Result<GroupFailure> decode_failure(ByteView bytes, int group_size);

// Cut likewise.
Bytes encode_last_words(std::string_view last);
Result<std::string> decode_last_words(ByteView bytes);

Status to_status(const GroupFailure& failure);

}  // namespace tutti
