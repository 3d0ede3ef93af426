// What values of options look like: the type that a help page shows after an option.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti::cli {

// Values of several words separated by commas have a type that ends like this: "N[,...]".
inline constexpr std::string_view kListEnd = "[,...]";

// The type of an argument that is another command line.
inline constexpr std::string_view kProgramType = "PROGRAM [ARGUMENT...]";

// The type of the name of a command.
inline constexpr std::string_view kCommandType = "COMMAND";

// The words that a value can be: of "on|off" these two, of "DTYPE" the names of all data types.
// Empty where a value can be anything: "N", "BYTES", "FILE".
std::vector<std::string> words_of_type(std::string_view type);

}  // namespace tutti::cli
