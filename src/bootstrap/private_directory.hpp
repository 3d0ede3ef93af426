// Directories and files that no other user can read, replace or invent.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tutti/status.hpp"

namespace tutti {

// Where ranks of one host meet: `configured` (TUTTI_RUNTIME_DIR) if not empty, else
// $XDG_RUNTIME_DIR where it is a private directory of this user, else /tmp. kInvalidArgument where
// `configured` is no directory, kPermission where it is not this user's with mode 0700.
Result<std::string> runtime_directory(std::string_view configured);

// Makes `path` with mode 0700, or takes the one that is there if it is a directory of this user
// that nobody else can enter; else kPermission. kUnavailable where its parent is missing.
Status make_private_directory(const std::string& path);
// The same for one that must be there already (kUnavailable).
Status check_private_directory(const std::string& path);

// Files of mode 0600 that belong to this user. Nothing where there is none; kPermission where it is
// another's, can be read by others, or is no regular file.
Result<std::optional<std::string>> read_private_file(const std::string& path,
                                                     std::size_t max_bytes);
// Appears whole or not at all, in place of an earlier one.
Status write_private_file(const std::string& path, std::string_view text);

// A short text as the target of a symbolic link, which takes no descriptor. Best effort.
void write_word(const std::string& path, std::string text);
// Nothing where there is none.
std::optional<std::string> read_word(const std::string& path);

// Without complaint where they are not there (or not empty).
void remove_file(const std::string& path);
void remove_directory(const std::string& path);
// False where there is one already that is not empty.
bool move_directory(const std::string& from, const std::string& to);

}  // namespace tutti
