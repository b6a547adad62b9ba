// SPDX-License-Identifier: MIT
#include "device/emulated/grid.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace tilewise::emulated {
namespace {

constexpr std::uint32_t kShuffleOdds = 32;  // one in so many times another warp goes first
constexpr std::uint32_t kLoadOdds = 64;     // one in so many times a load arrives before anybody must wait for it
constexpr std::uint32_t kMostTogether = 3;  // clusters that begin together; more come when all of these wait
constexpr std::uint64_t kMostIdleYields = 100000;
constexpr unsigned kSharedAlignment = 1024;

// The launch that is under way; fibers find it here, since they begin without arguments.
Grid* under_way = nullptr;

std::string describe(const char* text, std::uint64_t first, std::uint64_t second) {
    return fmt::format(fmt::runtime(text), first, second);
}

}  // namespace

Grid::Grid(const GridSpec& spec, Machine& machine, FiberStacks& stacks, const MemoryMap& memory)
    : spec_(spec), machine_(machine), stacks_(stacks), memory_(memory), dice_{spec.seed * 0x9e3779b97f4a7c15ull | 1} {
    for (int i = 0; i < 8; ++i) dice_.roll();  // small seeds begin alike
    under_way = this;
}

Grid::~Grid() {
    for (const auto& cluster : clusters_) {
        for (const auto& block : cluster->blocks) {
            for (const Fiber& fiber : block->fibers) stacks_.give_back(fiber.stack);
        }
    }
    under_way = nullptr;
}

std::unique_ptr<Block> Grid::make_block(unsigned index, Cluster& cluster) {
    auto block = std::make_unique<Block>();
    block->index = index;
    block->rank = static_cast<unsigned>(cluster.blocks.size());
    block->cluster = &cluster;
    block->shared_bytes = spec_.shared_bytes;
    block->memory.assign(spec_.shared_bytes + kSharedAlignment, kEmulatedPoison);
    const auto start = reinterpret_cast<std::uintptr_t>(block->memory.data());
    block->shared = block->memory.data() + (kSharedAlignment - start % kSharedAlignment) % kSharedAlignment;
    const auto threads = static_cast<std::size_t>(spec_.threads);
    block->live = spec_.threads;
    const auto lanes = static_cast<std::size_t>(spec_.lanes);
    block->warps.resize((threads + lanes - 1) / lanes);
    block->fibers.resize(threads);
    for (std::size_t t = 0; t < threads; ++t) {
        Fiber& fiber = block->fibers[t];
        Warp& warp = block->warps[t / lanes];
        fiber.stack = stacks_.take();
        if (!fiber.stack) return nullptr;
        fiber.place = FiberStacks::prepare(fiber.stack, fiber_main);
        fiber.block = block.get(), fiber.warp = &warp, fiber.lane = static_cast<int>(t % lanes);
        fiber.view = {static_cast<int>(t), spec_.threads,     index, spec_.blocks, block->rank,
                      block->shared,       spec_.shared_bytes};
        warp.block = block.get(), warp.index = static_cast<int>(t / lanes);
        warp.lanes |= std::uint64_t{1} << fiber.lane;
        wake(fiber);
    }
    return block;
}

bool Grid::admit_cluster() {
    if (next_block_ >= spec_.blocks) return false;
    auto cluster = std::make_unique<Cluster>();
    for (unsigned i = 0; i < spec_.cluster; ++i) {
        auto block = make_block(next_block_++, *cluster);
        if (!block) {
            fault_ = "out of memory for the stacks of its threads";
            return false;
        }
        cluster->live += block->live;
        for (Warp& warp : block->warps) {
            warp.priority = dice_.roll();
            warps_.push_back(&warp);
        }
        cluster->blocks.push_back(std::move(block));
    }
    clusters_.push_back(std::move(cluster));
    return true;
}

void Grid::retire_clusters() {
    for (auto& cluster : clusters_) {
        if (cluster->live > 0) continue;
        for (const auto& block : cluster->blocks) {
            for (const Fiber& fiber : block->fibers) stacks_.give_back(fiber.stack);
            std::erase_if(warps_, [&](const Warp* warp) { return warp->block == block.get(); });
        }
        cluster.reset();
    }
    std::erase(clusters_, nullptr);
    running_warp_ = nullptr;
}

Status Grid::run() {
    const std::uint32_t together = 1 + dice_.below(kMostTogether);
    while (fault_.empty()) {
        host_wanted_ = false;
        retire_clusters();
        while (clusters_.size() < together && admit_cluster()) {
        }
        if (!fault_.empty() || clusters_.empty()) break;
        if (Fiber* next = pick()) {
            go_on(next, &host_);
            continue;
        }
        if (finish_a_load() || admit_cluster()) continue;
        if (!yielded_.empty() && ++idle_yields_ < kMostIdleYields) {
            for (Fiber* fiber : std::exchange(yielded_, {})) wake(*fiber);
            continue;
        }
        fault_ = "no thread can go on:" + who_waits();
    }
    if (fault_.empty()) return {};
    return Error{ErrorCode::device, fmt::format("emulated GPU: {} (seed {})", fault_, spec_.seed)};
}

void Grid::fiber_main() {
    Grid& grid = *under_way;
    grid.spec_.call(grid.spec_.kernel);
    grid.end_of(*grid.running_);
}

void Grid::end_of(Fiber& fiber) {
    wait_copies(0);
    if (!fiber.stores.open.empty()) fiber.stores.commit();
    wait_stores(0);
    Block& block = *fiber.block;
    Cluster& cluster = *block.cluster;
    fiber.done = true;
    idle_yields_ = 0;
    --block.live, --cluster.live;
    if (block.live == 0 && block.copies_under_way > 0) {
        fault(fmt::format("block {} ends while copies into its shared memory are under way", block.index));
    }
    // Those who wait for all threads wait for those that are left.
    release(block.barriers[0], block.live);
    release(cluster.barrier, cluster.live);
    if (cluster.live == 0) host_wanted_ = true;
    leave();
}

Fiber* Grid::pick() {
    if (host_wanted_) return nullptr;
    if (!loads_.empty() && dice_.below(kLoadOdds) == 0) finish_a_load();
    Warp* warp = running_warp_;
    if (!warp || warp->ready == 0 || dice_.below(kShuffleOdds) == 0) {
        if (warp) warp->priority = dice_.roll();
        warp = nullptr;
        for (Warp* other : warps_) {
            if (other->ready != 0 && (!warp || other->priority > warp->priority)) warp = other;
        }
    }
    running_warp_ = warp;
    if (!warp) return nullptr;
    const int turn = static_cast<int>(dice_.below(static_cast<std::uint32_t>(spec_.lanes)));
    const int lane = (std::countr_zero(std::rotr(warp->ready, turn)) + turn) % kMostLanes;
    warp->ready &= ~(std::uint64_t{1} << lane);
    const int fiber = warp->index * spec_.lanes + lane;
    return &warp->block->fibers[static_cast<std::size_t>(fiber)];
}

void Grid::go_on(Fiber* next, void** from) {
    running_ = next;
    machine_.me = next ? &next->view : nullptr;
    tilewise_switch_stack(from, next ? next->place : host_);
}

void Grid::leave() {
    Fiber* const me = running_;
    Fiber* const next = pick();
    if (next == me) return;
    go_on(next, &me->place);
}

void Grid::wait(const char* what, std::uint64_t first, std::uint64_t second) {
    running_->waits_for = what;
    running_->detail[0] = first, running_->detail[1] = second;
    idle_yields_ = 0;
    leave();
}

void Grid::yield() {
    running_->waits_for = "something in memory";
    yielded_.push_back(running_);
    leave();
}

// Keeps the first message only; the launch ends when the running fiber leaves.
void Grid::report(const std::string& message) {
    if (fault_.empty()) fault_ = message;
    host_wanted_ = true;
}

void Grid::fault(const std::string& message) {
    report(fmt::format("block {}, thread {}: {}", running_->block->index, running_->view.thread, message));
    void* never = nullptr;
    go_on(nullptr, &never);
    __builtin_unreachable();  // a launch with a fault is never gone on with
}

// For each block, runs of threads that wait for the same.
std::string Grid::who_waits() const {
    std::string text;
    for (const auto& cluster : clusters_) {
        for (const auto& block : cluster->blocks) {
            const auto& fibers = block->fibers;
            for (std::size_t begin = 0, end = 0; begin < fibers.size(); begin = end) {
                const auto state = [&](std::size_t t) {
                    const Fiber& f = fibers[t];
                    return f.done ? std::string("end") : describe(f.waits_for, f.detail[0], f.detail[1]);
                };
                const std::string first = state(begin);
                for (end = begin + 1; end < fibers.size() && state(end) == first;) ++end;
                text += fmt::format("\n  block {}, threads {} to {}: {}{}", block->index, begin, end - 1,
                                    fibers[begin].done ? "at their " : "wait for ", first);
            }
        }
    }
    return text;
}

Grid& Grid::current() { return *under_way; }

}  // namespace tilewise::emulated
