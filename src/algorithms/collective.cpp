#include "algorithms/collective.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/nearest.hpp"

namespace tutti {
namespace {

struct Shape {
  std::string_view name;
  enum Side : std::uint8_t { kWhole, kPiece } input = kWhole, output = kWhole;
  bool reduces = false;
  bool pieces = false;
  bool in_place = false;
  RootSide root = RootSide::kNone;
  bool pairwise = false;
  bool uneven = false;
};

// In the order of the enumeration.
constexpr Shape kShapes[] = {
    {.name = "all_reduce", .reduces = true, .in_place = true},
    {.name = "all_reduce_residual_rms_norm", .reduces = true, .in_place = true},
    {.name = "all_gather", .input = Shape::kPiece, .pieces = true, .in_place = true},
    {.name = "reduce_scatter",
     .output = Shape::kPiece,
     .reduces = true,
     .pieces = true,
     .in_place = true},
    {.name = "all_to_all", .pieces = true},
    {.name = "broadcast", .root = RootSide::kInput},
    {.name = "reduce", .reduces = true, .root = RootSide::kOutput},
    {.name = "gather", .input = Shape::kPiece, .pieces = true, .root = RootSide::kOutput},
    {.name = "scatter", .output = Shape::kPiece, .pieces = true, .root = RootSide::kInput},
    {.name = "barrier"},
    {.name = "send_recv", .pairwise = true},
    {.name = "all_gather_v",
     .input = Shape::kPiece,
     .pieces = true,
     .in_place = true,
     .uneven = true},
    {.name = "reduce_scatter_v",
     .output = Shape::kPiece,
     .reduces = true,
     .pieces = true,
     .in_place = true,
     .uneven = true},
    {.name = "all_to_all_v", .pieces = true, .uneven = true},
};
static_assert(std::size(kShapes) == std::size(kAllCollectives));

const Shape& shape_of(Collective collective) {
  return kShapes[static_cast<std::size_t>(collective)];
}

}  // namespace

std::string_view to_string(Collective collective) { return shape_of(collective).name; }

Result<Collective> parse_collective(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Collective collective : kAllCollectives) {
    if (to_string(collective) == name) return collective;
    known.push_back(to_string(collective));
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("unknown collective '{}'{}", name, alternatives(name, known)));
}

bool is_pairwise(Collective collective) { return shape_of(collective).pairwise; }
bool reduces(Collective collective) { return shape_of(collective).reduces; }
bool has_pieces(Collective collective) { return shape_of(collective).pieces; }
bool input_is_piece(Collective collective) { return shape_of(collective).input == Shape::kPiece; }
bool is_uneven(Collective collective) { return shape_of(collective).uneven; }
bool runs_in_place(Collective collective) { return shape_of(collective).in_place; }
RootSide root_side(Collective collective) { return shape_of(collective).root; }
bool has_root(Collective collective) { return root_side(collective) != RootSide::kNone; }

DataType moved_as(Collective collective, DataType dtype) {
  return reduces(collective) ? dtype : DataType::kUint8;
}

std::string elements_text(Collective collective, DataType dtype, OpKind op) {
  if (!reduces(collective)) return std::string(to_string(dtype));
  return fmt::format("{}, {}", to_string(dtype), to_string(op));
}

Sides sides_of(Collective collective, std::size_t larger, int rank, int ranks) {
  const Shape& shape = shape_of(collective);
  const std::size_t piece = larger / static_cast<std::size_t>(ranks);
  const auto side = [&](Shape::Side what) { return what == Shape::kPiece ? piece : larger; };
  const bool differ = shape.input != shape.output;
  return {side(shape.input), side(shape.output),
          differ ? piece * static_cast<std::size_t>(rank) : 0};
}

}  // namespace tutti
