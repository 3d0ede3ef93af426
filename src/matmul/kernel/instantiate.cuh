// All kernels of an element type.
#pragma once

#include <array>
#include <utility>

#include "matmul/kernel/kernel.cuh"
#include "matmul/kernel/kernels.hpp"

namespace tutti {

template <class Element, bool kRowMajorB, std::size_t... kIndex>
std::array<OwnKernel, sizeof...(kIndex)> own_kernels_of(std::index_sequence<kIndex...>) {
  return {{[] {
    constexpr MatmulTile kShape = kMatmulTiles[kIndex];
    using OfTile = Tile<kShape.m, kShape.n, kShape.stages, kRowMajorB>;
    return OwnKernel{
        reinterpret_cast<const void*>(&own_matmul_kernel<OfTile, Element, OpenGate, StoreEpilogue>),
        SharedLayout<OfTile, StoreEpilogue<OfTile, Element>>::kBytes};
  }()...}};
}

template <class Element>
OwnKernel own_kernel_of(const MatmulTile& tile, MatrixLayout b_layout) {
  constexpr auto kAll = std::make_index_sequence<kMatmulTiles.size()>();
  static const auto row_major = own_kernels_of<Element, true>(kAll);
  static const auto column_major = own_kernels_of<Element, false>(kAll);
  const auto index = static_cast<std::size_t>(&tile - kMatmulTiles.data());
  return b_layout == MatrixLayout::kRowMajor ? row_major[index] : column_major[index];
}

}  // namespace tutti
