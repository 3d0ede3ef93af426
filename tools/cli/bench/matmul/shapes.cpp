#include "bench/matmul/shapes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/names.hpp"
#include "base/try.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kMostShapes = 4096;

struct Weights {
  std::size_t n, k;
};

enum class Preset : std::uint8_t { kRecipes, kLlama8B, kLlama70B, kLlama405B };
constexpr std::array<Name<Preset>, 4> kPresets = {{{Preset::kRecipes, "recipes"},
                                                   {Preset::kLlama8B, "llama3-8b"},
                                                   {Preset::kLlama70B, "llama3-70b"},
                                                   {Preset::kLlama405B, "llama3-405b"}}};

// Table 3 of "The Llama 3 Herd of Models" (arXiv:2407.21783); all have 8 heads for keys and values,
// and heads of 128.
struct Llama {
  std::size_t hidden, feed_forward, heads;
};
constexpr Llama llama_of(Preset preset) {
  if (preset == Preset::kLlama8B) return {4096, 14336, 32};
  if (preset == Preset::kLlama70B) return {8192, 28672, 64};
  return {16384, 53248, 128};
}

// The matmuls of a layer as one of 8 ranks sees them: query, key and value at once; the output of
// the attention; gate and up at once; down.
std::vector<Weights> llama_weights(const Llama& model) {
  constexpr std::size_t kRanks = 8, kHeadsOfKeys = 8, kHead = 128;
  return {{(model.heads + 2 * kHeadsOfKeys) * kHead / kRanks, model.hidden},
          {model.hidden, model.heads * kHead / kRanks},
          {2 * model.feed_forward / kRanks, model.hidden},
          {model.hidden, model.feed_forward / kRanks}};
}

using Lines = std::vector<std::size_t>;  // values of m

void add_shapes(std::vector<MatmulExtents>& shapes, const Lines& lines,
                const std::vector<Weights>& weights) {
  for (const auto& [n, k] : weights) {
    for (const std::size_t m : lines) {
      const MatmulExtents extents{.m = m, .n = n, .k = k};
      if (std::ranges::count(shapes, extents) == 0) shapes.push_back(extents);
    }
  }
}

Result<Lines> read_extents(std::string_view option, std::string_view text) {
  Lines lines;
  for (const std::string_view part : split(text)) {
    TUTTI_ASSIGN(const int extent, parse_int(option, part, {1, kMostExtent}));
    lines.push_back(static_cast<std::size_t>(extent));
  }
  return lines;
}

Result<std::vector<Weights>> read_weights(std::string_view text) {
  std::vector<Weights> weights;
  for (const std::string_view part : split(text)) {
    const std::size_t cross = part.find('x');
    if (cross == std::string_view::npos) {
      return wrong(fmt::format("--weights: '{}' is not NxK, such as 1792x4096", part));
    }
    TUTTI_ASSIGN(const int n, parse_int("--weights", part.substr(0, cross), {1, kMostExtent}));
    TUTTI_ASSIGN(const int k, parse_int("--weights", part.substr(cross + 1), {1, kMostExtent}));
    weights.push_back({static_cast<std::size_t>(n), static_cast<std::size_t>(k)});
  }
  return weights;
}

// `lines`: empty, those of the preset.
void add_preset(std::vector<MatmulExtents>& shapes, Preset preset, const Lines& lines) {
  if (preset != Preset::kRecipes) {
    const Lines usual = {1, 64, 512, 4096, 8192};
    return add_shapes(shapes, lines.empty() ? usual : lines, llama_weights(llama_of(preset)));
  }
  const Lines usual = {4096, 8192, 16384};
  add_shapes(shapes, lines.empty() ? usual : lines, {{1792, 4096}, {3584, 8192}, {6656, 16384}});
  if (lines.empty()) add_shapes(shapes, {32768}, {{8192, 16384}});
}

Status read_presets(std::vector<MatmulExtents>& shapes, const MatmulShapeTexts& texts) {
  if (!texts.n.empty() || !texts.k.empty() || !texts.weights.empty()) {
    return wrong("--preset has its own --n, --k and --weights; only --m can be given with it");
  }
  Lines lines;
  if (!texts.m.empty()) {
    TUTTI_ASSIGN(lines, read_extents("--m", texts.m));
  }
  for (const std::string_view part : split(texts.preset)) {
    TUTTI_ASSIGN(const Preset preset, parse_name<Preset>(kPresets, {}, "--preset", part));
    add_preset(shapes, preset, lines);
  }
  return Status::ok();
}

Status read_lists(std::vector<MatmulExtents>& shapes, const MatmulShapeTexts& texts,
                  int otherwise) {
  const auto list = [otherwise](std::string_view option, std::string_view text) -> Result<Lines> {
    if (text.empty()) return Lines{static_cast<std::size_t>(otherwise)};
    return read_extents(option, text);
  };
  TUTTI_ASSIGN(const Lines lines, list("--m", texts.m));
  if (!texts.weights.empty()) {
    if (!texts.n.empty() || !texts.k.empty()) {
      return wrong("--weights gives n and k; leave --n and --k out");
    }
    TUTTI_ASSIGN(const std::vector<Weights> weights, read_weights(texts.weights));
    add_shapes(shapes, lines, weights);
    return Status::ok();
  }
  TUTTI_ASSIGN(const Lines columns, list("--n", texts.n));
  TUTTI_ASSIGN(const Lines depths, list("--k", texts.k));
  if (lines.size() * columns.size() * depths.size() > kMostShapes) {
    return wrong(fmt::format("--m, --n and --k multiply to more than {} shapes", kMostShapes));
  }
  for (const std::size_t n : columns) {
    for (const std::size_t k : depths) add_shapes(shapes, lines, {{n, k}});
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<MatmulExtents>> read_matmul_shapes(const MatmulShapeTexts& texts,
                                                      int otherwise) {
  std::vector<MatmulExtents> shapes;
  TUTTI_TRY(texts.preset.empty() ? read_lists(shapes, texts, otherwise)
                                 : read_presets(shapes, texts));
  return shapes;
}

}  // namespace tutti::cli
