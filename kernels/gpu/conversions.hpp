// SPDX-License-Identifier: MIT
// What GPUs have an instruction for and other machines do with bits. The primitives of an arch, which a kernel's source includes first,
// define the same functions where it has the instructions, and say so by TILEWISE_HAS_CONVERSIONS, those of 8-bit floats by
// TILEWISE_HAS_8BIT_CONVERSIONS.
#pragma once
#include "small_float.hpp"

namespace tilewise::gpu {

#if !defined(TILEWISE_HAS_CONVERSIONS)
TILEWISE_DEVICE float fp16_to_float(u16 x) { return decode_small<Fp16Format>(x); }
TILEWISE_DEVICE u16 float_to_fp16(float x) { return x == x ? u16(encode_small<Fp16Format>(x)) : kGpuNan16; }
TILEWISE_DEVICE u16 float_to_bf16(float x) {
    const u32 raw = bits_of(x);
    if ((raw & kFloatMagnitude) > kFloatInfinity) return kGpuNan16;
    return u16((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16);
}
// Two in one register, the first in the low half.
TILEWISE_DEVICE u32 floats_to_fp16(float first, float second) {
    return u32(float_to_fp16(first)) | u32(float_to_fp16(second)) << 16;
}
TILEWISE_DEVICE u32 floats_to_bf16(float first, float second) {
    return u32(float_to_bf16(first)) | u32(float_to_bf16(second)) << 16;
}
// 2 to the power of x, and 1 / x, within two units in the last place; what is too small for a normal number may be 0.
TILEWISE_DEVICE float exp2_of(float x) { return __builtin_exp2f(x); }
TILEWISE_DEVICE float reciprocal_of(float x) { return 1.0f / x; }
// Four products of bytes with sign, added up.
TILEWISE_DEVICE int add_products(int sum, u32 a, u32 b) {
    for (int i = 0; i < 32; i += 8) sum += int(i8(a >> i)) * int(i8(b >> i));
    return sum;
}
// Byte `index` of each of four words, the first word's lowest.
TILEWISE_DEVICE u32 gather_bytes(const u32 (&words)[4], int index) {
    u32 gathered = 0;
    for (int i = 0; i < 4; ++i) gathered |= (words[i] >> (8 * index) & 0xffu) << (8 * i);
    return gathered;
}
#endif

#if !defined(TILEWISE_HAS_8BIT_CONVERSIONS)
// The four of a word, the lowest first; and two, the first in the low byte.
TILEWISE_DEVICE void fp8_to_floats(u32 word, float (&x)[4]) {
    for (int i = 0; i < 4; ++i) x[i] = decode_small<Fp8Format>(u8(word >> (8 * i)));
}
TILEWISE_DEVICE void bf8_to_floats(u32 word, float (&x)[4]) {
    for (int i = 0; i < 4; ++i) x[i] = decode_small<Bf8Format>(u8(word >> (8 * i)));
}
TILEWISE_DEVICE u16 floats_to_fp8(float first, float second) {
    return u16(u8(encode_small<Fp8Format>(first)) | u8(encode_small<Fp8Format>(second)) << 8);
}
TILEWISE_DEVICE u16 floats_to_bf8(float first, float second) {
    return u16(u8(encode_small<Bf8Format>(first)) | u8(encode_small<Bf8Format>(second)) << 8);
}
#endif

}  // namespace tilewise::gpu
