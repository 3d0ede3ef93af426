// What somebody meant who typed a name that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tutti {

// The one of `known` that `text` was meant to be, whatever its case: letters are left out, swapped
// or mistyped, or only its beginning is given. Empty where none is that close.
std::string_view nearest(std::string_view text, std::span<const std::string_view> known);

// How an error about `text` goes on: "; did you mean 'bench'? Known are bench, tune", or without a
// guess "; known are bench, tune".
std::string alternatives(std::string_view text, std::span<const std::string_view> known);

}  // namespace tutti
