// SPDX-License-Identifier: MIT
// The border between the host library and every kernel: one argument block for all operations, the share of the work
// that one call does, and the table of functions a built kernel exports. Included by the kernel templates and by the
// host code, so it needs nothing from any system header and holds plain data only. A change of layout or meaning
// raises kKernelAbi, which is part of what a cached binary is looked up by.
#pragma once

namespace tilewise {

using Index = long long;  // 64 bits on every target

inline constexpr int kKernelAbi = 5;

// add and mul take the next D tensor.
enum class KernelEpilogueOp : int {
    none,
    bias,
    relu,
    relu6,
    gelu,
    gelu_tanh,
    silu,
    sigmoid,
    tanh,
    hardswish,
    add,
    mul
};
enum class KernelScale : int { none, tensor, row };
enum class KernelRaster : int { m, n, hilbert };

inline constexpr int kMaxKernelEpilogueOps = 8;
inline constexpr int kMaxKernelDTensors = 4;

// A matrix in memory: element (i, j) of batch entry p is at data[p * batch_stride + i * row_stride + j * col_stride].
// One of the two inner strides is 1. Strides are in elements.
struct KernelMatrix {
    void* data;
    Index row_stride;
    Index col_stride;
    Index batch_stride;
};

inline constexpr int kMaxKernelDims = 3;

// A convolution kernel computes y, dx or dw.
enum class Direction { forward, backward_data, backward_weight };

// An activation of a convolution: element (image, pixel, group, channel), pixels counted through all spatial dimensions.
// Strides are in elements; either the channels or the pixels are neighbours. Both are in an image of one pixel, whose two
// layouts are the same memory: it is always given as channels last, with all channels from pixel to pixel.
struct KernelActivation {
    Index image_stride, pixel_stride, group_stride, channel_stride;

    constexpr bool is_channels_last() const { return channel_stride == 1; }
};

// A grouped convolution as the forward pass defines it, whatever the direction: x has `in` pixels and c channels per
// group, y has `out` pixels and k channels per group, weights are [group][k][tap][c] without gaps:
//     y[o] = sum over taps t of x[o * stride + t * dilation - pad] * w[t]
// Outermost dimension first; dimensions that the problem lacks come first with an extent of 1. All 0 for a GEMM.
struct KernelConv {
    Index images, groups, c, k;
    Index in[kMaxKernelDims], out[kMaxKernelDims], filter[kMaxKernelDims];
    Index stride[kMaxKernelDims], dilation[kMaxKernelDims], pad[kMaxKernelDims];  // pad: before the first pixel
    KernelActivation x, y;
};

// The arguments of one family of GPU kernels, in its own words: a plain struct that host and kernel both know, declared in
// <family>_args.hpp, in a block that is as long for every family, since tensor maps follow it.
inline constexpr int kFamilyWords = 96;
struct FamilyArgs {
    int words[kFamilyWords];

    template <class T>
    static constexpr bool is_room_for = sizeof(T) <= sizeof(words) && alignof(T) <= alignof(int) &&
                                        __is_trivially_copyable(T);

    template <class T>
    void set(const T& args) {
        static_assert(is_room_for<T>);
        *this = {};
        __builtin_memcpy(words, &args, sizeof args);
    }
    template <class T>
    const T& as() const {
        static_assert(is_room_for<T>);
        return reinterpret_cast<const T&>(words);
    }
    bool operator==(const FamilyArgs&) const = default;
};

// C(m x n) = epilogue(alpha * scale_a * scale_b * A(m x k) * B(k x n) + beta * C).
// beta == 0 never reads C. bias has n values and D tensors have C's strides, all in the output's type.
// scale_a has 1 or m values, scale_b 1 or n, in fp32. For a packed B (preshuffle) b.data is what pack_b wrote.
//
// A convolution is the product that problem/facts.hpp calls its GEMM view, `batch` being the groups; A, B and C are
//     forward x, w, y     backward data dy, w, dx     backward weight dy, x, dw
// of which only the output and the weights are matrices with strides (a channels-first output for one image). bias has
// a value for every channel of the output, over all groups. Where the plan names another product (GpuGrid::product), m, n and k, A and B
// are those of that one, and so are the sums in the workspace.
struct KernelArgs {
    Index m, n, k, batch;
    KernelMatrix a, b, c;
    KernelConv conv;
    // C of a channels-first convolution, whose images do not follow each other row by row: rows of an image, and elements from
    // image to image. 0 and 0 otherwise.
    Index c_image_rows, c_image_stride;
    const void* bias;
    Index
        bias_batch_stride;  // elements from one batch entry's bias to the next: groups have their own, batches share one
    const void* d[kMaxKernelDTensors];
    const float* scale_a;
    const float* scale_b;
    float alpha, beta;
    KernelScale scale;
    KernelEpilogueOp epilogue[kMaxKernelEpilogueOps];  // in order, filled up with none
    int split_k;                                       // parts of the reduction; 1 for none
    // Partial sums, split_k x batch x m x n of the accumulator's type; then what expand writes, or packed operands (packing.hpp).
    // Stream-K kernels of a GPU have slots and flags there instead (stream_slots.hpp).
    void* workspace;
    // GPU: the order in which blocks take tiles: along this axis, `raster_group` rows of tiles side by side.
    KernelRaster raster;
    int raster_group;
    // GPU convolutions that stage patches of their input: the output pixels that a block takes together, images first.
    int patch[kMaxKernelDims + 1];
    // GPU: what the plan of the kernel's family worked out, the words of a FamilyArgs. Kernels read them with TILEWISE_FAMILY_ARGS.
    int family_words[kFamilyWords];

    void set_family_args(const FamilyArgs& args) {
        for (int i = 0; i < kFamilyWords; ++i) family_words[i] = args.words[i];
    }
};

// The one way for a kernel to its family's arguments. No function and no struct in the block stand between, since NVIDIA's compiler makes
// other, partly longer code of kernels where the words lie one struct deeper, or behind a call, though it is inlined.
template <class T>
requires(FamilyArgs::is_room_for<T>) using CheckedFamilyArgs = T;
#define TILEWISE_FAMILY_ARGS(Type, args) reinterpret_cast<const tilewise::CheckedFamilyArgs<Type>&>((args).family_words)

// One call computes this: a rectangle of C for a range of batch entries, and with split_k > 1 one part of k, whose
// sums go to the workspace. Rectangles of different calls do not overlap, so calls may run at the same time.
struct KernelPart {
    Index m_begin, m_end;
    Index n_begin, n_end;
    Index batch_begin, batch_end;
    int k_part;  // 0 to split_k - 1
};

// A CPU kernel's shared object exports this under the name kKernelSymbol.
struct CpuKernel {
    int abi;  // kKernelAbi it was built with
    // Bytes of private scratch memory (64-byte aligned) that run and pack_b need for each thread.
    Index (*scratch_bytes)(const KernelArgs* args);
    void (*run)(const KernelArgs* args, const KernelPart* part, void* scratch);
    // After run, where sums meet in the workspace (split_k > 1, two stages): adds up the partial sums of the part's
    // rectangle in a fixed order and applies the epilogue.
    void (*reduce)(const KernelArgs* args, const KernelPart* part);
    // For kernels that read a packed B: its size, and the packing itself (of the n range of the part). Null otherwise.
    Index (*packed_b_bytes)(const KernelArgs* args);
    void (*pack_b)(const KernelArgs* args, const KernelPart* part, void* packed);
    // Tells a thread to get ready before its first run (matrix tile registers need a configuration). May be null.
    int (*enter_thread)();
    // Before run, for kernels that write the operand they gather to the workspace first: rows [m_begin, m_end) of it. Null
    // otherwise.
    void (*expand)(const KernelArgs* args, const KernelPart* part);
};
// The names under which a built kernel is found: a table of functions (CPU) or a kernel (GPU). A GPU kernel takes the
// argument block and, where its launch needs tensor maps, those of A, B and C after it, all by value:
//     tilewise_kernel(KernelArgs args, TensorMap a, TensorMap b, TensorMap c)
// One with split_k > 1 leaves its partial sums to a second kernel, tilewise_reduce(KernelArgs args); one that reads packed
// operands has them packed by another before it, tilewise_pack(KernelArgs args). One that reads a B packed ahead has another
// that packs it, from b to the workspace: tilewise_pack_b(KernelArgs args).
#define TILEWISE_KERNEL_SYMBOL tilewise_kernel
inline constexpr const char* kKernelSymbol = "tilewise_kernel";
inline constexpr const char* kReduceSymbol = "tilewise_reduce";
inline constexpr const char* kPackSymbol = "tilewise_pack";
inline constexpr const char* kPackBSymbol = "tilewise_pack_b";

}  // namespace tilewise
