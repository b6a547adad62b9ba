// SPDX-License-Identifier: MIT
// Products of sizes whose factors are bounded one by one, but not together.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace tilewise {

// More than any memory, and than any number of blocks; sums of a few of these do not overflow.
inline constexpr std::int64_t kMostProduct = std::int64_t{1} << 60;

// The product of factors that are not negative, or kMostProduct where it would be more.
constexpr std::int64_t bounded_product(std::initializer_list<std::int64_t> factors) {
    std::int64_t product = 1;
    bool is_more = false;
    for (const std::int64_t factor : factors) {
        if (factor == 0) return 0;
        is_more = is_more || __builtin_mul_overflow(product, factor, &product) || product > kMostProduct;
    }
    return is_more ? kMostProduct : product;
}

}  // namespace tilewise
