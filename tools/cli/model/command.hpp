// `tutti model`.
#pragma once

#include <string>

#include "model/options.hpp"

namespace tutti::cli {

int run_model(const ModelArguments& arguments, const std::string& command_line);

}  // namespace tutti::cli
