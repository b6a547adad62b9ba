// SPDX-License-Identifier: MIT
// Asynchronous copies of the emulated GPU. Between its start and its end the place a copy goes to holds poison, so that who
// reads it too early, or still reads what was there before, gets NaN; a place that has changed until the end, or a source
// that has, is an error.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "device/emulated/grid.hpp"
#include "device/emulated/tensor_box.hpp"

namespace tilewise::emulated {
namespace {

bool is_poison(const unsigned char* at, std::size_t bytes) {
    return std::all_of(at, at + bytes, [](unsigned char byte) { return byte == kEmulatedPoison; });
}

}  // namespace

unsigned char* Grid::shared_at(Block& block, unsigned address, unsigned bytes) {
    const unsigned offset = address - kEmulatedSharedStart;
    if (address < kEmulatedSharedStart || offset > block.shared_bytes || bytes > block.shared_bytes - offset) {
        fault(fmt::format("{} bytes at byte {} of shared memory, which has {}", bytes, static_cast<int>(offset),
                          block.shared_bytes));
    }
    return block.shared + offset;
}

unsigned char* Grid::cluster_shared(unsigned address, unsigned rank, unsigned bytes) {
    if (bytes == 0 || address % bytes != 0) fault(fmt::format("{} bytes at address {}, no multiple", bytes, address));
    return shared_at(cluster_block(rank), address, bytes);
}

void Grid::check_global(const void* at, int bytes) {
    if (reinterpret_cast<std::uintptr_t>(at) % static_cast<std::uintptr_t>(bytes) != 0) {
        fault(fmt::format("an access of {} bytes at {}, which is no multiple", bytes, at));
    }
    if (!memory_.holds(at, static_cast<std::size_t>(bytes))) {
        fault(fmt::format("an access of {} bytes at {}, which is not in the device's memory", bytes, at));
    }
}

void Grid::copy_async(unsigned to, const void* from, int bytes, int valid) {
    if (valid < 0 || valid > bytes) fault(fmt::format("a copy of {} bytes of which {} are valid", bytes, valid));
    if (valid > 0) {
        if (reinterpret_cast<std::uintptr_t>(from) % static_cast<std::uintptr_t>(bytes) != 0) {
            fault(fmt::format("a copy of {} bytes from {}, which is no multiple", bytes, from));
        }
        if (!memory_.holds(from, static_cast<std::size_t>(valid))) {
            fault(fmt::format("a copy of {} bytes from {}, which is not in the device's memory", valid, from));
        }
    }
    std::memset(shared_at(*running_->block, to, static_cast<unsigned>(bytes)), kEmulatedPoison,
                static_cast<std::size_t>(bytes));
    running_->copies.open.push_back({to, from, bytes, valid});
}

void Grid::wait_copies(int pending) {
    auto& groups = running_->copies.committed;
    while (groups.size() > static_cast<std::size_t>(pending)) {
        for (const SmallCopy& copy : groups.front()) {
            unsigned char* const to = shared_at(*running_->block, copy.to, static_cast<unsigned>(copy.bytes));
            if (!is_poison(to, static_cast<std::size_t>(copy.bytes))) {
                fault(fmt::format("byte {} of shared memory was written while a copy to it was under way",
                                  copy.to - kEmulatedSharedStart));
            }
            const auto valid = static_cast<std::size_t>(copy.valid);
            if (valid > 0) std::memcpy(to, copy.from, valid);
            std::memset(to + valid, 0, static_cast<std::size_t>(copy.bytes) - valid);
        }
        groups.pop_front();
    }
}

void Grid::load_box(unsigned to, const EmulatedTensorMap& map, unsigned barrier, const int* at, const int* offset,
                    unsigned blocks) {
    BoxLoad load{map, to, barrier, BoxPlace(at, offset), {}};
    if (const auto problem = box_problem(map, to)) fault(*problem);
    for (unsigned rank = 0; rank < kMostClusterBlocks; ++rank) {
        if ((blocks >> rank & 1) == 0) continue;
        Block& block = cluster_block(rank);
        transaction(block, barrier);
        load.blocks.push_back(&block);
        ++block.copies_under_way;
        for_each_chunk(map, load.place, to, [&](const BoxChunk& chunk) {
            std::memset(shared_at(block, chunk.shared, kChunkBytes), kEmulatedPoison, kChunkBytes);
        });
    }
    loads_.push_back(std::move(load));
}

// Reports what is wrong instead of ending the running fiber, since there may be none.
void Grid::arrive(const BoxLoad& load) {
    for (Block* block : load.blocks) {
        unsigned bytes = 0;
        for_each_chunk(load.map, load.place, load.to, [&](const BoxChunk& chunk) {
            unsigned char* const to = block->shared + (chunk.shared - kEmulatedSharedStart);
            const auto inside = static_cast<std::size_t>(chunk.inside);
            if (!is_poison(to, kChunkBytes)) {
                report(fmt::format("byte {} of block {}'s shared memory was written while a copy to it was under way",
                                   chunk.shared - kEmulatedSharedStart, block->index));
            }
            std::memset(to, 0, kChunkBytes);
            if (inside > 0 && !memory_.holds(chunk.global, inside)) {
                report(fmt::format("a tensor copy from {}, which is not in the device's memory",
                                   static_cast<const void*>(chunk.global)));
            } else if (inside > 0) {
                std::memcpy(to + chunk.skip, chunk.global, inside);
            }
            bytes += kChunkBytes;
        });
        --block->copies_under_way;
        TransactionBarrier& barrier = block->transactions.at(load.barrier);
        barrier.bytes -= bytes;
        finish_phase(barrier);
    }
}

bool Grid::finish_a_load() {
    if (loads_.empty()) return false;
    std::swap(loads_[dice_.below(static_cast<std::uint32_t>(loads_.size()))], loads_.back());
    const BoxLoad load = std::move(loads_.back());
    loads_.pop_back();
    arrive(load);
    return true;
}

void Grid::store_box(const EmulatedTensorMap& map, unsigned from, const int* at) {
    if (const auto problem = box_problem(map, from)) fault(*problem);
    BoxStore store{map, from, BoxPlace(at, nullptr), {}};
    for_each_chunk(map, store.place, from, [&](const BoxChunk& chunk) {
        const unsigned char* const bytes = shared_at(*running_->block, chunk.shared, kChunkBytes);
        store.seen.insert(store.seen.end(), bytes, bytes + kChunkBytes);
    });
    running_->stores.open.push_back(std::move(store));
}

void Grid::finish_store(const BoxStore& store) {
    std::size_t seen = 0;
    for_each_chunk(store.map, store.place, store.from, [&](const BoxChunk& chunk) {
        const unsigned char* const bytes = shared_at(*running_->block, chunk.shared, kChunkBytes);
        if (std::memcmp(bytes, store.seen.data() + seen, kChunkBytes) != 0) {
            fault(fmt::format("byte {} of shared memory was written while a tensor copy read it",
                              chunk.shared - kEmulatedSharedStart));
        }
        seen += kChunkBytes;
        if (chunk.inside <= 0) return;
        if (!memory_.holds(chunk.global, static_cast<std::size_t>(chunk.inside))) {
            fault(fmt::format("a tensor copy to {}, which is not in the device's memory",
                              static_cast<const void*>(chunk.global)));
        }
        std::memcpy(chunk.global, bytes + chunk.skip, static_cast<std::size_t>(chunk.inside));
    });
}

void Grid::wait_stores(int pending) {
    auto& groups = running_->stores.committed;
    while (groups.size() > static_cast<std::size_t>(pending)) {
        for (const BoxStore& store : groups.front()) finish_store(store);
        groups.pop_front();
    }
}

}  // namespace tilewise::emulated
