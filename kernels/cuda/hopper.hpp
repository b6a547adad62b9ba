// SPDX-License-Identifier: MIT
// Hopper's own instructions (sm_90a), one function each: transaction barriers, bulk tensor copies, warpgroup matrix products,
// register hand-over, clusters. Beside primitives.hpp the only place with PTX; kernels/emulate has its host twin.
#pragma once

#include "descriptor.hpp"
#include "primitives.hpp"

#if !defined(TILEWISE_EMULATED)  // then kernels/emulate/hopper.hpp is here already

namespace tilewise::cuda {

// A map tells a bulk tensor copy about a tensor. The driver makes it; it is passed by value as a kernel parameter.
struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// --- threads, clusters, registers -----------------------------------------------------------------------------------

// One thread of a warp that is all here, the same every time.
TILEWISE_DEVICE bool elect_one() {
    unsigned elected;
    asm volatile("{\n .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.b32 %0, 1, 0, p;\n}\n" : "=r"(elected));
    return elected != 0;
}

template <int kRegisters>
TILEWISE_DEVICE void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
TILEWISE_DEVICE void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

TILEWISE_DEVICE unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// All threads of the cluster; what they wrote before is seen after.
TILEWISE_DEVICE void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The same where threads of a warp may come one by one.
TILEWISE_DEVICE void cluster_sync_apart() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// The same place in the shared memory of another block of the cluster, and what is there.
TILEWISE_DEVICE unsigned in_block(unsigned address, unsigned rank) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}
TILEWISE_DEVICE float load_cluster_float(unsigned from) {
    float x;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
    return x;
}
TILEWISE_DEVICE void load_cluster_float4(unsigned from, float (&x)[4]) {
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                 : "r"(from)
                 : "memory");
}

// Threads of one named barrier (1 to 15; 0 is the block's own).
TILEWISE_DEVICE void named_sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
TILEWISE_DEVICE void named_arrive(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// --- transaction barriers (mbarrier), by their address in shared memory --------------------------------------------

TILEWISE_DEVICE void barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
// Makes the initialisation visible to the copy engine and to the other blocks of the cluster.
TILEWISE_DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
TILEWISE_DEVICE void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
TILEWISE_DEVICE void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// On the barrier at the same place in another block of the cluster. Only says that shared memory has been read, so it needs
// none of the fences that release at cluster scope would bring.
TILEWISE_DEVICE void barrier_arrive_remote(unsigned barrier, unsigned rank) {
    asm volatile(
        "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n"
        " mbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" ::"r"(barrier),
        "r"(rank)
        : "memory");
}
// Waits for the end of the phase with this parity.
TILEWISE_DEVICE void barrier_wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n .reg .pred done;\nagain:\n"
        " mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        " @done bra ready;\n bra again;\nready:\n}\n" ::"r"(barrier),
        "r"(parity)
        : "memory");
}
// --- bulk tensor copies (TMA) ---------------------------------------------------------------------------------------

TILEWISE_DEVICE void prefetch_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
// A box at (x, y, z) to shared memory; its bytes count on the barrier. What lies outside the tensor arrives as zeros.
TILEWISE_DEVICE void copy_box(unsigned to, const TensorMap& map, unsigned barrier, int x, int y, int z,
                              unsigned long long keep) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(keep)
        : "memory");
}
// The same box to the L2 cache only, where it is kept up to date whoever writes it: may come before griddep_wait.
TILEWISE_DEVICE void prefetch_box(const TensorMap& map, int x, int y, int z, unsigned long long keep) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.L2::cache_hint [%0, {%1, %2, %3}], %4;" ::"l"(&map),
                 "r"(x), "r"(y), "r"(z), "l"(keep)
                 : "memory");
}
// A box of pixels at (w, h, d, image) and of each some channels from c on, likewise.
TILEWISE_DEVICE void copy_pixel_box(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int h, int d,
                                    int image, unsigned long long keep) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(d), "r"(image), "l"(keep)
        : "memory");
}
// Neighbouring bytes, likewise; addresses and number are multiples of 16.
TILEWISE_DEVICE void copy_bytes(unsigned to, const void* from, unsigned bytes, unsigned barrier,
                                unsigned long long keep) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(to),
        "l"(from), "r"(bytes), "r"(barrier), "l"(keep)
        : "memory");
}
// The same to the same place in every block of the mask, counting on the barrier of each.
TILEWISE_DEVICE void copy_box_multicast(unsigned to, const TensorMap& map, unsigned barrier, int x, int y, int z,
                                        unsigned short blocks, unsigned long long keep) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint"
        " [%0], [%1, {%3, %4, %5}], [%2], %6, %7;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks), "l"(keep)
        : "memory");
}
// A column of pixels, and of each some channels from c on, of a map in im2col mode: pixels are counted from (w, h, d, image)
// through the map's bounding box, in its steps, and each is then moved by the offsets. Those outside the tensor arrive as zeros.
TILEWISE_DEVICE void copy_im2col(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int image,
                                 unsigned short offset_w, unsigned long long keep) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%3, %4, %5}], [%2], {%6}, %7;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(c), "r"(w), "r"(image), "h"(offset_w), "l"(keep)
        : "memory");
}
TILEWISE_DEVICE void copy_im2col(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int h, int image,
                                 unsigned short offset_w, unsigned short offset_h, unsigned long long keep) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(image), "h"(offset_w), "h"(offset_h), "l"(keep)
        : "memory");
}
TILEWISE_DEVICE void copy_im2col(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int h, int d,
                                 int image, unsigned short offset_w, unsigned short offset_h, unsigned short offset_d,
                                 unsigned long long keep) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10}, %11;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(d), "r"(image), "h"(offset_w), "h"(offset_h),
        "h"(offset_d), "l"(keep)
        : "memory");
}
// The same to the same place in every block of the mask, counting on the barrier of each.
TILEWISE_DEVICE void copy_im2col_multicast(unsigned to, const TensorMap& map, unsigned barrier, int c, int w, int h,
                                           int image, unsigned short offset_w, unsigned short offset_h,
                                           unsigned short blocks, unsigned long long keep) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9, %10;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(image), "h"(offset_w), "h"(offset_h), "h"(blocks),
        "l"(keep)
        : "memory");
}
// A box from shared memory to the tensor; what lies outside is not written.
TILEWISE_DEVICE void store_box(const TensorMap& map, unsigned from, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
                 "r"(from), "r"(x), "r"(y), "r"(z)
                 : "memory");
}
TILEWISE_DEVICE void store_pixel_box(const TensorMap& map, unsigned from, int c, int w, int h, int d, int image) {
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
                 "r"(from), "r"(c), "r"(w), "r"(h), "r"(d), "r"(image)
                 : "memory");
}
TILEWISE_DEVICE void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until at most this many of the thread's store groups still read shared memory.
template <int kGroups>
TILEWISE_DEVICE void store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}
template <int kGroups>
TILEWISE_DEVICE void store_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kGroups) : "memory");
}
// Ordinary writes to shared memory become visible to copies and matrix products that start afterwards.
TILEWISE_DEVICE void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// --- warpgroup matrix products (wgmma) ------------------------------------------------------------------------------

TILEWISE_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TILEWISE_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kGroups>
TILEWISE_DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}
// Keeps the compiler from moving uses of an accumulator across a fence or a wait.
TILEWISE_DEVICE void pin(float& value) { asm volatile("" : "+f"(value)::"memory"); }
TILEWISE_DEVICE void pin(int& value) { asm volatile("" : "+r"(value)::"memory"); }

// d(64 x n) = a(64 x depth) * b(depth x n) + (keep ? d : 0), depth being 32 bytes of elements. Thread t of the warpgroup holds,
// for each 8 columns j, rows r = 16 * (t / 32) + t % 32 / 4 and r + 8, columns c = 8j + 2 * (t % 4) and the next: d[4j] = (r, c),
// (r, c+1), (r+8, c), (r+8, c+1). Only operands of 16 bits may lie along m or n (trans = 1); fp32 is cut to tf32.
#define TW_D10(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9"
#define TW_D0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9"

#define TW_D8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define TW_D12 TW_D0 ", %10, %11"
#define TW_D16 TW_D0 ", %10, %11, %12, %13, %14, %15"
#define TW_D20 TW_D0 ", " TW_D10(1)
#define TW_D24 TW_D0 ", " TW_D10(1) ", %20, %21, %22, %23"
#define TW_D28 TW_D20 ", %20, %21, %22, %23, %24, %25, %26, %27"
#define TW_D32 TW_D0 ", " TW_D10(1) ", " TW_D10(2) ", %30, %31"
#define TW_D40 TW_D0 ", " TW_D10(1) ", " TW_D10(2) ", " TW_D10(3)
#define TW_D48 TW_D40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define TW_D52 TW_D40 ", " TW_D10(4) ", %50, %51"
#define TW_D56 TW_D40 ", " TW_D10(4) ", %50, %51, %52, %53, %54, %55"
#define TW_D64 TW_D40 ", " TW_D10(4) ", " TW_D10(5) ", %60, %61, %62, %63"
#define TW_D72 TW_D40 ", " TW_D10(4) ", " TW_D10(5) ", " TW_D10(6) ", %70, %71"
#define TW_D80 TW_D40 ", " TW_D10(4) ", " TW_D10(5) ", " TW_D10(6) ", " TW_D10(7)
#define TW_D88 TW_D80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define TW_D96 TW_D80 ", " TW_D10(8) ", %90, %91, %92, %93, %94, %95"
#define TW_D100 TW_D80 ", " TW_D10(8) ", " TW_D10(9)
#define TW_D104 TW_D100 ", %100, %101, %102, %103"
#define TW_D112 TW_D100 ", " TW_D10(10) ", %110, %111"
#define TW_D128 TW_D100 ", " TW_D10(10) ", " TW_D10(11) ", %120, %121, %122, %123, %124, %125, %126, %127"

// The same registers as outputs, by their numbers: sums for an index take a compiler as long again to read.
#define TW_R2(K, i, j) "+" K(d[i]), "+" K(d[j])
#define TW_R4(K, i, j, k, l) TW_R2(K, i, j), TW_R2(K, k, l)
#define TW_R10(K, t) TW_R4(K, t##0, t##1, t##2, t##3), TW_R4(K, t##4, t##5, t##6, t##7), TW_R2(K, t##8, t##9)
#define TW_R8(K) TW_R4(K, 0, 1, 2, 3), TW_R4(K, 4, 5, 6, 7)
#define TW_R12(K) TW_R10(K, ), TW_R2(K, 10, 11)
#define TW_R16(K) TW_R12(K), TW_R4(K, 12, 13, 14, 15)
#define TW_R20(K) TW_R10(K, ), TW_R10(K, 1)
#define TW_R24(K) TW_R20(K), TW_R4(K, 20, 21, 22, 23)
#define TW_R28(K) TW_R24(K), TW_R4(K, 24, 25, 26, 27)
#define TW_R32(K) TW_R20(K), TW_R10(K, 2), TW_R2(K, 30, 31)
#define TW_R40(K) TW_R20(K), TW_R10(K, 2), TW_R10(K, 3)
#define TW_R48(K) TW_R40(K), TW_R4(K, 40, 41, 42, 43), TW_R4(K, 44, 45, 46, 47)
#define TW_R52(K) TW_R40(K), TW_R10(K, 4), TW_R2(K, 50, 51)
#define TW_R56(K) TW_R52(K), TW_R4(K, 52, 53, 54, 55)
#define TW_R64(K) TW_R40(K), TW_R10(K, 4), TW_R10(K, 5), TW_R4(K, 60, 61, 62, 63)
#define TW_R72(K) TW_R40(K), TW_R10(K, 4), TW_R10(K, 5), TW_R10(K, 6), TW_R2(K, 70, 71)
#define TW_R80(K) TW_R40(K), TW_R10(K, 4), TW_R10(K, 5), TW_R10(K, 6), TW_R10(K, 7)
#define TW_R88(K) TW_R80(K), TW_R4(K, 80, 81, 82, 83), TW_R4(K, 84, 85, 86, 87)
#define TW_R96(K) TW_R80(K), TW_R10(K, 8), TW_R4(K, 90, 91, 92, 93), TW_R2(K, 94, 95)
#define TW_R100(K) TW_R80(K), TW_R10(K, 8), TW_R10(K, 9)
#define TW_R104(K) TW_R100(K), TW_R4(K, 100, 101, 102, 103)
#define TW_R112(K) TW_R100(K), TW_R10(K, 10), TW_R2(K, 110, 111)
#define TW_R128(K) TW_R100(K), TW_R10(K, 10), TW_R10(K, 11), TW_R4(K, 120, 121, 122, 123), TW_R4(K, 124, 125, 126, 127)

// n, the types, what follows `keep`, the list of n/2 registers, the numbers of the five operands behind them, the outputs
#define TW_WGMMA(N, TYPES, TAIL, LIST, A, B, KEEP, TA, TB, ...)                             \
    asm volatile("{\n .reg .pred keep;\n setp.ne.b32 keep, %" #KEEP                         \
                 ", 0;\n"                                                                   \
                 " wgmma.mma_async.sync.aligned.m64n" #N TYPES " {" LIST "}, %" #A ", %" #B \
                 ", keep" TAIL(TA, TB) ";\n}\n"                                             \
                 : __VA_ARGS__                                                              \
                 : "l"(a), "l"(b), "r"(static_cast<int>(keep)), "n"(kTransA), "n"(kTransB))
#define TW_TAIL_HALF(TA, TB) ", 1, 1, %" #TA ", %" #TB
#define TW_TAIL_REAL(TA, TB) ", 1, 1"
#define TW_TAIL_INT(TA, TB) ""

#define TW_WGMMA_0(T, TAIL, K)  // a kernel without
#define TW_WGMMA_16(T, TAIL, K) TW_WGMMA(16, T, TAIL, TW_D8, 8, 9, 10, 11, 12, TW_R8(K))
#define TW_WGMMA_24(T, TAIL, K) TW_WGMMA(24, T, TAIL, TW_D12, 12, 13, 14, 15, 16, TW_R12(K))
#define TW_WGMMA_32(T, TAIL, K) TW_WGMMA(32, T, TAIL, TW_D16, 16, 17, 18, 19, 20, TW_R16(K))
#define TW_WGMMA_40(T, TAIL, K) TW_WGMMA(40, T, TAIL, TW_D20, 20, 21, 22, 23, 24, TW_R20(K))
#define TW_WGMMA_48(T, TAIL, K) TW_WGMMA(48, T, TAIL, TW_D24, 24, 25, 26, 27, 28, TW_R24(K))
#define TW_WGMMA_56(T, TAIL, K) TW_WGMMA(56, T, TAIL, TW_D28, 28, 29, 30, 31, 32, TW_R28(K))
#define TW_WGMMA_64(T, TAIL, K) TW_WGMMA(64, T, TAIL, TW_D32, 32, 33, 34, 35, 36, TW_R32(K))
#define TW_WGMMA_80(T, TAIL, K) TW_WGMMA(80, T, TAIL, TW_D40, 40, 41, 42, 43, 44, TW_R40(K))
#define TW_WGMMA_96(T, TAIL, K) TW_WGMMA(96, T, TAIL, TW_D48, 48, 49, 50, 51, 52, TW_R48(K))
#define TW_WGMMA_104(T, TAIL, K) TW_WGMMA(104, T, TAIL, TW_D52, 52, 53, 54, 55, 56, TW_R52(K))
#define TW_WGMMA_112(T, TAIL, K) TW_WGMMA(112, T, TAIL, TW_D56, 56, 57, 58, 59, 60, TW_R56(K))
#define TW_WGMMA_128(T, TAIL, K) TW_WGMMA(128, T, TAIL, TW_D64, 64, 65, 66, 67, 68, TW_R64(K))
#define TW_WGMMA_144(T, TAIL, K) TW_WGMMA(144, T, TAIL, TW_D72, 72, 73, 74, 75, 76, TW_R72(K))
#define TW_WGMMA_160(T, TAIL, K) TW_WGMMA(160, T, TAIL, TW_D80, 80, 81, 82, 83, 84, TW_R80(K))
#define TW_WGMMA_176(T, TAIL, K) TW_WGMMA(176, T, TAIL, TW_D88, 88, 89, 90, 91, 92, TW_R88(K))
#define TW_WGMMA_192(T, TAIL, K) TW_WGMMA(192, T, TAIL, TW_D96, 96, 97, 98, 99, 100, TW_R96(K))
#define TW_WGMMA_208(T, TAIL, K) TW_WGMMA(208, T, TAIL, TW_D104, 104, 105, 106, 107, 108, TW_R104(K))
#define TW_WGMMA_224(T, TAIL, K) TW_WGMMA(224, T, TAIL, TW_D112, 112, 113, 114, 115, 116, TW_R112(K))
#define TW_WGMMA_256(T, TAIL, K) TW_WGMMA(256, T, TAIL, TW_D128, 128, 129, 130, 131, 132, TW_R128(K))

// Reading 128 instructions of up to 128 registers takes a compiler 50 ms: a source that needs those of one n only says so.
#if defined(TILEWISE_WGMMA_COLUMNS)
#define TW_WGMMA_JOIN(N) TW_WGMMA_##N
#define TW_WGMMA_OF(N) TW_WGMMA_JOIN(N)
#define TW_WGMMA_ALL(T, TAIL, K) TW_WGMMA_OF(TILEWISE_WGMMA_COLUMNS)(T, TAIL, K)
#else
#define TW_WGMMA_ALL(T, TAIL, K)                       \
    if constexpr (kN == 16) TW_WGMMA_16(T, TAIL, K);   \
    if constexpr (kN == 24) TW_WGMMA_24(T, TAIL, K);   \
    if constexpr (kN == 32) TW_WGMMA_32(T, TAIL, K);   \
    if constexpr (kN == 40) TW_WGMMA_40(T, TAIL, K);   \
    if constexpr (kN == 48) TW_WGMMA_48(T, TAIL, K);   \
    if constexpr (kN == 56) TW_WGMMA_56(T, TAIL, K);   \
    if constexpr (kN == 64) TW_WGMMA_64(T, TAIL, K);   \
    if constexpr (kN == 80) TW_WGMMA_80(T, TAIL, K);   \
    if constexpr (kN == 96) TW_WGMMA_96(T, TAIL, K);   \
    if constexpr (kN == 104) TW_WGMMA_104(T, TAIL, K); \
    if constexpr (kN == 112) TW_WGMMA_112(T, TAIL, K); \
    if constexpr (kN == 128) TW_WGMMA_128(T, TAIL, K); \
    if constexpr (kN == 144) TW_WGMMA_144(T, TAIL, K); \
    if constexpr (kN == 160) TW_WGMMA_160(T, TAIL, K); \
    if constexpr (kN == 176) TW_WGMMA_176(T, TAIL, K); \
    if constexpr (kN == 192) TW_WGMMA_192(T, TAIL, K); \
    if constexpr (kN == 208) TW_WGMMA_208(T, TAIL, K); \
    if constexpr (kN == 224) TW_WGMMA_224(T, TAIL, K); \
    if constexpr (kN == 256) TW_WGMMA_256(T, TAIL, K)
#endif

template <class A, class B, int kN, int kTransA, int kTransB>
TILEWISE_DEVICE void wgmma(SumOf<A> (&d)[kN / 2], unsigned long long a, unsigned long long b, bool keep) {
    static_assert(kSame<A, B> || (kIs8BitFloat<A> && kIs8BitFloat<B>), "types that the matrix unit multiplies");
    static_assert(A::bytes == 2 || (kTransA == 0 && kTransB == 0), "both operands along k");
#if defined(TILEWISE_WGMMA_COLUMNS)
    static_assert(kN == TILEWISE_WGMMA_COLUMNS, "products as wide as the source said");
#endif
    if constexpr (kSame<A, Bf16>) {
        TW_WGMMA_ALL("k16.f32.bf16.bf16", TW_TAIL_HALF, "f");
    } else if constexpr (kSame<A, Fp16>) {
        TW_WGMMA_ALL("k16.f32.f16.f16", TW_TAIL_HALF, "f");
    } else if constexpr (kSame<A, Int8>) {
        TW_WGMMA_ALL("k32.s32.s8.s8", TW_TAIL_INT, "r");
    } else if constexpr (kSame<A, Fp32>) {
        TW_WGMMA_ALL("k8.f32.tf32.tf32", TW_TAIL_REAL, "f");
    } else if constexpr (kSame<A, Fp8> && kSame<B, Fp8>) {
        TW_WGMMA_ALL("k32.f32.e4m3.e4m3", TW_TAIL_REAL, "f");
    } else if constexpr (kSame<A, Fp8>) {
        TW_WGMMA_ALL("k32.f32.e4m3.e5m2", TW_TAIL_REAL, "f");
    } else if constexpr (kSame<B, Fp8>) {
        TW_WGMMA_ALL("k32.f32.e5m2.e4m3", TW_TAIL_REAL, "f");
    } else {
        TW_WGMMA_ALL("k32.f32.e5m2.e5m2", TW_TAIL_REAL, "f");
    }
}

}  // namespace tilewise::cuda

#endif  // TILEWISE_EMULATED
