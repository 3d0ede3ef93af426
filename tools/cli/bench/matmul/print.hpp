// Rows of `tutti bench matmul` as text for people.
#pragma once

#include <memory>
#include <string>

#include "bench/printers/printers.hpp"

namespace tutti::cli {

// A line for each row, as soon as it is measured.
std::unique_ptr<Printer> make_matmul_table_printer(const Look& look);
std::string print_matmul_markdown(const Record& record);
// One shape per line.
Table matmul_table_of(const Group& group);

inline constexpr std::string_view kOwnRow = "own_matmul", kPeerRow = "cublaslt_matmul";
// Of one shape the row of an algorithm, whose tile was not forced; null: none.
const Row* matmul_row(const Group& group, const MatmulRow& shape, std::string_view algorithm);

// Each shape of a group once, in order of appearance.
std::vector<const MatmulRow*> shapes_of(const Group& group);

// The geometric mean of an algorithm's ratios over all shapes, its tile not forced; 0: there is
// none.
double mean_ratio(const Group& group, std::string_view algorithm);

// "bf16_row_3_products_bias"
std::string kind_text(const Group& group);
// "4096x1792x4096": m, n and k.
std::string extents_text(const MatmulRow& row);
// "bf16, B row-major, 3 products, with bias, backend cuda, cuBLASLt 13.0.2"
std::string title_of_matmul(const Group& group);

}  // namespace tutti::cli
