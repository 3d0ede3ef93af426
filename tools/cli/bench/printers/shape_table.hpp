// A table whose rows have shapes of a matmul: a line for each row, as soon as it is measured.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "bench/printers/printers.hpp"

namespace tutti::cli {

class ShapeTable : public Printer {
 public:
  explicit ShapeTable(const Look& look) : look_(look) {}

  std::string begin(const Record& record) final;
  std::string add(std::span<const Row> rows) final;
  std::string end(const Record& /*record*/) override { return {}; }

 protected:
  // Above the first row of a group.
  virtual std::string heading(const Group& group) const = 0;
  virtual std::string line(const Row& row) const = 0;
  // Of one row, below all lines that were added with it.
  virtual std::string remark(const Row& /*row*/) const { return {}; }

  // The column "#wrong", seven characters wide.
  std::string wrong_text(const Row& row) const;
  const Look& look() const { return look_; }

 private:
  const Look look_;
  std::optional<Row> last_;  // before these
};

}  // namespace tutti::cli
