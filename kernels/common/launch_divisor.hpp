// SPDX-License-Identifier: MIT
// A divisor that the host prepares and the kernel divides by, without the instructions of a division.
#pragma once

namespace tilewise {

// Division by a multiplication and a shift: of numbers below 2^31, or quicker where (number + 1) x divisor is below 2^31.
struct LaunchDivisor {
    unsigned divisor, magic, shift, small;

    constexpr LaunchDivisor() : LaunchDivisor(1) {}
    // 2^(31 + bits) / divisor, rounded up, with 2^bits >= divisor; and less than 2^32 / divisor.
    explicit constexpr LaunchDivisor(unsigned by) : divisor(by), magic(0), shift(0), small(0xffffffffu / by) {
        unsigned bits = 0;
        while ((1ull << bits) < by) ++bits;
        shift = bits == 0 ? 0 : bits - 1;
        magic = by == 1 ? 0 : static_cast<unsigned>(((1ull << (31 + bits)) + by - 1) / by);
    }
    constexpr int quotient(int x) const {
        return magic == 0 ? x : static_cast<int>(high(static_cast<unsigned>(x), magic) >> shift);
    }
    constexpr int small_quotient(int x) const { return static_cast<int>(high(static_cast<unsigned>(x) + 1, small)); }

private:
    static constexpr unsigned high(unsigned x, unsigned y) {
        return static_cast<unsigned>((static_cast<unsigned long long>(x) * y) >> 32);
    }
};

}  // namespace tilewise
