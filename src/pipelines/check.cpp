#include "pipelines/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/try.hpp"
#include "pipelines/order.hpp"
#include "pipelines/print.hpp"
#include "pipelines/serial.hpp"

namespace tutti::pipelines {
namespace {

Status invalid_program(std::string text) { return {StatusCode::kInvalidArgument, std::move(text)}; }

struct Access {
  Event event;
  Position position;
};

// The accesses to rows that all slices have in common.
struct Cell {
  std::size_t begin = 0;
  Access write = {};               // the last one
  std::vector<Access> reads = {};  // since then
};

// Who accessed which rows of all buffers of all ranks, and whether that was in order.
class AccessLog {
 public:
  AccessLog(const Program& program, std::span<const std::vector<Instruction>> ranks)
      : program_(program) {
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
      for (std::size_t id = 0; id < program.buffers.size(); ++id) {
        const auto buffer = static_cast<BufferId>(id);
        std::set<std::size_t> cuts = cuts_of(ranks, {rank, buffer, {}});
        auto& cells = cells_[{rank, buffer}];
        for (const std::size_t cut : cuts) cells.push_back({cut});
      }
    }
  }

  Status read(const Place& place, const Moment& moment) {
    return each_cell(place, [&](Cell& cell) -> Status {
      const Access& write = cell.write;
      if (write.position.count == 0 || write.event.call < moment.event.call) {
        return invalid_program(fmt::format("{}: reads {}, which nobody has written in this call",
                                           event_text(moment.event), text(place)));
      }
      TUTTI_TRY(require_order(write, moment, place, "reads"));
      cell.reads.push_back({moment.event, moment.position});
      return Status::ok();
    });
  }

  Status write(const Place& place, const Moment& moment) {
    return each_cell(place, [&](Cell& cell) -> Status {
      TUTTI_TRY(require_order(cell.write, moment, place, "writes"));
      for (const Access& read : cell.reads) {
        TUTTI_TRY(require_order(read, moment, place, "writes"));
      }
      cell.write = {moment.event, moment.position};
      cell.reads.clear();
      return Status::ok();
    });
  }

  // All rows of a buffer.
  Place whole(int rank, BufferId buffer) const {
    const Buffer& all = program_.buffers[static_cast<std::size_t>(buffer)];
    const std::size_t rows =
        all.part == Part::kShard ? shard_rows(program_.description, rank).count() : all.rows;
    return {rank, buffer, rows == 0 ? std::vector<Rows>() : std::vector<Rows>{{0, rows}}};
  }

 private:
  // Where slices of a buffer begin.
  std::set<std::size_t> cuts_of(std::span<const std::vector<Instruction>> ranks,
                                const Place& of) const {
    std::set<std::size_t> cuts = {0};
    const auto add = [&](const Place& place) {
      if (place.rank != of.rank || place.buffer != of.buffer) return;
      for (const Rows& rows : place.rows) cuts.insert({rows.begin, rows.end});
    };
    for (const auto& list : ranks) {
      for (const Instruction& instruction : list) {
        if (const auto* move = std::get_if<Move>(&instruction.action)) {
          add(move->from);
          add(move->to);
        } else if (const auto* multiply = std::get_if<Multiply>(&instruction.action)) {
          add(multiply->a);
          for (const Product& product : program_.products) {
            add({multiply->a.rank, product.c, multiply->c});
          }
        }
      }
    }
    return cuts;
  }

  template <class Visit>
  Status each_cell(const Place& place, const Visit& visit) {
    for (const Rows& rows : place.rows) {
      for (Cell& cell : cells_.at({place.rank, place.buffer})) {
        if (cell.begin < rows.begin || cell.begin >= rows.end) continue;
        TUTTI_TRY(visit(cell));
      }
    }
    return Status::ok();
  }

  Status require_order(const Access& earlier, const Moment& moment, const Place& place,
                       std::string_view verb) const {
    if (moment.before.includes(earlier.position)) return Status::ok();
    return invalid_program(fmt::format("race: {}: {} {} without waiting for {}",
                                       event_text(moment.event), verb, text(place),
                                       event_text(earlier.event)));
  }

  std::string text(const Place& place) const { return place_text(program_, place); }

  const Program& program_;
  std::map<std::pair<int, BufferId>, std::vector<Cell>> cells_;
};

// What one event reads and writes.
class AccessCheck {
 public:
  AccessCheck(const Program& program, std::span<const std::vector<Instruction>> ranks)
      : program_(program), log_(program, ranks) {}

  Status visit(const Moment& moment) {
    const Event& event = moment.event;
    if (event.kind != Event::Kind::kInstruction) return visit_caller(moment);
    if (const auto* move = std::get_if<Move>(&event.instruction->action)) {
      TUTTI_TRY(log_.read(move->from, moment));
      return log_.write(move->to, moment);
    }
    const auto* multiply = std::get_if<Multiply>(&event.instruction->action);
    return multiply == nullptr ? Status::ok() : visit_matmul(*multiply, moment);
  }

 private:
  // At the end the caller reads the outputs, and may then use all buffers for something else.
  Status visit_caller(const Moment& moment) {
    const bool begins = moment.event.kind == Event::Kind::kBegin;
    for (std::size_t id = 0; id < program_.buffers.size(); ++id) {
      const Place place = log_.whole(moment.event.rank, static_cast<BufferId>(id));
      const Role role = program_.buffers[id].role;
      if (!begins && role == Role::kOutput) TUTTI_TRY(log_.read(place, moment));
      if (!begins || role == Role::kInput) TUTTI_TRY(log_.write(place, moment));
    }
    return Status::ok();
  }

  Status visit_matmul(const Multiply& multiply, const Moment& moment) {
    if (multiply.a.rows.empty()) return Status::ok();
    const int rank = multiply.a.rank;
    TUTTI_TRY(log_.read(multiply.a, moment));
    for (const Product& product : program_.products) {
      TUTTI_TRY(log_.read(log_.whole(rank, product.b), moment));
      if (product.bias != kNoBuffer) TUTTI_TRY(log_.read(log_.whole(rank, product.bias), moment));
      TUTTI_TRY(log_.write({rank, product.c, multiply.c}, moment));
    }
    return Status::ok();
  }

  const Program& program_;
  AccessLog log_;
};

// Which buffers exist, and which peers know.
struct Setup {
  std::set<BufferId> usable, shared;
};

Result<Setup> read_setup(const Program& program) {
  Setup setup;
  for (std::size_t id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].role != Role::kWorkspace) setup.usable.insert(static_cast<int>(id));
  }
  for (const Node& node : program.setup) {
    if (const auto* allocate = std::get_if<Allocate>(&node.value)) {
      setup.usable.insert(allocate->buffer);
    } else if (const auto* share = std::get_if<ShareHandles>(&node.value)) {
      for (const BufferId buffer : share->buffers) {
        if (!setup.usable.contains(buffer)) {
          return invalid_program(node_text(program, node, {}) + " before the memory is allocated");
        }
        setup.shared.insert(buffer);
      }
    } else {
      return invalid_program(node_text(program, node, {}) + " cannot be part of the setup");
    }
  }
  return setup;
}

Status check_memory(const Program& program, const Setup& setup, int rank,
                    const Instruction& instruction) {
  const auto check_place = [&](const Place& place) -> Status {
    const std::string where =
        fmt::format("rank {}: {} uses {}", rank, instruction.node, place_text(program, place));
    if (!setup.usable.contains(place.buffer)) return invalid_program(where + " before Allocate");
    if (place.rank != rank && !setup.shared.contains(place.buffer)) {
      return invalid_program(where + " before ShareHandles");
    }
    return Status::ok();
  };
  if (const auto* move = std::get_if<Move>(&instruction.action)) {
    TUTTI_TRY(check_place(move->from));
    return check_place(move->to);
  }
  const auto* multiply = std::get_if<Multiply>(&instruction.action);
  return multiply == nullptr ? Status::ok() : check_place(multiply->a);
}

}  // namespace

Status check(const Program& program, std::span<const std::vector<Instruction>> ranks) {
  TUTTI_ASSIGN(const Setup setup, read_setup(program));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Instruction& instruction : ranks[rank]) {
      TUTTI_TRY(check_memory(program, setup, static_cast<int>(rank), instruction));
    }
  }
  constexpr int kCalls = 2;
  AccessCheck accesses(program, ranks);
  TUTTI_TRY(execute(ranks, kCalls, [&](const Moment& moment) { return accesses.visit(moment); }));
  return execute_serially(ranks, kCalls);
}

Result<std::vector<std::vector<Instruction>>> checked(const Program& program) {
  TUTTI_ASSIGN(auto ranks, lower(program));
  TUTTI_TRY(check(program, ranks));
  return ranks;
}

}  // namespace tutti::pipelines
