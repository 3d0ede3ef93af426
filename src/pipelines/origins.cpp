#include "pipelines/origins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "pipelines/print.hpp"

namespace tutti::pipelines {

void OriginMap::assign(const Rows& rows, std::size_t origin) {
  if (rows.count() == 0) return;
  auto next = ranges_.lower_bound(rows.begin);
  if (next != ranges_.begin()) {
    Range& before = std::prev(next)->second;
    if (before.rows.end > rows.end) {
      const Range rest{{rows.end, before.rows.end}, before.origin + rows.end - before.rows.begin};
      next = ranges_.emplace(rows.end, rest).first;
    }
    before.rows.end = std::min(before.rows.end, rows.begin);
  }
  while (next != ranges_.end() && next->first < rows.end) {
    const Range old = next->second;
    next = ranges_.erase(next);
    if (old.rows.end <= rows.end) continue;
    ranges_[rows.end] = {{rows.end, old.rows.end}, old.origin + rows.end - old.rows.begin};
    break;
  }
  ranges_[rows.begin] = {rows, origin};
}

std::vector<OriginMap::Range> OriginMap::find(const Rows& rows) const {
  std::vector<Range> found;
  auto range = ranges_.upper_bound(rows.begin);
  if (range != ranges_.begin()) --range;
  for (; range != ranges_.end() && range->first < rows.end; ++range) {
    const auto& [all, origin] = range->second;
    const Rows common{std::max(all.begin, rows.begin), std::min(all.end, rows.end)};
    if (common.begin >= common.end) continue;
    found.push_back({common, origin + common.begin - all.begin});
  }
  return found;
}

void Origins::begin_call(int rank) {
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    const auto id = static_cast<BufferId>(i);
    of(rank, id).forget();
    const Buffer& buffer = program_.buffers[i];
    if (buffer.role != Role::kInput || buffer.part != Part::kShard) continue;
    const Rows shard = shard_rows(program_.description, rank);
    of(rank, id).assign({0, shard.count()}, shard.begin);
  }
}

std::string Origins::move(const Move& move) {
  for (std::size_t i = 0; i < move.from.rows.size(); ++i) {
    const Rows& from = move.from.rows[i];
    std::size_t known = 0;
    for (const auto& [rows, origin] : of(move.from.rank, move.from.buffer).find(from)) {
      const std::size_t to = move.to.rows[i].begin + rows.begin - from.begin;
      of(move.to.rank, move.to.buffer).assign({to, to + rows.count()}, origin);
      known += rows.count();
    }
    if (known == from.count()) continue;
    return fmt::format("moves {}, which holds other rows than A's",
                       place_text(program_, move.from));
  }
  return {};
}

std::string Origins::multiply(const Multiply& multiply) const {
  return require(multiply.a, multiply.c, "multiplied into row");
}

std::string Origins::end_call(int rank) const {
  for (std::size_t id = 0; id < program_.buffers.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    const bool product = std::ranges::any_of(
        program_.products, [&](const Product& of) { return of.c == static_cast<BufferId>(id); });
    if (buffer.role != Role::kOutput || product) continue;
    const std::vector<Rows> all = {{0, buffer.rows}};
    const Place place{rank, static_cast<BufferId>(id), all};
    if (std::string fault = require(place, all, "given to the caller as row"); !fault.empty()) {
      return fault;
    }
  }
  return {};
}

std::string Origins::require(const Place& place, const std::vector<Rows>& expected,
                             std::string_view what) const {
  const auto map = maps_.find({place.rank, place.buffer});
  for (std::size_t i = 0; i < place.rows.size(); ++i) {
    const Rows& rows = place.rows[i];
    std::size_t known = 0;
    const auto ranges =
        map == maps_.end() ? std::vector<OriginMap::Range>() : map->second.find(rows);
    for (const auto& [part, origin] : ranges) {
      const std::size_t wanted = expected[i].begin + part.begin - rows.begin;
      known += part.count();
      if (origin == wanted) continue;
      return fmt::format("row {} of A, in {}, is {} {}", origin, place_text(program_, place), what,
                         wanted);
    }
    if (known == rows.count()) continue;
    return place_text(program_, place) + " holds other rows than A's";
  }
  return {};
}

}  // namespace tutti::pipelines
