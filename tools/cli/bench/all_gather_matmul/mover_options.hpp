// The options of pipelines that a person chooses in `tutti bench` and `tutti tune` alike.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "pipelines/description.hpp"
#include "tutti/status.hpp"

namespace tutti::cli {

// As typed; empty: not given.
struct MoverTexts {
  std::string mover, inter_stream_order;
};

struct MoverOptions {
  pipelines::Mover mover = pipelines::Mover::kCopyEngine;
  bool inter_stream_order = false;
};

// `texts` must outlive the parsing.
void add_mover_options(CLI::App& command, MoverTexts& texts);
// kInvalidArgument names the option.
Result<MoverOptions> read_mover_options(const MoverTexts& texts);
// What asks for the same.
void add_mover_words(std::vector<std::string>& words, const MoverOptions& options);

}  // namespace tutti::cli
