// SPDX-License-Identifier: MIT
// Division by a number that is the same for a whole kernel: a multiplication and a shift each time. Numbers are below 2^31.
// Host-compilable: it is tested there.
#pragma once
#include "types.hpp"

namespace tilewise::gpu {

// The upper half of a product.
TILEWISE_DEVICE u32 multiply_high(u32 a, u32 b) { return u32((u64(a) * b) >> 32); }

class Divisor {
public:
    Divisor() = default;
    // 2^(31 + bits) / divisor, rounded up, with 2^bits >= divisor: exact for what is below 2^31.
    explicit TILEWISE_DEVICE Divisor(u32 divisor) : divisor_(divisor) {
        u32 bits = 0;
        while ((u64(1) << bits) < divisor) ++bits;
        shift_ = bits == 0 ? 0 : bits - 1;
        magic_ = divisor == 1 ? 0 : u32(((u64(1) << (31 + bits)) + divisor - 1) / divisor);
    }

    TILEWISE_DEVICE u32 quotient(u32 x) const { return magic_ == 0 ? x : multiply_high(x, magic_) >> shift_; }
    // The quotient; x becomes the rest.
    TILEWISE_DEVICE u32 divide(u32& x) const {
        const u32 q = quotient(x);
        x -= q * divisor_;
        return q;
    }

private:
    u32 divisor_, magic_, shift_;
};

// Divides numbers of any size, most of which are below 2^31.
class WideDivisor {
public:
    explicit TILEWISE_DEVICE WideDivisor(u64 divisor) : divisor_(divisor), small_(u32(divisor)) {}

    TILEWISE_DEVICE u64 divide(u64& x) const {
        const u64 q = (x | divisor_) >> 31 == 0 ? small_.quotient(u32(x)) : x / divisor_;
        x -= q * divisor_;
        return q;
    }

private:
    u64 divisor_;
    Divisor small_;
};

}  // namespace tilewise::gpu
