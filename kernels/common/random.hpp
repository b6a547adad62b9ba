// SPDX-License-Identifier: MIT
// Random numbers by counting: number i of a seed is the same bits on every host and GPU, in whatever order they are asked
// for, so that a buffer can be filled anywhere and a failure repeated from its report.
#pragma once
#include "real.hpp"

namespace tilewise {

// Mixes a seed and a counter into 64 random bits.
constexpr unsigned long long random_bits(unsigned long long seed, unsigned long long counter) {
    unsigned long long x = seed + (counter + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}
// Uniform in [0, 1).
constexpr double random_unit(unsigned long long seed, unsigned long long counter) {
    return static_cast<double>(static_cast<long long>(random_bits(seed, counter) >> 11)) * 0x1p-53;
}

// Uniform from low on, `width` wide; whole: rounded down. Not yet rounded to a type.
inline double random_value(double low, double width, bool whole, unsigned long long seed, unsigned long long counter) {
    const double value = low + rounded_product(width, random_unit(seed, counter));
    return whole ? floor_of(value) : value;
}

}  // namespace tilewise
