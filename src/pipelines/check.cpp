#include "pipelines/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/try.hpp"
#include "pipelines/order.hpp"
#include "pipelines/origins.hpp"
#include "pipelines/print.hpp"
#include "pipelines/serial.hpp"
#include "pipelines/validate.hpp"

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
    std::map<Key, std::set<std::size_t>> cuts;  // where slices of a buffer begin or end
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
      for (std::size_t id = 0; id < program.buffers.size(); ++id) {
        cuts[{rank, static_cast<BufferId>(id)}] = {0};
      }
    }
    const auto cut = [&](const Place& place) {
      auto& of_buffer = cuts.at({place.rank, place.buffer});
      for (const Rows& rows : place.rows) of_buffer.insert({rows.begin, rows.end});
    };
    for (const auto& list : ranks) {
      for (const Instruction& instruction : list) {
        if (const auto* move = std::get_if<Move>(&instruction.action)) {
          cut(move->from);
          cut(move->to);
        } else if (const auto* multiply = std::get_if<Multiply>(&instruction.action)) {
          cut(multiply->a);
          for (const Product& product : program.products) {
            cut({multiply->a.rank, product.c, multiply->c});
          }
        }
      }
    }
    for (const auto& [key, begins] : cuts) {
      for (const std::size_t begin : begins) cells_[key].push_back({begin});
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

  // As write(), of rows that a call writes only once.
  Status write_once(const Place& place, const Moment& moment) {
    TUTTI_TRY(each_cell(place, [&](const Cell& cell) -> Status {
      const Event& write = cell.write.event;
      if (write.instruction == nullptr || write.call < moment.event.call) return Status::ok();
      return invalid_program(fmt::format("{}: writes {} again, after {}", event_text(moment.event),
                                         text(place), event_text(write)));
    }));
    return write(place, moment);
  }

  // All rows of a buffer.
  Place whole(int rank, BufferId buffer) const {
    const std::size_t rows = rows_in(program_, rank, buffer);
    return {rank, buffer, rows == 0 ? std::vector<Rows>() : std::vector<Rows>{{0, rows}}};
  }

 private:
  using Key = std::pair<int, BufferId>;

  template <class Visit>
  Status each_cell(const Place& place, const Visit& visit) {
    for (const Rows& rows : place.rows) {
      std::vector<Cell>& cells = cells_.at({place.rank, place.buffer});
      auto cell = std::ranges::lower_bound(cells, rows.begin, {}, &Cell::begin);
      for (; cell != cells.end() && cell->begin < rows.end; ++cell) TUTTI_TRY(visit(*cell));
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
  std::map<Key, std::vector<Cell>> cells_;
};

// What one event reads and writes.
class AccessCheck {
 public:
  AccessCheck(const Program& program, std::span<const std::vector<Instruction>> ranks)
      : program_(program), log_(program, ranks), origins_(program) {}

  Status visit(const Moment& moment) {
    const Event& event = moment.event;
    if (event.kind != Event::Kind::kInstruction) return visit_caller(moment);
    if (const auto* move = std::get_if<Move>(&event.instruction->action)) {
      TUTTI_TRY(log_.read(move->from, moment));
      TUTTI_TRY(log_.write(move->to, moment));
      return require_none(moment, origins_.move(*move));
    }
    const auto* multiply = std::get_if<Multiply>(&event.instruction->action);
    return multiply == nullptr ? Status::ok() : visit_matmul(*multiply, moment);
  }

 private:
  // At the end the caller reads the outputs, and may then use all buffers for something else.
  Status visit_caller(const Moment& moment) {
    const bool begins = moment.event.kind == Event::Kind::kBegin;
    const int rank = moment.event.rank;
    for (std::size_t id = 0; id < program_.buffers.size(); ++id) {
      const Place place = log_.whole(rank, static_cast<BufferId>(id));
      const Role role = program_.buffers[id].role;
      if (!begins && role == Role::kOutput) TUTTI_TRY(log_.read(place, moment));
      if (!begins || role == Role::kInput) TUTTI_TRY(log_.write(place, moment));
    }
    if (!begins) return require_none(moment, origins_.end_call(rank));
    origins_.begin_call(rank);
    return Status::ok();
  }

  Status visit_matmul(const Multiply& multiply, const Moment& moment) {
    if (multiply.a.rows.empty()) return Status::ok();
    const int rank = multiply.a.rank;
    TUTTI_TRY(log_.read(multiply.a, moment));
    for (const Product& product : program_.products) {
      TUTTI_TRY(log_.read(log_.whole(rank, product.b), moment));
      if (product.bias != kNoBuffer) TUTTI_TRY(log_.read(log_.whole(rank, product.bias), moment));
      TUTTI_TRY(log_.write_once({rank, product.c, multiply.c}, moment));
    }
    return require_none(moment, origins_.multiply(multiply));
  }

  static Status require_none(const Moment& moment, const std::string& fault) {
    if (fault.empty()) return Status::ok();
    return invalid_program(event_text(moment.event) + ": " + fault);
  }

  const Program& program_;
  AccessLog log_;
  Origins origins_;
};

}  // namespace

Status check(const Program& program, std::span<const std::vector<Instruction>> ranks) {
  TUTTI_TRY(validate(program, ranks));
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
