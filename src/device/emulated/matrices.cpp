// SPDX-License-Identifier: MIT
// ldmatrix, stmatrix and mma.sync of the emulated GPU: which element each register holds is in tests/golden/cuda
// (ldmatrix_*.txt, stmatrix_x4.txt, mma_m16n8k16.txt). Products are added up in fp32, one after another; a GPU keeps fewer
// bits of those of 8-bit floats.
#include <fmt/core.h>

#include <cstring>

#include "device/emulated/element_values.hpp"
#include "device/emulated/grid.hpp"

namespace tilewise::emulated {
namespace {

constexpr int kRowBytes = 16, kRowElements = 8;
constexpr int kProductRows = 16, kProductColumns = 8, kDepthBytes = 32;

struct MatrixAccess {
    unsigned row;
    unsigned* registers;
};
struct ProductArguments {
    void* sum;
    const unsigned *a, *b;
};

// Register `i` of a lane: elements (lane / 4, 2 * (lane % 4)) and the next of matrix i, or the same transposed.
template <class F>
void for_each_half(int lane, int count, bool trans, F&& f) {
    for (int i = 0; i < count; ++i) {
        for (int half = 0; half < 2; ++half) {
            const int row = lane / 4, column = 2 * (lane % 4) + half;
            trans ? f(i, half, column, row) : f(i, half, row, column);
        }
    }
}

}  // namespace

void Grid::load_matrices(unsigned row, unsigned* to, int count, bool trans) {
    MatrixAccess mine{row, to};
    meet("ldmatrix", &mine, [&](const auto& lanes) {
        std::uint16_t elements[4 * 8][kRowElements] = {};
        for (int i = 0; i < count * 8; ++i) {
            const unsigned at = static_cast<MatrixAccess*>(lanes[static_cast<std::size_t>(i)])->row;
            if (at % kRowBytes != 0) fault(fmt::format("ldmatrix at address {}, no multiple of 16", at));
            std::memcpy(elements[i], shared_at(*running_->block, at, kRowBytes), kRowBytes);
        }
        for (int lane = 0; lane < kWarp; ++lane) {
            unsigned* const registers = static_cast<MatrixAccess*>(lanes[static_cast<std::size_t>(lane)])->registers;
            for_each_half(lane, count, trans, [&](int i, int half, int r, int c) {
                const unsigned bits = elements[i * 8 + r][c];
                registers[i] = half == 0 ? bits : registers[i] | bits << 16;
            });
        }
    });
}

void Grid::store_matrices(unsigned row, const unsigned* from, int count, bool trans) {
    MatrixAccess mine{row, const_cast<unsigned*>(from)};
    meet("stmatrix", &mine, [&](const auto& lanes) {
        std::uint16_t elements[4 * 8][kRowElements] = {};
        for (int lane = 0; lane < kWarp; ++lane) {
            const unsigned* const registers =
                static_cast<MatrixAccess*>(lanes[static_cast<std::size_t>(lane)])->registers;
            for_each_half(lane, count, trans, [&](int i, int half, int r, int c) {
                elements[i * 8 + r][c] = static_cast<std::uint16_t>(registers[i] >> (16 * half));
            });
        }
        for (int i = 0; i < count * 8; ++i) {
            const unsigned at = static_cast<MatrixAccess*>(lanes[static_cast<std::size_t>(i)])->row;
            if (at % kRowBytes != 0) fault(fmt::format("stmatrix at address {}, no multiple of 16", at));
            std::memcpy(shared_at(*running_->block, at, kRowBytes), elements[i], kRowBytes);
        }
    });
}

// A register holds 4 bytes of neighbours along k: those of lane l are of row (column of B) l / 4, from byte 4 * (l % 4) of the
// first or the second half of k on.
void Grid::multiply_add(KernelDType a_type, KernelDType b_type, void* sum, const unsigned* a, const unsigned* b) {
    ProductArguments mine{sum, a, b};
    meet("mma.sync", &mine, [&](const auto& lanes) {
        unsigned char a_bytes[kProductRows][kDepthBytes], b_bytes[kProductColumns][kDepthBytes];
        for (int lane = 0; lane < kWarp; ++lane) {
            const auto& one = *static_cast<ProductArguments*>(lanes[static_cast<std::size_t>(lane)]);
            const int line = lane / 4, at = 4 * (lane % 4);
            for (int half = 0; half < 2; ++half) {
                for (int i = 0; i < 2; ++i)
                    std::memcpy(&a_bytes[line + 8 * i][at + 16 * half], one.a + 2 * half + i, 4);
                std::memcpy(&b_bytes[line][at + 16 * half], one.b + half, 4);
            }
        }
        const int depth = kDepthBytes / element_bytes(a_type);
        float a_values[kProductRows * kDepthBytes], b_values[kProductColumns * kDepthBytes];
        to_values(a_type, a_bytes[0], kProductRows * depth, a_values);
        to_values(b_type, b_bytes[0], kProductColumns * depth, b_values);
        float across[kDepthBytes][kProductColumns];  // B with its columns side by side
        for (int k = 0; k < depth; ++k) {
            for (int c = 0; c < kProductColumns; ++c) across[k][c] = b_values[c * depth + k];
        }
        float sums[kProductRows][kProductColumns];
        const auto each_sum = [&](auto&& f) {
            for (int lane = 0; lane < kWarp; ++lane) {
                void* const registers = static_cast<ProductArguments*>(lanes[static_cast<std::size_t>(lane)])->sum;
                for (int i = 0; i < 4; ++i) {
                    f(static_cast<char*>(registers) + 4 * i, sums[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2]);
                }
            }
        };
        const bool whole = a_type == KernelDType::int8;
        // Products of int8 are added up by themselves: 32 of them are exact in fp32, the sum before is not.
        each_sum([&](char* at, float& value) {
            value = 0;
            if (!whole) std::memcpy(&value, at, 4);
        });
        for (int r = 0; r < kProductRows; ++r) {
            for (int k = 0; k < depth; ++k) {
                const float factor = a_values[r * depth + k];
                for (int c = 0; c < kProductColumns; ++c) sums[r][c] += factor * across[k][c];
            }
        }
        each_sum([&](char* at, float value) {
            if (!whole) {
                std::memcpy(at, &value, 4);
                return;
            }
            std::uint32_t before = 0;
            std::memcpy(&before, at, 4);
            before += static_cast<std::uint32_t>(static_cast<int>(value));
            std::memcpy(at, &before, 4);
        });
    });
}

}  // namespace tilewise::emulated
