// SPDX-License-Identifier: MIT
// Divisions and walks of ../gpu/gather_source.hpp without a branch, so that a loop that looks up its operands is straight code. Kernels of
// split_image, which count in 64 bits, have theirs.
#pragma once
#include "../gpu/gather_source.hpp"

namespace tilewise::hip {

// As gpu::Divisor, which asks whether the divisor is 1.
class StraightDivisor {
public:
    explicit TILEWISE_DEVICE StraightDivisor(u32 divisor) : divisor_(divisor) {
        u32 bits = 0;
        while ((u64(1) << bits) < divisor) ++bits;
        shift_ = bits == 0 ? 0 : bits - 1;
        magic_ = divisor == 1 ? 0 : u32(((u64(1) << (31 + bits)) + divisor - 1) / divisor);
        all_ = divisor == 1 ? ~0u : 0;
    }
    TILEWISE_DEVICE u32 quotient(u32 x) const { return ((x & all_) | multiply_high(x, magic_)) >> shift_; }
    // The quotient; x becomes the rest.
    TILEWISE_DEVICE u32 divide(u32& x) const {
        const u32 q = quotient(x);
        x -= q * divisor_;
        return q;
    }

private:
    u32 divisor_, magic_, shift_;
    u32 all_;  // every bit, where the quotient is the number itself
};

template <bool wide>
using Steps = typename Either<wide, WideDivisor, StraightDivisor>::type;

// The taps of a walk, in the order of their numbers in the filter, which has `taps` in each dimension; 0 where that is not known.
template <int ndim, int taps, bool wide>
struct Taps {
    using Count = typename Counting<wide>::Count;
    Steps<wide> channels, inner, last;  // channels; taps of the last two dimensions; of the last

    TILEWISE_DEVICE Taps(const Walk& walk, Index channel_count)
        : channels(Count(channel_count)),
          inner(Count(at_least_one(walk.dim[1].taps * walk.dim[2].taps))),
          last(Count(at_least_one(walk.dim[2].taps))) {}
    // A residue class may have no taps at all; then nothing is looked up.
    static TILEWISE_DEVICE Index at_least_one(Index count) { return count < 1 ? 1 : count; }

    // Of number `index` of (tap, channel): the tap's place in each of the last ndim dimensions; returns the channel.
    TILEWISE_DEVICE Count locate(Count index, Count (&tap)[ndim]) const {
        Count channel = index, rest = channels.divide(channel);
        if constexpr (taps > 0) {
            TILEWISE_UNROLL
            for (int d = ndim - 1; d >= 0; --d) tap[d] = d == 0 ? rest : rest % taps, rest /= taps;
        } else {
            if constexpr (ndim == 3) tap[0] = inner.divide(rest);
            if constexpr (ndim >= 2) tap[ndim - 2] = last.divide(rest);
            tap[ndim - 1] = rest;
        }
        return channel;
    }
};

// The positions of a walk, image after image.
template <int ndim, bool wide>
struct Positions {
    using Count = typename Counting<wide>::Count;
    Steps<wide> image, plane, line;

    explicit TILEWISE_DEVICE Positions(const Walk& walk)
        : image(Count(walk.positions())),
          plane(Count(walk.dim[1].count * walk.dim[2].count)),
          line(Count(walk.dim[2].count)) {}
    // Of row `index`: its position in each dimension; returns the image.
    TILEWISE_DEVICE Count locate(Count index, Count (&position)[ndim]) const {
        Count rest = index;
        const Count in_image = image.divide(rest);
        if constexpr (ndim == 3) position[0] = plane.divide(rest);
        if constexpr (ndim >= 2) position[ndim - 2] = line.divide(rest);
        position[ndim - 1] = rest;
        return in_image;
    }
};

}  // namespace tilewise::hip
