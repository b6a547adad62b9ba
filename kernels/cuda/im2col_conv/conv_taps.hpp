// SPDX-License-Identifier: MIT
// How a convolution's pixels and taps are counted by kernels that copy columns of pixels (im2col_conv.hpp): along each
// dimension, which pixel of the activation a row of the product begins at, and which taps it takes from there.
//   forward, backward weight   row o reads x[o * stride - pad + t * dilation]
//   backward data              row h of class q (h * stride + p is a pixel of dx, p = (q - pad) mod stride) reads
//                              dy[h + (p + pad - t * dilation) / stride] for the taps t that make this whole
// so that backward data is for each class a convolution of stride 1 with some of the taps. Columns count from `lower`, the
// least pixel that any tap reads, and taps move them by an offset that is not negative. The host makes its tensor maps from the
// same numbers (config/im2col.hpp). Host-compilable: it is tested there.
#pragma once
#include "../../gpu/divisor.hpp"

namespace tilewise::cuda::im2col_conv {

using namespace gpu;

TILEWISE_DEVICE int ceil_divided(int x, int by) { return x >= 0 ? (x + by - 1) / by : -(-x / by); }

// Taps first, first + step, ...: `count` of them, which move a column by offset, offset + offset_step, ...
struct TapLine {
    int first, step, count, offset, offset_step;
};

// One dimension of a convolution.
struct ConvLine {
    int in, out, filter, stride, dilation, pad;

    TILEWISE_DEVICE ConvLine(const KernelConv& conv, int dim)
        : in(int(conv.in[dim])),
          out(int(conv.out[dim])),
          filter(int(conv.filter[dim])),
          stride(int(conv.stride[dim])),
          dilation(int(conv.dilation[dim])),
          pad(int(conv.pad[dim])) {}

    template <Direction direction>
    TILEWISE_DEVICE int rows() const {
        return direction == Direction::backward_data ? (in + stride - 1) / stride : out;
    }
    // Joined taps need some pixels more, unless the zeros behind a line are also those before the next one: a step that no tap
    // moves walks on to these.
    template <Direction direction>
    TILEWISE_DEVICE int walked_rows(int joined) const {
        const int own = rows<direction>(), all = own + (joined - 1) * dilation;
        if (joined == 1 || joined != filter) return all;
        const int size = direction == Direction::backward_data ? out : in;
        const int before = -lower<direction>(), behind = all - before - size;
        const int both = before < behind ? before : behind;
        return both <= 0 ? all : all - both < own ? own : all - both;
    }
    template <Direction direction>
    TILEWISE_DEVICE int row_step() const {
        return direction == Direction::backward_data ? 1 : stride;
    }
    template <Direction direction>
    TILEWISE_DEVICE int lower() const {
        return direction == Direction::backward_data ? shift_of(filter - 1) : -pad;
    }
    template <Direction direction>
    TILEWISE_DEVICE int classes() const {
        return direction == Direction::backward_data ? stride : 1;
    }

    template <Direction direction>
    TILEWISE_DEVICE TapLine taps(int q) const {
        if (direction != Direction::backward_data || stride == 1) return all_taps<direction>();
        TapLine line = {0, 1, 0, 0, 0};
        while (line.first < stride && (q - line.first * dilation) % stride != 0) ++line.first;
        while (line.step < stride && line.step * dilation % stride != 0) ++line.step;
        if (line.first >= stride || line.first >= filter) return line;
        line.count = (filter - 1 - line.first) / line.step + 1;
        line.offset = shift_of(line.first) - shift_of(filter - 1);
        line.offset_step = -(line.step * dilation / stride);
        return line;
    }

    // Stride 1 and forward have all taps in one walk.
    template <Direction direction>
    TILEWISE_DEVICE TapLine all_taps() const {
        if (direction != Direction::backward_data) return {0, 1, filter, 0, dilation};
        return {0, 1, filter, (filter - 1) * dilation, -dilation};
    }
    // As if the steps of `joined` taps were the taps; the first of each is the one that reads the least pixel.
    template <Direction direction>
    TILEWISE_DEVICE TapLine joined_taps(int joined) const {
        const bool back = direction == Direction::backward_data;
        return {back ? filter - 1 : 0, back ? -joined : joined, filter / joined, 0, joined * dilation};
    }

    // The pixel of dx that row h of class q is; it may lie beyond the last.
    TILEWISE_DEVICE int pixel(int h, int q) const {
        const int p = (q - pad) % stride;
        return h * stride + (p < 0 ? p + stride : p);
    }

private:
    // A tap of backward data moves dy so far against the row.
    TILEWISE_DEVICE int shift_of(int tap) const { return ceil_divided(pad - tap * dilation, stride); }
};

// The dimensions from the innermost on: 0 is w, 1 h, 2 d.
TILEWISE_DEVICE ConvLine line_of(const KernelConv& conv, int from_innermost) {
    return {conv, kMaxKernelDims - 1 - from_innermost};
}

template <int dims, Direction direction>
TILEWISE_DEVICE int class_count(const KernelConv& conv) {
    int count = 1;
    TILEWISE_UNROLL
    for (int i = 0; i < dims; ++i) count *= line_of(conv, i).template classes<direction>();
    return count;
}

// The taps of one class, and where in it: w runs fastest, as the weights lie. With `joined` > 1, so many neighbours along w
// are one step, whose rows are read from the same pixels, each tap's a dilation further than the last one's (stride 1 only).
template <int dims, int joined = 1>
struct TapWalk {
    TapLine line[dims];
    int filter[dims];
    int at[dims];

    template <Direction direction>
    static TILEWISE_DEVICE TapWalk of_class(const KernelConv& conv, int index) {
        TapWalk walk;
        TILEWISE_UNROLL
        for (int i = 0; i < dims; ++i) {
            const ConvLine one = line_of(conv, i);
            walk.filter[i] = one.filter;
            walk.at[i] = 0;
            if constexpr (joined > 1) {
                walk.line[i] =
                    i == 0 ? one.template joined_taps<direction>(joined) : one.template all_taps<direction>();
            } else {
                const int classes = one.template classes<direction>();
                walk.line[i] = one.template taps<direction>(classes == 1 ? 0 : index % classes);
                if (classes > 1) index /= classes;
            }
        }
        return walk;
    }

    TILEWISE_DEVICE int count() const {
        int all = 1;
        TILEWISE_UNROLL
        for (int i = 0; i < dims; ++i) all *= line[i].count;
        return all;
    }
    TILEWISE_DEVICE void go_to(int index) {
        TILEWISE_UNROLL
        for (int i = 0; i < dims; ++i) {
            const int count = line[i].count > 0 ? line[i].count : 1;
            at[i] = index % count;
            index /= count;
        }
    }
    TILEWISE_DEVICE void advance() {
        TILEWISE_UNROLL
        for (int i = 0; i < dims; ++i) {
            if (++at[i] < line[i].count) return;
            at[i] = 0;
        }
    }
    // Counts in the filter; where taps are joined, this is the first.
    TILEWISE_DEVICE int tap() const {
        int index = 0;
        TILEWISE_UNROLL
        for (int i = dims - 1; i >= 0; --i) index = index * filter[i] + line[i].first + at[i] * line[i].step;
        return index;
    }
    TILEWISE_DEVICE u16 offset(int i) const { return u16(line[i].offset + at[i] * line[i].offset_step); }
};

// Rows of the product as pixels of the activation that is read; joined taps need some more along w.
template <int dims, Direction direction, int joined = 1>
struct PixelWalk {
    Divisor rows[dims];
    int step[dims], lower[dims];

    TILEWISE_DEVICE explicit PixelWalk(const KernelConv& conv) {
        TILEWISE_UNROLL
        for (int i = 0; i < dims; ++i) {
            const ConvLine line = line_of(conv, i);
            rows[i] = Divisor(u32(line.template walked_rows<direction>(i == 0 ? joined : 1)));
            step[i] = line.template row_step<direction>();
            lower[i] = line.template lower<direction>();
        }
    }

    struct Pixel {
        int at[dims], image;
    };
    TILEWISE_DEVICE Pixel locate(u32 row) const {
        Pixel pixel;
        TILEWISE_UNROLL
        for (int i = 0; i < dims; ++i) {
            const u32 next = rows[i].divide(row);
            pixel.at[i] = int(row) * step[i] + lower[i];
            row = next;
        }
        pixel.image = int(row);
        return pixel;
    }
};

}  // namespace tilewise::cuda::im2col_conv
