// SPDX-License-Identifier: MIT
// The border between an emulated GPU (src/device/emulated) and a GPU kernel that was compiled for the host with the twins
// of the instructions (kernels/emulate): what the calling thread is, and a function for everything that concerns other
// threads or takes effect later. Included by both sides; the kernel exports a variable of type Machine*, tilewise_machine,
// which is set before it runs. Needs no system header.
#pragma once
#include "args.hpp"
#include "element.hpp"

namespace tilewise {

// Where a block's shared memory begins in its own addresses: not at 0, so that a lost address is seen.
inline constexpr unsigned kEmulatedSharedStart = 1024;
// Bytes that nobody has written: NaN in every floating-point type.
inline constexpr unsigned char kEmulatedPoison = 0xff;

inline constexpr int kMaxTensorDims = 5;

// A tensor as the copy engine sees it: the twin of CUtensorMap.
struct EmulatedTensorMap {
    unsigned char* data;
    int dims;
    int element_bytes;
    Index size[kMaxTensorDims];          // innermost dimension first
    Index stride_bytes[kMaxTensorDims];  // that of the innermost is element_bytes
    int box[kMaxTensorDims];
    int swizzle_bytes;  // 128, 64, 32, or 0 for none
    // Loads of pixels (im2col): box[0] channels of so many pixels, counted in steps through the dimensions between the first
    // and the last, from `lower` on to the tensor's end plus `upper`. 0 for boxes.
    int pixels;
    int lower[kMaxTensorDims - 2], upper[kMaxTensorDims - 2], step[kMaxTensorDims - 2];
};

struct EmulatedThread {
    int thread, block_threads;
    unsigned block, block_count, cluster_rank;
    unsigned char* shared;
    unsigned shared_bytes;
};

struct Machine {
    const EmulatedThread* me;  // the thread that runs now

    // Ends the launch with an error; does not return. `what` may have two places {} for the numbers.
    void (*fault)(const char* what, unsigned long long first, unsigned long long second);
    void (*check_global)(const void* at, int bytes);  // that it is memory of the device, and a multiple of the size
    void (*yield)();  // lets others go first: for loops that look at memory again and again

    void (*block_sync)(int barrier, int threads);  // threads 0: all of the block
    void (*block_arrive)(int barrier, int threads);
    void (*warp_sync)();
    unsigned (*shuffle)(unsigned value, int from_lane);
    void (*cluster_sync)();
    // So many bytes of the shared memory of another block of the cluster.
    unsigned char* (*cluster_shared)(unsigned address, unsigned rank, unsigned bytes);

    void (*copy_async)(unsigned to, const void* from, int bytes, int valid);
    void (*commit_copies)();
    void (*wait_copies)(int pending);

    void (*load_matrices)(unsigned row, unsigned* to, int count, bool trans);
    void (*store_matrices)(unsigned row, const unsigned* from, int count, bool trans);
    void (*multiply_add)(KernelDType a_type, KernelDType b_type, void* sum, const unsigned* a, const unsigned* b);
    // A wave of AMD's multiplies: squares of `side` sums, 16 bytes of each operand in a lane.
    void (*multiply_squares)(KernelDType a_type, KernelDType b_type, int side, void* sums, const unsigned* a,
                             const unsigned* b);

    void (*barrier_init)(unsigned barrier, unsigned arrivals);
    void (*barrier_arrive)(unsigned barrier, unsigned rank, unsigned bytes);  // after expecting so many bytes more
    void (*barrier_wait)(unsigned barrier, unsigned parity);

    // Boxes begin at `at`, innermost coordinate first, pixels are moved by `offset` from there (null for boxes); a load counts
    // on the barrier of every block of the mask.
    void (*load_box)(unsigned to, const EmulatedTensorMap* map, unsigned barrier, const int* at, const int* offset,
                     unsigned blocks);
    void (*store_box)(const EmulatedTensorMap* map, unsigned from, const int* at);
    void (*commit_stores)();
    void (*wait_stores)(int pending, bool only_reads);

    // A warpgroup multiplies; `a` and `b` are descriptors, `n` the columns, `trans` where the operand lies along them.
    void (*warpgroup_multiply)(KernelDType a_type, KernelDType b_type, int n, bool trans_a, bool trans_b, void* sums,
                               unsigned long long a, unsigned long long b, bool keep);
    void (*warpgroup_commit)();
    void (*warpgroup_wait)(int pending);
};

}  // namespace tilewise
