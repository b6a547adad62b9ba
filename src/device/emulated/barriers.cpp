// SPDX-License-Identifier: MIT
// Threads of the emulated GPU wait for these: each other (a block's barriers, the cluster's, a warp), and the transaction
// barriers on which copies count their bytes.
#include <fmt/core.h>

#include "device/emulated/grid.hpp"

namespace tilewise::emulated {

void Grid::release(ThreadBarrier& barrier, int expected) {
    if (barrier.arrived == 0 || barrier.arrived < expected) return;
    barrier.arrived = 0;
    for (Fiber* fiber : barrier.waiting) wake(*fiber);
    barrier.waiting.clear();
}

// The running fiber arrives and, if it waits, is woken with the others, so that any of them goes on first.
void Grid::sync_threads(ThreadBarrier& barrier, int expected, bool waits, const char* what, int index) {
    ++barrier.arrived;
    if (waits) barrier.waiting.push_back(running_);
    release(barrier, expected);
    if (waits) wait(what, static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(expected));
}

void Grid::block_sync(int index, int threads, bool waits) {
    Block& block = *running_->block;
    if (index < 0 || index >= kNamedBarriers) fault(fmt::format("barrier {}; there are 0 to 15", index));
    ThreadBarrier& barrier = block.barriers[static_cast<std::size_t>(index)];
    const int expected = threads == 0 ? block.live : threads;
    if (expected % spec_.lanes != 0 && threads != 0)
        fault(fmt::format("a barrier of {} threads; need whole warps", threads));
    if (barrier.arrived > 0 && barrier.expected != threads) {
        fault(fmt::format("barrier {} of {} threads meets the same of {}", index, threads, barrier.expected));
    }
    barrier.expected = threads;
    sync_threads(barrier, expected, waits, "barrier {} of {} threads", index);
}

void Grid::cluster_sync() {
    Cluster& cluster = *running_->block->cluster;
    sync_threads(cluster.barrier, cluster.live, true, "the cluster (barrier {}, {} threads)", 0);
}

void Grid::warp_sync() {
    meet("the warp", nullptr, [](const auto&) {});
}

unsigned Grid::shuffle(unsigned value, int from_lane) {
    struct Shuffle {
        unsigned value;
        int from;
    } mine{value, from_lane};
    meet("a shuffle", &mine, [&](const auto& arguments) {
        std::array<unsigned, kMostLanes> values{};
        for (std::size_t i = 0; i < static_cast<std::size_t>(spec_.lanes); ++i) {
            if (arguments[i]) values[i] = static_cast<Shuffle*>(arguments[i])->value;
        }
        for (void* argument : arguments) {
            if (auto* shuffle = static_cast<Shuffle*>(argument)) {
                shuffle->value = values[static_cast<std::size_t>(shuffle->from % spec_.lanes)];
            }
        }
    });
    return mine.value;
}

// The block is one of the running fiber's cluster; its shared memory is there only as long as it runs.
Block& Grid::cluster_block(unsigned rank) {
    Cluster& cluster = *running_->block->cluster;
    if (rank >= cluster.blocks.size()) fault(fmt::format("block {} of a cluster of {}", rank, cluster.blocks.size()));
    Block& block = *cluster.blocks[rank];
    if (block.live == 0) fault(fmt::format("something in block {}, which has ended", block.index));
    return block;
}

TransactionBarrier& Grid::transaction(Block& block, unsigned barrier) {
    const auto found = block.transactions.find(barrier);
    if (found == block.transactions.end()) {
        fault(fmt::format("no transaction barrier was made at byte {} of block {}'s shared memory",
                          barrier - kEmulatedSharedStart, block.index));
    }
    return found->second;
}

void Grid::barrier_init(unsigned barrier, unsigned arrivals) {
    shared_at(*running_->block, barrier, sizeof(std::uint64_t));
    if (barrier % sizeof(std::uint64_t) != 0 || arrivals == 0) {
        fault(fmt::format("a transaction barrier of {} arrivals at address {}", arrivals, barrier));
    }
    running_->block->transactions[barrier] = {arrivals, arrivals, 0, 0, {}};
}

void Grid::finish_phase(TransactionBarrier& barrier) {
    if (barrier.pending > 0 || barrier.bytes != 0) return;
    ++barrier.phase;
    barrier.pending = barrier.arrivals;
    for (Fiber* fiber : barrier.waiting) wake(*fiber);
    barrier.waiting.clear();
}

void Grid::barrier_arrive(unsigned address, unsigned rank, unsigned bytes) {
    Block& block = cluster_block(rank);
    TransactionBarrier& barrier = transaction(block, address);
    if (barrier.pending == 0) {
        fault(fmt::format("more than {} arrivals at the transaction barrier at address {}", barrier.arrivals, address));
    }
    barrier.bytes += bytes;
    --barrier.pending;
    finish_phase(barrier);
}

void Grid::barrier_wait(unsigned address, unsigned parity) {
    TransactionBarrier& barrier = transaction(*running_->block, address);
    // The phase of the other parity is the one before, or the one after this.
    while (barrier.phase % 2 == parity % 2) {
        barrier.waiting.push_back(running_);
        wait("the transaction barrier at address {}, parity {}", address, parity);
    }
}

}  // namespace tilewise::emulated
