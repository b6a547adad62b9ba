// SPDX-License-Identifier: MIT
// The way of a depthwise patch's sums to memory. Where the epilogue is known or nothing but alpha, they leave from registers in
// accesses of vector_c elements. Otherwise a line of them goes through a place of the thread's own in shared memory, where
// one rolled loop finishes them (epilogue.hpp): registers cannot be indexed, and the code would be too long to repeat.
#pragma once
#include "depthwise_shape.hpp"
#include "drain.hpp"

namespace tilewise::gpu {

TILEWISE_DEVICE constexpr int least(int x, int y) { return x < y ? x : y; }

// Products of integers are added up in fp32, exactly: filters with more taps would need larger sums.
template <class Sum>
TILEWISE_DEVICE Sum as_sum(float sum) {
    return Sum(sum);
}
template <class Sum, int V>
struct SumRun {
    Sum sums[V];
};
template <class Sum, int V>
TILEWISE_DEVICE SumRun<Sum, V> as_sums(const float (&sums)[V]) {
    SumRun<Sum, V> run;
    TILEWISE_UNROLL
    for (int v = 0; v < V; ++v) run.sums[v] = as_sum<Sum>(sums[v]);
    return run;
}

// V values at an element of C, in accesses of `width` elements at most.
template <class Out, int width, int V, class Value>
TILEWISE_DEVICE void write_values(typename Out::Storage* to, const Value (&values)[V]) {
    constexpr int most = 16 / Out::bytes, run = least(least(V, width), most);
    TILEWISE_UNROLL
    for (int first = 0; first < V; first += run) {
        Value some[run];
        TILEWISE_UNROLL
        for (int i = 0; i < run; ++i) some[i] = values[first + i];
        store_global<run * Out::bytes>(to + first, pack_values<Out>(some));
    }
}

// Finishes pixels [begin, end) of V sums each, which lie in shared memory `step` bytes apart, and writes them.
template <class Chain, class Out, class Sum, int width, int V>
TILEWISE_DEVICE void finish_line(const KernelArgs& args, SharedAddress slot, int step, Index channel, Index row,
                                 int begin, int end, typename Out::Storage* to, Index pixel_stride) {
    TILEWISE_ROLLED
    for (int b = begin; b < end; ++b) {
        float sums[V];
        load_floats(slot + b * step, sums);
        ValueOf<Sum, Out> values[V];
        finish_run<Chain, Out, Along::channels>(args, as_sums<Sum>(sums).sums, run_place(args, channel, row + b, 0, V),
                                                values);
        write_values<Out, width>(to + b * pixel_stride, values);
    }
}
// The same by a call, where it would be repeated too often.
template <class Chain, class Out, class Sum, int width, int V>
TILEWISE_CALLED void call_finish_line(const KernelArgs& args, SharedAddress slot, int step, Index channel, Index row,
                                      int begin, int end, typename Out::Storage* to, Index pixel_stride) {
    finish_line<Chain, Out, Sum, width, V>(args, slot, step, channel, row, begin, end, to, pixel_stride);
}

template <class Config, class Shape>
struct DepthwiseStore {
    using Chain = ChainOf<Config>;
    using Out = typename Config::Out;
    using Sum = SumOf<typename Config::A>;
    using Storage = typename Out::Storage;
    using Rows = typename Shape::Rows;
    using Columns = typename Shape::Columns;
    static constexpr int V = Shape::kVector, kWidth = Shape::kWidth;
    static constexpr int kSlotBytes = kWidth * V * 4;  // of a thread

    struct Target {  // of a patch
        int top, left;
        Index row;    // of its first element in the matrix of all outputs, which may lie outside
        Storage* to;  // that element
        Index channel;
    };

    const KernelArgs& args;
    PixelGrid out;
    SharedAddress slots;

    template <class Place>
    TILEWISE_DEVICE Target target(const Place& place, int channel) const {
        const int top = Rows::first_output(place.row, int(args.conv.pad[1]));
        const int left = Columns::first_output(place.column, int(args.conv.pad[2]));
        const Index plane = Index(place.image) * out.size[0] + place.depth;
        const Index row = (plane * out.size[1] + top) * out.size[2] + left;
        return {top, left, row, static_cast<Storage*>(args.c.data) + row * out.pixel_stride + channel, Index(channel)};
    }

    template <bool simple>
    TILEWISE_DEVICE void write_line(const Target& target, int h, const float (&sums)[kWidth][V]) const {
        if (u32(h) >= u32(Shape::kHeight) || u32(target.top + h) >= u32(out.size[1])) return;
        const Index line = Index(h) * out.size[2];
        Storage* to = target.to + line * out.pixel_stride;
        if constexpr (!simple) return finish_values(target, line, to, sums);
        TILEWISE_UNROLL
        for (int b = 0; b < kWidth; ++b) {
            const bool inside = u32(target.left + b) < u32(out.size[2]);
            const RunPlace place = run_place(args, target.channel, target.row + line + b, 0, inside ? V : 0);
            ValueOf<Sum, Out> values[V];
            finish_in_registers<Chain, Out, Along::channels>(args, as_sums<Sum>(sums[b]).sums, place, values);
            if (inside) write_values<Out, Config::vector_c>(to + b * int(out.pixel_stride), values);
        }
    }

private:
    TILEWISE_DEVICE void finish_values(const Target& target, Index line, Storage* to,
                                       const float (&sums)[kWidth][V]) const {
        constexpr int step = Shape::kThreads * V * 4;  // neighbouring threads, neighbouring places
        const SharedAddress slot = slots + thread_index() * V * 4;
        TILEWISE_UNROLL
        for (int b = 0; b < kWidth; ++b) store_floats(slot + b * step, sums[b]);
        const int begin = target.left < 0 ? -target.left : 0, end = least(kWidth, out.size[2] - target.left);
        constexpr int most_copies = 4;  // of that code: one for each line of a turn
        const Index row = target.row + line;
        if constexpr (Shape::Window::kTurn <= most_copies) {
            finish_line<Chain, Out, Sum, Config::vector_c, V>(args, slot, step, target.channel, row, begin, end, to,
                                                              out.pixel_stride);
        } else {
            call_finish_line<Chain, Out, Sum, Config::vector_c, V>(args, slot, step, target.channel, row, begin, end,
                                                                   to, out.pixel_stride);
        }
    }
};

}  // namespace tilewise::gpu
