// All kernels of an element type and a gate.
#pragma once

#include <type_traits>
#include <utility>

#include "matmul/kernel/kernel.cuh"

namespace tutti {

constexpr std::size_t tiles_with(int rows) {
  std::size_t count = 0;
  for (const MatmulTile& tile : kMatmulTiles) count += tile.m == rows ? 1 : 0;
  return count;
}

// The columns of tile `index` among those with so many rows.
constexpr int columns_of(int rows, std::size_t index) {
  for (const MatmulTile& tile : kMatmulTiles) {
    if (tile.m == rows && index-- == 0) return tile.n;
  }
  return 0;
}

template <class Element, class Gate, int kRows, bool kRowMajorB, std::size_t... kIndex>
OwnKernel own_kernel_with(std::index_sequence<kIndex...>) {
  using All = Tiles<kRows, kRowMajorB, columns_of(kRows, kIndex)...>;
  return {reinterpret_cast<const void*>(&own_matmul_kernel<All, Element, Gate, StoreEpilogue>),
          SharedLayout<All, StoreEpilogue<All, Element>>::kBytes};
}

template <class Element, class Gate, int kRows>
OwnKernel own_kernel_of(MatrixLayout b_layout) {
  constexpr auto kAll = std::make_index_sequence<tiles_with(kRows)>();
  return b_layout == MatrixLayout::kRowMajor ? own_kernel_with<Element, Gate, kRows, true>(kAll)
                                             : own_kernel_with<Element, Gate, kRows, false>(kAll);
}

// Checks of machine code need a sample (TUTTI_SAMPLE_KERNELS): each type and each gate once.
#ifdef TUTTI_SAMPLE_KERNELS
template <class Element, class Gate>
inline constexpr bool kIsCompiled = std::is_same_v<Element, Half> == std::is_same_v<Gate, OpenGate>;
#else
template <class, class>
inline constexpr bool kIsCompiled = true;
#endif

template <class Element, class Gate>
OwnKernel own_kernel_of(int rows, MatrixLayout b_layout) {
  if constexpr (!kIsCompiled<Element, Gate>) {
    return {};
  } else {
    return rows == 256 ? own_kernel_of<Element, Gate, 256>(b_layout)
                       : own_kernel_of<Element, Gate, 128>(b_layout);
  }
}

}  // namespace tutti
