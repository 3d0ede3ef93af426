#include "bench/all_gather_matmul/mover_options.hpp"

#include "base/try.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr const char *kMoverOption = "--mover", *kOrderOption = "--inter-stream-order";

}  // namespace

void add_mover_options(CLI::App& command, MoverTexts& texts) {
  command
      .add_option(kMoverOption, texts.mover,
                  "Of pipelines on GPUs: what moves the data; a kernel waits for free SMs")
      ->type_name("copy_engine|kernel")
      ->default_str("copy_engine");
  command
      .add_option(kOrderOption, texts.inter_stream_order,
                  "Of pipelines: streams begin their first transfers in turn")
      ->type_name("on|off")
      ->default_str("off");
}

Result<MoverOptions> read_mover_options(const MoverTexts& texts) {
  MoverOptions options;
  if (!texts.mover.empty()) {
    const auto mover = pipelines::parse_mover(texts.mover);
    if (!mover.is_ok()) return mover.status().with_context(kMoverOption);
    options.mover = *mover;
  }
  if (!texts.inter_stream_order.empty()) {
    TUTTI_ASSIGN(options.inter_stream_order, parse_switch(kOrderOption, texts.inter_stream_order));
  }
  return options;
}

void add_mover_words(std::vector<std::string>& words, const MoverOptions& options) {
  words.insert(words.end(), {kMoverOption, std::string(to_string(options.mover)), kOrderOption,
                             options.inter_stream_order ? "on" : "off"});
}

}  // namespace tutti::cli
