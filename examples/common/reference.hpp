// SPDX-License-Identifier: MIT
// The expected results, computed here and not by the library: plain loops in double over values that were drawn at
// random and rounded to the type of the problem, fp32 or bf16.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "arguments.hpp"

namespace example {

inline std::uint16_t to_bf16(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);  // to the nearest, ties to even
    return static_cast<std::uint16_t>(bits >> 16);
}
inline float from_bf16(std::uint16_t bits) {
    const std::uint32_t wide = std::uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

// Values and how they are stored: fp32 as they are, bf16 as its bits.
struct Values {
    std::string dtype;
    std::vector<float> floats;

    std::vector<std::uint8_t> stored() const {
        const std::size_t width = dtype == "bf16" ? 2 : 4;
        std::vector<std::uint8_t> bytes(floats.size() * width);
        for (std::size_t i = 0; i < floats.size(); ++i) {
            const std::uint16_t half = to_bf16(floats[i]);
            std::memcpy(&bytes[i * width], width == 2 ? static_cast<const void*>(&half) : &floats[i], width);
        }
        return bytes;
    }
    static Values read(const std::string& dtype, const std::vector<std::uint8_t>& bytes) {
        const std::size_t width = dtype == "bf16" ? 2 : 4;
        Values values{dtype, std::vector<float>(bytes.size() / width)};
        for (std::size_t i = 0; i < values.floats.size(); ++i) {
            std::uint16_t half;
            std::memcpy(&half, &bytes[i * width], 2);
            if (width == 2) {
                values.floats[i] = from_bf16(half);
            } else {
                std::memcpy(&values.floats[i], &bytes[i * width], 4);
            }
        }
        return values;
    }
};

inline Values random_values(const std::string& dtype, std::int64_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> draw(-1, 1);
    Values values{dtype, std::vector<float>(static_cast<std::size_t>(count))};
    for (float& value : values.floats) {
        value = draw(generator);
        if (dtype == "bf16") value = from_bf16(to_bf16(value));
    }
    return values;
}

// A is m x k, B is k x n stored by columns (layout rcr), C is m x n.
inline std::vector<double> reference_gemm(const Values& a, const Values& b, std::int64_t m, std::int64_t n,
                                          std::int64_t k) {
    std::vector<double> c(static_cast<std::size_t>(m * n));
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t p = 0; p < k; ++p) {
                sum += static_cast<double>(a.floats[static_cast<std::size_t>(i * k + p)]) *
                       static_cast<double>(b.floats[static_cast<std::size_t>(j * k + p)]);
            }
            c[static_cast<std::size_t>(i * n + j)] = sum;
        }
    }
    return c;
}

// The largest error in relation to the largest value that an element of `terms` random products takes; NaN is infinite.
inline double worst_error(const Values& got, const std::vector<double>& expected, double terms) {
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double error = std::abs(static_cast<double>(got.floats[i]) - expected[i]);
        if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
    }
    return worst / std::sqrt(terms);
}

// Whether a result is right; says so, with the name of what was computed.
inline bool agrees(const std::string& what, const Values& got, const std::vector<double>& expected, double terms) {
    const double tolerance = got.dtype == "bf16" ? 1.0 / 64 : 1e-5;
    const double error = got.floats.size() == expected.size() ? worst_error(got, expected, terms) : INFINITY;
    std::printf("%-7s %s: error %.1e of at most %.1e\n", error <= tolerance ? "valid" : "WRONG", what.c_str(), error,
                tolerance);
    return error <= tolerance;
}

}  // namespace example
