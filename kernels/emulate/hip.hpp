// SPDX-License-Identifier: MIT
// The twin of hip/primitives.hpp for the host: the same functions, on a machine of fibers (gpu.hpp).
#pragma once
#define TILEWISE_EMULATED_LANES 64
#include "gpu.hpp"

namespace tilewise::hip {

using namespace gpu;

// The sums of a lane in a product of m x m.
template <class Sum, int m>
struct Sums {
    Sum value[m * m / kArchLanes];

    TILEWISE_DEVICE const Sum& operator[](int i) const { return value[i]; }
};

template <class T, int m>
TILEWISE_DEVICE void multiply_matrices(Sums<SumOf<T>, m>& sum, const Packet<16>& a, const Packet<16>& b) {
    static_assert(m == 16 || m == 32);
    tilewise_machine->multiply_squares(emulate::kElement<T>, m, sum.value, a.words, b.words);
}

}  // namespace tilewise::hip
