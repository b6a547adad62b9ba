// SPDX-License-Identifier: MIT
// One launch on the emulated GPU: blocks of fibers, one for each thread, of which one runs at a time until it has to wait.
// Who runs next is random, from a seed: warps have priorities that change now and then, so that some run far ahead of
// others, as they may on a GPU. Blocks of a cluster begin together; a few clusters are there at a time, and more come when
// those wait. What is asynchronous on a GPU takes effect as late as it may: at the wait of the thread that started it, or,
// for copies that count on a barrier, when nobody else can go on (or earlier, at random). Until then its place is poisoned.
//
// The functions of this class are what fibers call through the table in common/machine.hpp (calls.cpp): fibers themselves
// in grid.cpp, barriers in barriers.cpp, copies in copies.cpp, matrices in matrices.cpp, AMD's in mfma.cpp,
// warpgroup products in warpgroup.cpp.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/emulated/fiber_stack.hpp"
#include "device/emulated/memory_map.hpp"
#include "device/emulated/tensor_box.hpp"
#include "kernels/common/machine.hpp"

namespace tilewise::emulated {

inline constexpr int kWarp = 32;       // lanes of NVIDIA's warps, which the instructions of its matrix units take
inline constexpr int kMostLanes = 64;  // of a warp, or of a wave of AMD's
inline constexpr int kNamedBarriers = 16;

struct Block;
struct Warp;

// Numbers that are easy to repeat and fast to make (xorshift).
struct Dice {
    std::uint64_t state;
    std::uint32_t roll() {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return static_cast<std::uint32_t>(state >> 16);
    }
    std::uint32_t below(std::uint32_t bound) { return roll() % bound; }
};

// Where a warpgroup product finds some rows of A, or columns of B, each of 32 bytes along k.
struct OperandView {
    unsigned long long descriptor = 0;
    int first = 0, count = 0, element_bytes = 0;
    bool along_k = true;
};

struct SmallCopy {  // cp.async
    unsigned to;
    const void* from;
    int bytes, valid;
};
struct BoxStore {
    EmulatedTensorMap map;
    unsigned from;
    BoxPlace place;
    std::vector<unsigned char> seen;  // what was in shared memory when it started
};
// Groups of asynchronous work of one thread, in order; the last one is still open.
template <class T>
struct Groups {
    std::vector<T> open;
    std::deque<std::vector<T>> committed;
    void commit() { committed.push_back(std::move(open)), open.clear(); }
};

struct Fiber {
    void* stack = nullptr;
    void* place = nullptr;  // where it goes on
    Block* block = nullptr;
    Warp* warp = nullptr;
    int lane = 0;
    bool done = false;
    EmulatedThread view{};
    const char* waits_for = "";  // for people; two places {} for the numbers
    std::uint64_t detail[2] = {};
    Groups<SmallCopy> copies;
    Groups<BoxStore> stores;
};

// Threads that come to one instruction together; the last one executes it for all.
struct Meeting {
    const char* what = nullptr;
    std::array<void*, kMostLanes> arguments{};
    int here = 0;
};

// A product of 16 rows of a warpgroup, those of one warp: what its operands were when it began.
struct Product {
    void* sums = nullptr;  // registers of the warp's first thread
    OperandView a, b;
    std::vector<unsigned char> a_bytes, b_bytes;
};
// Sums that products are adding to.
struct Accumulator {
    std::array<void*, kWarp> registers{};
    int columns = 0;
    bool whole = false;               // numbers
    std::vector<std::uint32_t> sums;  // 16 rows of fp32 or int32
    int products = 0;                 // under way
};

struct Warp {
    Block* block = nullptr;
    int index = 0;
    std::uint64_t lanes = 0, ready = 0;  // which there are; which can run
    std::uint32_t priority = 0;
    Meeting meeting;
    Groups<Product> products;
    std::map<void*, Accumulator> sums;  // by the registers of its first thread
};

struct ThreadBarrier {
    int expected = 0, arrived = 0;
    std::vector<Fiber*> waiting;
};
struct TransactionBarrier {
    unsigned arrivals = 0, pending = 0, phase = 0;
    std::int64_t bytes = 0;
    std::vector<Fiber*> waiting;
};

struct Cluster;
struct Block {
    unsigned index = 0, rank = 0;
    Cluster* cluster = nullptr;
    std::vector<unsigned char> memory;
    unsigned char* shared = nullptr;
    unsigned shared_bytes = 0;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    int live = 0;
    std::array<ThreadBarrier, kNamedBarriers> barriers;
    std::map<unsigned, TransactionBarrier> transactions;
    int copies_under_way = 0;  // into this block's shared memory
};
struct Cluster {
    std::vector<std::unique_ptr<Block>> blocks;
    int live = 0;
    ThreadBarrier barrier;
};

struct BoxLoad {
    EmulatedTensorMap map;
    unsigned to, barrier;
    BoxPlace place;
    std::vector<Block*> blocks;
};

// A kernel's function with its arguments, called once on every fiber.
struct GridSpec {
    unsigned blocks = 0;
    int threads = 0;
    int lanes = kWarp;                // of a warp
    bool flushes_subnormals = false;  // of 16 bits, in MFMA
    unsigned cluster = 1, shared_bytes = 0;
    std::uint64_t seed = 1;
    void (*call)(const void* kernel) = nullptr;
    const void* kernel = nullptr;
};

class Grid {
public:
    Grid(const GridSpec& spec, Machine& machine, FiberStacks& stacks, const MemoryMap& memory);
    ~Grid();
    Grid(const Grid&) = delete;
    Grid& operator=(const Grid&) = delete;

    // Until every block is done, or an error: a fault, or nobody can go on.
    Status run();

    // One launch at a time is under way in the process: this one.
    static Grid& current();

private:
    friend struct Calls;  // calls.cpp: the table that kernels call

    // --- grid.cpp: fibers ---
    bool admit_cluster();
    std::unique_ptr<Block> make_block(unsigned index, Cluster& cluster);
    void retire_clusters();
    static void fiber_main();
    void end_of(Fiber& fiber);
    Fiber* pick();
    void go_on(Fiber* next, void** from);
    void wake(Fiber& fiber) { fiber.warp->ready |= std::uint64_t{1} << fiber.lane; }
    void leave();  // the running fiber, which is either awake or somewhere on a list of those who wait
    void wait(const char* what, std::uint64_t first = 0, std::uint64_t second = 0);
    void yield();
    [[noreturn]] void fault(const std::string& message);
    void report(const std::string& message);
    std::string who_waits() const;

    // Calls execute(arguments) once all lanes of the running fiber's warp have come; each leaves its argument.
    template <class Execute>
    void meet(const char* what, void* argument, Execute&& execute);

    // --- barriers.cpp ---
    void release(ThreadBarrier& barrier, int expected);
    void sync_threads(ThreadBarrier& barrier, int expected, bool waits, const char* what, int index);
    void block_sync(int index, int threads, bool waits);
    void cluster_sync();
    void warp_sync();
    unsigned shuffle(unsigned value, int from_lane);
    Block& cluster_block(unsigned rank);
    TransactionBarrier& transaction(Block& block, unsigned barrier);
    void barrier_init(unsigned barrier, unsigned arrivals);
    void barrier_arrive(unsigned address, unsigned rank, unsigned bytes);
    void barrier_wait(unsigned address, unsigned parity);
    void finish_phase(TransactionBarrier& barrier);

    // --- copies.cpp ---
    unsigned char* shared_at(Block& block, unsigned address, unsigned bytes);
    unsigned char* cluster_shared(unsigned address, unsigned rank, unsigned bytes);
    void check_global(const void* at, int bytes);
    void copy_async(unsigned to, const void* from, int bytes, int valid);
    void wait_copies(int pending);
    void load_box(unsigned to, const EmulatedTensorMap& map, unsigned barrier, const int* at, const int* offset,
                  unsigned blocks);
    void arrive(const BoxLoad& load);
    bool finish_a_load();
    void store_box(const EmulatedTensorMap& map, unsigned from, const int* at);
    void wait_stores(int pending);
    void finish_store(const BoxStore& store);

    // --- matrices.cpp ---
    void load_matrices(unsigned row, unsigned* to, int count, bool trans);
    void store_matrices(unsigned row, const unsigned* from, int count, bool trans);
    void multiply_add(KernelDType a_type, KernelDType b_type, void* sum, const unsigned* a, const unsigned* b);

    // --- mfma.cpp ---
    void multiply_squares(KernelDType a_type, KernelDType b_type, int side, void* sums, const unsigned* a,
                          const unsigned* b);

    // --- warpgroup.cpp ---
    std::vector<unsigned char> read_operand(const OperandView& view);
    void finish_product(const Product& product);
    void warpgroup_multiply(KernelDType a_type, KernelDType b_type, int n, bool trans_a, bool trans_b, void* sums,
                            unsigned long long a, unsigned long long b, bool keep);
    void warpgroup_commit();
    void warpgroup_wait(int pending);

    GridSpec spec_;
    Machine& machine_;
    FiberStacks& stacks_;
    const MemoryMap& memory_;
    Dice dice_;
    unsigned next_block_ = 0;
    std::vector<std::unique_ptr<Cluster>> clusters_;
    std::vector<Warp*> warps_;  // of all blocks that are there
    Warp* running_warp_ = nullptr;
    Fiber* running_ = nullptr;
    std::vector<Fiber*> yielded_;
    std::uint64_t idle_yields_ = 0;
    std::vector<BoxLoad> loads_;
    void* host_ = nullptr;
    bool host_wanted_ = false;
    std::string fault_;
};

template <class Execute>
void Grid::meet(const char* what, void* argument, Execute&& execute) {
    Warp& warp = *running_->warp;
    Meeting& meeting = warp.meeting;
    if (meeting.here == 0) meeting.what = what;
    if (meeting.what != what) fault(std::string("lanes of one warp do ") + what + " and " + meeting.what);
    meeting.arguments[static_cast<std::size_t>(running_->lane)] = argument;
    if (++meeting.here < std::popcount(warp.lanes)) return wait(what);
    meeting.here = 0;
    execute(meeting.arguments);
    warp.ready = warp.lanes & ~(std::uint64_t{1} << running_->lane);
}

}  // namespace tilewise::emulated
