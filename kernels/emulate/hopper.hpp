// SPDX-License-Identifier: MIT
// The twin of cuda/hopper.hpp for the host: transaction barriers, bulk tensor copies, warpgroup products and clusters on a
// machine of fibers (common/machine.hpp). Fences do nothing here: what they order on a GPU is always in order, so a
// missing one is not seen.
#pragma once
#include "../cuda/descriptor.hpp"
#include "primitives.hpp"

namespace tilewise::cuda {

using TensorMap = EmulatedTensorMap;

// --- threads, clusters, registers -----------------------------------------------------------------------------------

TILEWISE_DEVICE bool elect_one() {
    tilewise_machine->warp_sync();
    return lane_index() == 0;
}
template <int kRegisters>
TILEWISE_DEVICE void give_registers() {}
template <int kRegisters>
TILEWISE_DEVICE void take_registers() {}

TILEWISE_DEVICE unsigned cluster_rank() { return tilewise_machine->me->cluster_rank; }
TILEWISE_DEVICE void cluster_sync() { tilewise_machine->cluster_sync(); }
TILEWISE_DEVICE void cluster_sync_apart() { cluster_sync(); }
// An address with its block's rank, which no address of a block has.
namespace emulate {

inline constexpr int kRankShift = 24;

TILEWISE_DEVICE const u8* in_cluster(unsigned from, unsigned bytes) {
    return tilewise_machine->cluster_shared(from & ((1u << kRankShift) - 1), (from >> kRankShift) - 1, bytes);
}

}  // namespace emulate
TILEWISE_DEVICE unsigned in_block(unsigned address, unsigned rank) {
    return address | (rank + 1) << emulate::kRankShift;
}
TILEWISE_DEVICE float load_cluster_float(unsigned from) {
    float x;
    __builtin_memcpy(&x, emulate::in_cluster(from, 4), 4);
    return x;
}
TILEWISE_DEVICE void load_cluster_float4(unsigned from, float (&x)[4]) {
    __builtin_memcpy(x, emulate::in_cluster(from, 16), 16);
}
TILEWISE_DEVICE void named_sync(int barrier, int threads) { tilewise_machine->block_sync(barrier, threads); }
TILEWISE_DEVICE void named_arrive(int barrier, int threads) { tilewise_machine->block_arrive(barrier, threads); }

// --- transaction barriers -------------------------------------------------------------------------------------------

TILEWISE_DEVICE void barrier_init(unsigned barrier, unsigned arrivals) {
    tilewise_machine->barrier_init(barrier, arrivals);
}
TILEWISE_DEVICE void barrier_init_fence() {}
TILEWISE_DEVICE void barrier_expect(unsigned barrier, unsigned bytes) {
    tilewise_machine->barrier_arrive(barrier, cluster_rank(), bytes);
}
TILEWISE_DEVICE void barrier_arrive(unsigned barrier) { tilewise_machine->barrier_arrive(barrier, cluster_rank(), 0); }
TILEWISE_DEVICE void barrier_arrive_remote(unsigned barrier, unsigned rank) {
    tilewise_machine->barrier_arrive(barrier, rank, 0);
}
TILEWISE_DEVICE void barrier_wait(unsigned barrier, unsigned parity) {
    tilewise_machine->barrier_wait(barrier, parity);
}

// --- bulk tensor copies ---------------------------------------------------------------------------------------------

TILEWISE_DEVICE void prefetch_map(const TensorMap&) {}
TILEWISE_DEVICE void prefetch_box(const TensorMap&, int, int, int, unsigned long long) {}
TILEWISE_DEVICE void copy_box_multicast(unsigned to, const TensorMap& map, unsigned barrier, int x, int y, int z,
                                        unsigned short blocks, unsigned long long) {
    const int at[kMaxTensorDims] = {x, y, z};
    tilewise_machine->load_box(to, &map, barrier, at, nullptr, blocks);
}
TILEWISE_DEVICE void copy_box(unsigned to, const TensorMap& map, unsigned barrier, int x, int y, int z,
                              unsigned long long keep) {
    copy_box_multicast(to, map, barrier, x, y, z, static_cast<unsigned short>(1u << cluster_rank()), keep);
}
TILEWISE_DEVICE void copy_pixel_box(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int h, int d,
                                    int image, unsigned long long) {
    const int at[kMaxTensorDims] = {c, w, h, d, image};
    tilewise_machine->load_box(to, &map, barrier, at, nullptr, 1u << cluster_rank());
}
TILEWISE_DEVICE void copy_bytes(unsigned to, const void* from, unsigned bytes, unsigned barrier, unsigned long long) {
    TensorMap line{};
    line.data = static_cast<unsigned char*>(const_cast<void*>(from));
    line.dims = line.element_bytes = 1;
    line.size[0] = line.box[0] = static_cast<int>(bytes);
    const int at[kMaxTensorDims] = {};
    tilewise_machine->load_box(to, &line, barrier, at, nullptr, 1u << cluster_rank());
}
TILEWISE_DEVICE void copy_im2col(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int image,
                                 unsigned short offset_w, unsigned long long) {
    const int at[kMaxTensorDims] = {c, w, image}, offset[] = {offset_w, 0, 0};
    tilewise_machine->load_box(to, &map, barrier, at, offset, 1u << cluster_rank());
}
TILEWISE_DEVICE void copy_im2col_multicast(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int h,
                                           int image, unsigned short offset_w, unsigned short offset_h,
                                           unsigned short blocks, unsigned long long) {
    const int at[kMaxTensorDims] = {c, w, h, image}, offset[] = {offset_w, offset_h, 0};
    tilewise_machine->load_box(to, &map, barrier, at, offset, blocks);
}
TILEWISE_DEVICE void copy_im2col(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int h, int image,
                                 unsigned short offset_w, unsigned short offset_h, unsigned long long keep) {
    copy_im2col_multicast(to, map, barrier, c, w, h, image, offset_w, offset_h,
                          static_cast<unsigned short>(1u << cluster_rank()), keep);
}
TILEWISE_DEVICE void copy_im2col(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int h, int d,
                                 int image, unsigned short offset_w, unsigned short offset_h, unsigned short offset_d,
                                 unsigned long long) {
    const int at[kMaxTensorDims] = {c, w, h, d, image}, offset[] = {offset_w, offset_h, offset_d};
    tilewise_machine->load_box(to, &map, barrier, at, offset, 1u << cluster_rank());
}
TILEWISE_DEVICE void store_box(const TensorMap& map, unsigned from, int x, int y, int z) {
    const int at[kMaxTensorDims] = {x, y, z};
    tilewise_machine->store_box(&map, from, at);
}
TILEWISE_DEVICE void store_pixel_box(const TensorMap& map, unsigned from, int c, int w, int h, int d, int image) {
    const int at[kMaxTensorDims] = {c, w, h, d, image};
    tilewise_machine->store_box(&map, from, at);
}
TILEWISE_DEVICE void store_commit() { tilewise_machine->commit_stores(); }
template <int kGroups>
TILEWISE_DEVICE void store_wait_read() {
    tilewise_machine->wait_stores(kGroups, true);
}
template <int kGroups>
TILEWISE_DEVICE void store_wait() {
    tilewise_machine->wait_stores(kGroups, false);
}
TILEWISE_DEVICE void async_proxy_fence() {}

// --- warpgroup matrix products --------------------------------------------------------------------------------------

TILEWISE_DEVICE void wgmma_fence() {}
TILEWISE_DEVICE void wgmma_commit() { tilewise_machine->warpgroup_commit(); }
template <int kGroups>
TILEWISE_DEVICE void wgmma_wait() {
    tilewise_machine->warpgroup_wait(kGroups);
}
TILEWISE_DEVICE void pin(float&) {}
TILEWISE_DEVICE void pin(int&) {}

template <class A, class B, int kN, int kTransA, int kTransB>
TILEWISE_DEVICE void wgmma(SumOf<A> (&d)[kN / 2], unsigned long long a, unsigned long long b, bool keep) {
    static_assert(kSame<A, B> || (kIs8BitFloat<A> && kIs8BitFloat<B>), "types that the matrix unit multiplies");
    static_assert(A::bytes == 2 || (kTransA == 0 && kTransB == 0), "both operands along k");
    tilewise_machine->warpgroup_multiply(gpu::emulate::kElement<A>, gpu::emulate::kElement<B>, kN, kTransA != 0,
                                         kTransB != 0, d, a, b, keep);
}

}  // namespace tilewise::cuda
