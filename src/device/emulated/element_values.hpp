// SPDX-License-Identifier: MIT
// Decodes the bits of an operand's elements as a matrix unit does.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/common/element.hpp"

namespace tilewise::emulated {

// The values of all elements of one type of 8 or 16 bits.
inline const std::vector<float>& values_of(KernelDType type) {
    const auto make = [](KernelDType of) {
        std::vector<float> values(std::size_t{1} << (8 * element_bytes(of)));
        for (std::size_t bits = 0; bits < values.size(); ++bits) {
            values[bits] = static_cast<float>(decode(of, static_cast<unsigned>(bits)));
        }
        return values;
    };
    static const std::vector<float> fp16 = make(KernelDType::fp16), bf16 = make(KernelDType::bf16),
                                    fp8 = make(KernelDType::fp8), bf8 = make(KernelDType::bf8),
                                    int8 = make(KernelDType::int8);
    switch (type) {
        case KernelDType::fp16: return fp16;
        case KernelDType::bf16: return bf16;
        case KernelDType::fp8: return fp8;
        case KernelDType::bf8: return bf8;
        default: return int8;
    }
}

// `count` elements. Of fp32 only the bits of tf32 count. int8 gives whole numbers, whose products and sums of a few fp32
// holds exactly.
inline void to_values(KernelDType type, const unsigned char* bytes, int count, float* values) {
    if (element_bytes(type) == 4) {
        constexpr std::uint32_t kTf32Bits = 0xffffe000u;
        for (int i = 0; i < count; ++i) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, bytes + i * 4, 4);
            values[i] = __builtin_bit_cast(float, bits& kTf32Bits);
        }
        return;
    }
    const float* const table = values_of(type).data();
    if (element_bytes(type) == 1) {
        for (int i = 0; i < count; ++i) values[i] = table[bytes[i]];
        return;
    }
    for (int i = 0; i < count; ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, bytes + i * 2, 2);
        values[i] = table[bits];
    }
}

}  // namespace tilewise::emulated
