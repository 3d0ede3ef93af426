// Files that are written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "tutti/status.hpp"

namespace tutti::cli {

// Whether write_file_atomically() can be expected to succeed, without changing what is there.
// kInvalidArgument says what is in the way.
Status check_writable(const std::string& path);

// Replaces a file atomically: a temporary file next to it is written, synchronised and renamed,
// with the owner and mode of the old file. Readers see the old text or all of `text`; on failure
// the old file stays. Symlinks are followed. Devices and FIFOs are written to, not replaced. If
// this user may not give the new file to the owner of the old one, the old one is overwritten in
// place.
Status write_file_atomically(const std::string& path, std::string_view text);

// kInvalidArgument where there is none; else as read_text_file().
Result<std::string> read_file(const std::string& path);

}  // namespace tutti::cli
