// SPDX-License-Identifier: MIT
// Convolution as an implicit matrix product, group by group: what a generated stub includes. Vectors run along channels.
//   forward          rows are output pixels     columns output channels      k is (tap, input channel)
//   backward data    rows are input pixels      columns input channels       k is (tap, output channel)
//   backward weight  rows are output channels   columns (tap, input channel) k is output pixels
// The rows of backward data are sorted by residue class: each class is a product of its own with the taps it meets
// (conv_walk.hpp). Activations are gathered block by block (conv_sources.hpp); a 1x1 filter without stride or padding is
// read in place, as a plain product. Variants:
//   explicit_gemm    the gathered operand is written whole to the workspace first (expand), then multiplied from there
//   two_stage        sums go to an fp32 (int32) workspace and are converted in a second pass, as with split_k
//   split_image      images are taken in chunks whose tensors have fewer than 2^31 elements each
//   preshuffle       weights were packed ahead: [group][class][panel][block of k]
//   basic_v1         activations are not gathered but read in place through pointers (indirect.hpp, pointed_weight.hpp),
//                    where their type needs no conversion; with preshuffle, for few columns
// Floors: 2 * m * n * k flops per group; bytes: every operand once, and 2 bytes moved through the cache for each byte
// gathered, taps * (input bytes) for every tile_n columns.
#pragma once
#pragma GCC visibility push(hidden)  // kernels for other machines have functions of the same names
#include "conv_chunks.hpp"
#include "conv_operands.hpp"
#include "pointed_weight.hpp"

namespace tilewise::cpu::blocked_conv {

template <class Config>
struct Conv : ConvOperands<Config> {
    using Operands = ConvOperands<Config>;
    using P = Product<Config>;
    using Operands::activation, Operands::class_of, Operands::classes, Operands::gathered, Operands::gathered_channels,
        Operands::gathered_shape, Operands::kExplicit, Operands::kForward, Operands::kPackedAhead, Operands::kWeight,
        Operands::packed_ahead_words, Operands::uses_partials, Operands::weights, Operands::written;
    using typename Operands::A, typename Operands::Acc, typename Operands::Activation, typename Operands::Class,
        typename Operands::Nest, typename Operands::Weights;

    // Reading in place replaces gathering for these; with many columns a gathered block is used often enough.
    using InPlace = Indirect<Config>;
    static constexpr Index kFewColumns = 64;
    static constexpr bool kMayPoint =
        !kWeight && !kExplicit && InPlace::kPossible && (Config::pipeline == Pipeline::basic_v1 || kPackedAhead);
    static TILEWISE_INLINE bool points(const KernelArgs& args) {
        return kMayPoint && InPlace::fits(gathered_shape(args.conv), gathered_channels(args.conv)) &&
               (!kPackedAhead || args.n <= kFewColumns) && packed_ahead_words(args) * args.batch * 4 <= kKeepBytes;
    }
    // Backward weight does so with basic_v1.
    using Pointed = PointedWeight<Config>;
    static constexpr bool kMayPointWeight =
        kWeight && !kExplicit && Pointed::kPossible && Config::pipeline == Pipeline::basic_v1;
    static TILEWISE_INLINE bool points_weight(const KernelArgs& args) {
        return kMayPointWeight && Pointed::fits(args.conv) && args.batch * args.m * args.n * 4 <= kKeepBytes;
    }
    static TILEWISE_INLINE Index all_taps(const KernelConv& conv) {
        return conv.filter[0] * conv.filter[1] * conv.filter[2];
    }

    static TILEWISE_INLINE OutView group_view(const KernelArgs& args, Index group, bool partial) {
        OutView v = out_view<typename Config::Out, Acc>(args, group, partial);
        v.bias_by_col += v.bias_by_col ? group * args.n * v.element_bytes : 0;
        return v;
    }
    static TILEWISE_INLINE const KernelActivation& output_shape(const KernelConv& conv) {
        return kForward ? conv.y : conv.x;
    }

    // Rows [begin, end) of a class whose first row is number first_row of the chunk's, one group.
    TILEWISE_OUTER static void run_rows(const KernelArgs& args, const KernelPart& part, const Class& c, Index group,
                                        Index row_base, Index first_row, Index begin, Index end, Index packed,
                                        bool partial, void* scratch) {
        using Rows = typename ConditionalType<kWeight, EvenRows, PixelRows>::type;
        const auto run = [&](auto& task) {
            task.m = end - begin, task.n = part.n_end - part.n_begin, task.k_total = c.k;
            task.k_begin = P::k_bound(c.k, part.k_part, args.split_k);
            task.k_end = P::k_bound(c.k, part.k_part + 1, args.split_k);
            if constexpr (kPackedAhead) {
                task.packed_b = static_cast<const u32*>(args.b.data) + packed +
                                part.n_begin / Nest::kCols * Nest::panel_words(c.k) +
                                task.k_begin / Nest::kBlockK * Nest::block_words();
                task.skip = part.n_begin % Nest::kCols;
            }
            P::run_task(task, args, partial, scratch);
        };
        const OutView whole = group_view(args, group, partial);
        if constexpr (kWeight) {
            Task<Patches<A, false>, Activation, Rows> task = {};
            const Walk pixels = pixel_walk(args.conv);
            const KernelConv& conv = args.conv;
            task.a = Patches<A, false>::make(args.a.data, group, conv.y, conv.k, pixels, conv.images).from(0, begin);
            task.b = activation(args, c, group, first_row, 0, part.n_begin);
            task.out = whole.at(begin, part.n_begin), task.rows = {whole.row_stride};
            run(task);
        } else {
            Task<Activation, Weights, Rows> task = {};
            task.a = activation(args, c, group, first_row, begin, 0);
            task.b = weights(args, c, group, part.n_begin);
            set_rows(task, args, c, whole, row_base + first_row, begin, part.n_begin, partial);
            run(task);
        }
    }
    // Partial sums have their rows one after the other; those of C are where their pixels are.
    template <class AnyTask>
    static TILEWISE_INLINE void set_rows(AnyTask& task, const KernelArgs& args, const Class& c, const OutView& whole,
                                         Index first_row, Index begin, Index column, bool partial) {
        task.out = whole.at(partial ? first_row : 0, column);
        if (partial) {
            task.rows = PixelRows::in_order(c.walk, whole.row_stride, begin);
        } else {
            task.out.row_stride *= c.walk.dim[2].out_step;
            task.rows = PixelRows::make(c.walk, output_shape(args.conv), args.conv.images, begin);
        }
    }
    // Every pixel of y, one tap: how dy is read as rows of channels.
    static TILEWISE_INLINE Walk pixel_walk(const KernelConv& conv) {
        Walk walk = forward_walk(conv);
        for (int d = 0; d < kMaxKernelDims; ++d) {
            walk.dim[d] = {conv.out[d], 0, 1, 1, 0, conv.out[d], 1, 0, 1, 1};
        }
        return walk;
    }

    // Rows [begin, end) of a class, all groups of the part.
    TILEWISE_OUTER static void run_in_place(const KernelArgs& args, const KernelPart& part, const Class& c,
                                            Index row_base, Index first_row, Index begin, Index end, const u32* packed,
                                            Index group_words, bool partial, void* scratch) {
        const KernelConv& conv = args.conv;
        typename InPlace::Task task = {};
        task.walk = &c.walk, task.shape = &gathered_shape(conv), task.data = args.a.data;
        task.channels = gathered_channels(conv), task.begin = begin, task.end = end;
        task.col_begin = part.n_begin, task.col_end = part.n_end;
        task.group_begin = part.batch_begin, task.group_end = part.batch_end;
        task.panel_words = Nest::panel_words(c.k), task.group_words = group_words;
        task.packed = packed + part.n_begin / Nest::kCols * task.panel_words;
        task.sums_in_c = (partial || kSame<typename Config::Out, typename P::Raw>)&&is_plain(args) &&
                         args.beta == 0.0f && args.c.col_stride == 1;
        OutView view = {};
        task.rows = partial ? PixelRows::in_order(c.walk, args.c.row_stride, begin)
                            : PixelRows::make(c.walk, output_shape(conv), conv.images, begin);
        InPlace::run(
            task,
            [&](Index group) {
                view = group_view(args, group, partial);
                if (partial) view = view.at(row_base + first_row, 0);
                if (!partial) view.row_stride *= c.walk.dim[2].out_step;
                return view;
            },
            scratch);
    }

    // Sums go straight to C (or the workspace) where that holds them as they are, else they are finished at the end.
    TILEWISE_OUTER static void run_pointed(const KernelArgs& args, const KernelPart& part, bool partial,
                                           void* scratch) {
        const Class c = class_of(args, 0);
        const Index k_begin = P::k_bound(c.k, part.k_part, args.split_k);
        const Index k_end = P::k_bound(c.k, part.k_part + 1, args.split_k);
        const bool in_c = (partial || kSame<typename Config::Out, typename P::Raw>)&&is_plain(args) &&
                          (args.beta == 0.0f || args.beta == 1.0f);
        Acc* own = static_cast<Acc*>(scratch) + Pointed::scratch_words(args) - args.batch * args.m * args.n;
        typename Pointed::Sums sums = {own, args.m * args.n, args.n, false};
        if (in_c) sums = {static_cast<Acc*>(args.c.data), args.c.batch_stride, args.c.row_stride, args.beta == 1.0f};
        Pointed::run(args, part, c.walk, k_begin, k_end, sums, scratch);
        for (Index group = part.batch_begin; !in_c && group < part.batch_end; ++group) {
            const OutView view = group_view(args, group, partial);
            const Acc* from = sums.data + group * sums.group_stride + part.m_begin * args.n + part.n_begin;
            view.finish(view, view.place(part.m_begin, part.n_begin), from, args.n, part.m_end - part.m_begin,
                        part.n_end - part.n_begin);
        }
    }

    TILEWISE_OUTER static void run_chunk(const KernelArgs& args, const KernelPart& part, Index row_base, bool partial,
                                         void* scratch) {
        if constexpr (kMayPointWeight) {
            if (points_weight(args)) return run_pointed(args, part, partial, scratch);
        }
        Index first_row = 0, packed = 0;  // of the class, in the group
        const bool in_place = points(args) && args.split_k == 1;
        const Index all_packed = kPackedAhead || in_place ? packed_ahead_words(args) : 0;  // words of one group
        const u32* weights_at = static_cast<const u32*>(args.b.data);
        if constexpr (kMayPoint) {
            if (in_place && !kPackedAhead) {
                weights_at = static_cast<const u32*>(scratch);
                pack_part(args, part, static_cast<u32*>(scratch));
                scratch = static_cast<u32*>(scratch) + round_up(args.batch * all_packed, kCacheLine);
            }
        }
        for (Index i = 0; i < classes(args); ++i) {
            const Class c = class_of(args, i);
            const Index begin = part.m_begin - row_base - first_row, end = part.m_end - row_base - first_row;
            const Index from = begin < 0 ? 0 : begin, to = least(end, c.rows);
            if constexpr (kMayPoint) {
                if (in_place && from < to) {
                    run_in_place(args, part, c, row_base, first_row, from, to, weights_at + packed, all_packed, partial,
                                 scratch);
                }
            }
            for (Index group = part.batch_begin; !in_place && from < to && group < part.batch_end; ++group) {
                run_rows(args, part, c, group, row_base, first_row, from, to, group * all_packed + packed, partial,
                         scratch);
            }
            first_row += c.rows, packed += c.packed_words;
        }
    }

    TILEWISE_OUTER static void run(const KernelArgs* given, const KernelPart* part, void* scratch) {
        P::Tiles::begin();
        const bool partial = uses_partials(*given);
        const KernelArgs args = partial ? P::partial_args(*given, part->k_part) : *given;
        ConvChunks<Config>::each_chunk(args, [&](KernelArgs chunk, Index row_base) {
            if (partial) chunk.c.data = args.c.data;  // rows of the workspace count through all chunks
            run_chunk(chunk, *part, row_base, partial, scratch);
        });
        P::Tiles::end();
    }

    TILEWISE_OUTER static Index scratch_bytes(const KernelArgs* args) {
        const Index words = kWeight ? Nest::template scratch_words<Patches<A, false>>(args->m, args->n, args->k)
                                    : Nest::template scratch_words<Activation>(args->m, args->n, args->k);
        Index in_place = 0;
        if (points(*args)) {
            in_place = InPlace::scratch_words(all_taps(args->conv), gathered_shape(args->conv).pixel_stride) +
                       (kPackedAhead ? 0 : round_up(args->batch * packed_ahead_words(*args), kCacheLine));
        }
        if (points_weight(*args)) in_place = Pointed::scratch_words(*args);
        return (words > in_place ? words : in_place) * Index(sizeof(u32));
    }

    TILEWISE_OUTER static void reduce(const KernelArgs* args, const KernelPart* part) {
        if constexpr (kWeight) return reduce_chunk(*args, *part, 0);
        ConvChunks<Config>::each_chunk(
            *args, [&](const KernelArgs& chunk, Index row_base) { reduce_chunk(chunk, *part, row_base); });
    }
    TILEWISE_OUTER static void reduce_chunk(const KernelArgs& args, const KernelPart& part, Index row_base) {
        for (Index group = part.batch_begin; group < part.batch_end; ++group) {
            const OutView out = group_view(args, group, false);
            Index first_row = row_base;
            for (Index i = 0; i < classes(args); ++i) {
                const Class c = class_of(args, i);
                const PixelRows rows = PixelRows::make(c.walk, output_shape(args.conv), args.conv.images, 0);
                const Index begin = part.m_begin - first_row, end = least(part.m_end - first_row, c.rows);
                for (Index row = begin < 0 ? 0 : begin; row < end; ++row) {
                    const OutView at = kWeight ? out.at(row, 0) : out.from({rows.offset(row), row, 0});
                    P::add_parts(args, group, first_row + row, part.n_begin, part.n_end, at);
                }
                first_row += c.rows;
            }
        }
    }

    // Writes the part's rows (backward weight: the part's range of m counts positions) of the gathered matrix.
    TILEWISE_OUTER static void expand(const KernelArgs* args, const KernelPart* part) {
        for (Index group = part->batch_begin; group < part->batch_end; ++group) {
            Index first_row = 0;
            for (Index i = 0; i < classes(*args); ++i) {
                const Class c = class_of(*args, i);
                const Index rows = kWeight ? c.k : c.rows;
                const Index begin = part->m_begin - first_row, end = least(part->m_end - first_row, rows);
                const Index from = begin < 0 ? 0 : begin;
                auto* matrix = written(*args, group, first_row);
                const Index stride = kWeight ? args->n : args->k, width = kWeight ? args->n : c.k;
                if (from < end)
                    gathered(*args, c.walk, group).write(from, end - from, width, matrix + from * stride, stride);
                first_row += rows;
            }
        }
    }

    static Index packed_b_bytes(const KernelArgs* args) {
        return packed_ahead_words(*args) * args->batch * Index(sizeof(u32));
    }
    TILEWISE_OUTER static void pack_b(const KernelArgs* args, const KernelPart* part, void* packed) {
        pack_part(*args, *part, static_cast<u32*>(packed));
    }
    // All panels that the part's columns touch.
    TILEWISE_OUTER static void pack_part(const KernelArgs& args, const KernelPart& part, u32* packed) {
        const Index group_words = packed_ahead_words(args), first = part.n_begin / Nest::kCols * Nest::kCols;
        for (Index group = part.batch_begin; group < part.batch_end; ++group) {
            u32* to = packed + group * group_words;
            for (Index i = 0; i < classes(args); ++i) {
                const Class c = class_of(args, i);
                for (Index j = first; j < part.n_end; j += Nest::kCols) {
                    P::pack_panel_ahead(to + j / Nest::kCols * Nest::panel_words(c.k), weights(args, c, group, 0), j,
                                        args.n - j, c.k);
                }
                to += c.packed_words;
            }
        }
    }

    static constexpr CpuKernel table() {
        CpuKernel kernel = {kKernelAbi, scratch_bytes, run, reduce, nullptr, nullptr, P::Tiles::enter_thread, nullptr};
        if constexpr (kPackedAhead) kernel.packed_b_bytes = packed_b_bytes, kernel.pack_b = pack_b;
        if constexpr (kExplicit) kernel.expand = expand;
        return kernel;
    }
};

}  // namespace tilewise::cpu::blocked_conv
#pragma GCC visibility pop

#define TILEWISE_CPU_BLOCKED_CONV(Config)                                                               \
    extern "C" __attribute__((visibility("default"))) const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL; \
    const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL = tilewise::cpu::blocked_conv::Conv<Config>::table();
