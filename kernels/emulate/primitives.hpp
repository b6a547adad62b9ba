// SPDX-License-Identifier: MIT
// The twin of cuda/primitives.hpp for the host: the same functions, on a machine of fibers (gpu.hpp).
#pragma once
#define TILEWISE_EMULATED_LANES 32
#include "gpu.hpp"

namespace tilewise::cuda {

using namespace gpu;

// ---- Matrices and their products ----

template <bool trans, int count>
TILEWISE_DEVICE void load_matrices(SharedAddress row, u32 (&to)[count]) {
    tilewise_machine->load_matrices(row, to, count, trans);
}
TILEWISE_DEVICE void store_matrices(SharedAddress row, const u32 (&from)[4]) {
    tilewise_machine->store_matrices(row, from, 4, false);
}

template <class A, class B>
TILEWISE_DEVICE void multiply_add(SumOf<A> (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    static_assert(kSame<A, B> || (kIs8BitFloat<A> && kIs8BitFloat<B>), "types that the matrix unit multiplies");
    const u32 b[2] = {b0, b1};
    tilewise_machine->multiply_add(emulate::kElement<A>, emulate::kElement<B>, sum, a, b);
}
template <class T>
TILEWISE_DEVICE void multiply_add_half(float (&sum)[4], const u32 (&a)[2], u32 b) {
    const u32 whole[4] = {a[0], a[1], 0, 0}, columns[2] = {b, 0};
    tilewise_machine->multiply_add(emulate::kElement<T>, emulate::kElement<T>, sum, whole, columns);
}
// The operands are fp32 in fp64.
TILEWISE_DEVICE void multiply_add_fp64(double (&sum)[4], const double (&a)[8], const double (&b)[4]) {
    const int group = lane_index() / 4, place = lane_index() % 4;
    const auto from = [](double x, int lane) {
        return double(float_of(tilewise_machine->shuffle(bits_of(float(x)), lane)));
    };
    for (int k = 0; k < 16; ++k) {
        double rows[2], columns[2];
        for (int i = 0; i < 2; ++i) rows[i] = from(a[i + k / 4 * 2], group * 4 + k % 4);
        for (int i = 0; i < 2; ++i) columns[i] = from(b[k / 4], (place * 2 + i) * 4 + k % 4);
        for (int i = 0; i < 4; ++i) sum[i] += rows[i / 2] * columns[i % 2];
    }
}
// To nearest, ties away from zero; what is not finite stays.
TILEWISE_DEVICE u32 round_tf32(u32 x) {
    constexpr u32 half = 0x1000u, cut = 0x1fffu;
    return (x & kFloatMagnitude) >= kFloatInfinity ? x : (x + half) & ~cut;
}

}  // namespace tilewise::cuda
