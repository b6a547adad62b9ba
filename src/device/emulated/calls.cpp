// SPDX-License-Identifier: MIT
#include "device/emulated/calls.hpp"

#include <fmt/core.h>

#include "device/emulated/grid.hpp"

namespace tilewise::emulated {

// Function pointers are free functions; each finds the launch that is under way.
struct Calls {
    static Grid& grid() { return Grid::current(); }

    static void fault(const char* what, unsigned long long first, unsigned long long second) {
        grid().fault(fmt::format(fmt::runtime(what), first, second));
    }
    static void check_global(const void* at, int bytes) { grid().check_global(at, bytes); }
    static void yield() { grid().yield(); }
    static void block_sync(int barrier, int threads) { grid().block_sync(barrier, threads, true); }
    static void block_arrive(int barrier, int threads) { grid().block_sync(barrier, threads, false); }
    static void warp_sync() { grid().warp_sync(); }
    static unsigned shuffle(unsigned value, int from_lane) { return grid().shuffle(value, from_lane); }
    static void cluster_sync() { grid().cluster_sync(); }
    static unsigned char* cluster_shared(unsigned address, unsigned rank, unsigned bytes) {
        return grid().cluster_shared(address, rank, bytes);
    }
    static void copy_async(unsigned to, const void* from, int bytes, int valid) {
        grid().copy_async(to, from, bytes, valid);
    }
    static void commit_copies() { grid().running_->copies.commit(); }
    static void wait_copies(int pending) { grid().wait_copies(pending); }
    static void load_matrices(unsigned row, unsigned* to, int count, bool trans) {
        grid().load_matrices(row, to, count, trans);
    }
    static void store_matrices(unsigned row, const unsigned* from, int count, bool trans) {
        grid().store_matrices(row, from, count, trans);
    }
    static void multiply_add(KernelDType a_type, KernelDType b_type, void* sum, const unsigned* a, const unsigned* b) {
        grid().multiply_add(a_type, b_type, sum, a, b);
    }
    static void multiply_squares(KernelDType a_type, KernelDType b_type, int side, void* sums, const unsigned* a,
                                 const unsigned* b) {
        grid().multiply_squares(a_type, b_type, side, sums, a, b);
    }
    static void barrier_init(unsigned barrier, unsigned arrivals) { grid().barrier_init(barrier, arrivals); }
    static void barrier_arrive(unsigned barrier, unsigned rank, unsigned bytes) {
        grid().barrier_arrive(barrier, rank, bytes);
    }
    static void barrier_wait(unsigned barrier, unsigned parity) { grid().barrier_wait(barrier, parity); }
    static void load_box(unsigned to, const EmulatedTensorMap* map, unsigned barrier, const int* at, const int* offset,
                         unsigned blocks) {
        grid().load_box(to, *map, barrier, at, offset, blocks);
    }
    static void store_box(const EmulatedTensorMap* map, unsigned from, const int* at) {
        grid().store_box(*map, from, at);
    }
    static void commit_stores() { grid().running_->stores.commit(); }
    // Writes are finished with the reads: nobody else looks at them before the launch has ended.
    static void wait_stores(int pending, bool) { grid().wait_stores(pending); }
    static void warpgroup_multiply(KernelDType a_type, KernelDType b_type, int n, bool trans_a, bool trans_b,
                                   void* sums, unsigned long long a, unsigned long long b, bool keep) {
        grid().warpgroup_multiply(a_type, b_type, n, trans_a, trans_b, sums, a, b, keep);
    }
    static void warpgroup_commit() { grid().warpgroup_commit(); }
    static void warpgroup_wait(int pending) { grid().warpgroup_wait(pending); }
};

Machine machine_calls() {
    Machine m{};
    m.fault = Calls::fault;
    m.check_global = Calls::check_global;
    m.yield = Calls::yield;
    m.block_sync = Calls::block_sync, m.block_arrive = Calls::block_arrive;
    m.warp_sync = Calls::warp_sync, m.shuffle = Calls::shuffle, m.cluster_sync = Calls::cluster_sync;
    m.cluster_shared = Calls::cluster_shared;
    m.copy_async = Calls::copy_async, m.commit_copies = Calls::commit_copies, m.wait_copies = Calls::wait_copies;
    m.load_matrices = Calls::load_matrices, m.store_matrices = Calls::store_matrices;
    m.multiply_add = Calls::multiply_add, m.multiply_squares = Calls::multiply_squares;
    m.barrier_init = Calls::barrier_init, m.barrier_arrive = Calls::barrier_arrive;
    m.barrier_wait = Calls::barrier_wait;
    m.load_box = Calls::load_box, m.store_box = Calls::store_box;
    m.commit_stores = Calls::commit_stores, m.wait_stores = Calls::wait_stores;
    m.warpgroup_multiply = Calls::warpgroup_multiply;
    m.warpgroup_commit = Calls::warpgroup_commit, m.warpgroup_wait = Calls::warpgroup_wait;
    return m;
}

}  // namespace tilewise::emulated
