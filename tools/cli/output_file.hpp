// Files that are written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "tutti/status.hpp"

namespace tutti::cli {

// Whether write_file_atomically() can be expected to succeed, without changing what is there.
// kInvalidArgument says what is in the way.
Status check_writable(const std::string& path);

// Readers of `path` see what was there before or all of `text`: a temporary file beside it is
// written, synchronised and renamed, with the owner and the mode of what was there. Symlinks are
// followed; devices and FIFOs are written to, and so is a file of an owner whom only its owner
// could give the new one. On failure nothing is left behind.
Status write_file_atomically(const std::string& path, std::string_view text);

// kInvalidArgument where there is none; else as read_text_file().
Result<std::string> read_file(const std::string& path);

}  // namespace tutti::cli
