// SPDX-License-Identifier: MIT
// Prepared problems, found by a key of numbers: shapes, strides, types, device, alignment and epilogue. A hit takes no lock
// but a shared one and runs no Python. The table is bounded, and a forked child begins a new one.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/SmallVector.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "library.hpp"

namespace tilewise_torch {

// Every pointer is a multiple of this unless the problem says less; more is never asked of one.
constexpr std::uintptr_t kMostAlign = 16;
constexpr std::size_t kMostPlans = 4096;  // programs with ever new shapes must not grow for ever

struct Key {
    c10::SmallVector<int64_t, 48> words;

    void add(int64_t word) { words.push_back(word); }
    void add(at::IntArrayRef list) { words.append(list.begin(), list.end()); }
    void add(std::string_view text) {  // its length comes first, so that no two lists of words read the same
        add(static_cast<int64_t>(text.size()));
        for (std::size_t at = 0; at < text.size(); at += sizeof(int64_t)) {
            int64_t word = 0;
            std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
            add(word);
        }
    }
    bool operator==(const Key& other) const { return words == other.words; }
};

struct KeyHash {
    std::size_t operator()(const Key& key) const {
        constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio
        uint64_t hash = key.words.size();
        for (const int64_t word : key.words) {
            hash = (hash ^ static_cast<uint64_t>(word)) * kOdd;
            hash ^= hash >> 32;
        }
        return hash;
    }
};

struct Plan {
    tilewise_executable* executable = nullptr;
    int64_t workspace_bytes = 0;

    Plan() = default;
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan() { library().destroy(executable); }
};

using PlanPointer = std::shared_ptr<const Plan>;

class PlanTable {
public:
    PlanPointer find(const Key& key) const {
        const std::shared_lock lock(mutex_);
        const auto at = plans_.find(key);
        return at == plans_.end() ? nullptr : at->second;
    }

    void add(const Key& key, PlanPointer plan) {
        std::unordered_map<Key, PlanPointer, KeyHash> gone;  // destroyed without the lock
        const std::unique_lock lock(mutex_);
        if (plans_.size() >= kMostPlans) gone.swap(plans_);
        plans_.insert_or_assign(key, std::move(plan));
    }

    // For kernels to be chosen anew.
    void clear() {
        std::unordered_map<Key, PlanPointer, KeyHash> gone;
        const std::unique_lock lock(mutex_);
        gone.swap(plans_);
    }

    std::size_t size() const {
        const std::shared_lock lock(mutex_);
        return plans_.size();
    }

    // This process's. What the parent of a fork has prepared stays the parent's: a thread of it may hold the lock, and
    // devices do not survive a fork.
    static PlanTable& here() { return *place(); }

    static void start_anew_after_fork() {
        static std::once_flag once;
        std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { place() = new PlanTable; }); });
    }

private:
    static PlanTable*& place() {
        static PlanTable* table = new PlanTable;  // never destroyed: threads may still compute when a process ends
        return table;
    }

    mutable std::shared_mutex mutex_;
    std::unordered_map<Key, PlanPointer, KeyHash> plans_;
};

// The largest power of two, up to kMostAlign, that all addresses are a multiple of.
class Align {
public:
    void add(const void* address) { bits_ |= reinterpret_cast<std::uintptr_t>(address); }
    int64_t bytes() const { return static_cast<int64_t>(bits_ & (~bits_ + 1)); }

private:
    std::uintptr_t bits_ = kMostAlign;
};

inline int threads_of(c10::Device device) { return device.is_cpu() ? at::get_num_threads() : 0; }

// torch calls the GPUs of every vendor CUDA; what they are to the library is known where this is compiled (_cpp.py).
inline std::string device_name(c10::Device device) {
    return device.is_cpu() ? "cpu" : c10::str(TILEWISE_TORCH_GPU ":", static_cast<int>(device.index()));
}

// How many tensors d a problem takes.
inline int count_d(const std::string& problem) {
    int count = 0;
    for (const char* name : {"d0", "d1", "d2", "d3"}) {
        tilewise_tensor tensor{};
        tensor.size = sizeof tensor;
        count += library().problem_operand(problem.c_str(), name, &tensor) == TILEWISE_OK ? 1 : 0;
    }
    return count;
}

// `problem` gives the text of a problem that was not met before.
template <class Problem>
PlanPointer find_plan(const Key& key, c10::Device device, bool has_d, std::string_view activation,
                      const Problem& problem) {
    PlanTable& table = PlanTable::here();
    if (PlanPointer found = table.find(key)) return found;
    const std::string text = problem();
    auto made = std::make_shared<Plan>();
    check(library().prepare(open_context(device_name(device), threads_of(device)), text.c_str(), nullptr,
                            &made->executable));
    const int taken = count_d(text);
    TORCH_CHECK_VALUE(taken == static_cast<int>(has_d), "activation: '", activation, "' takes ", taken, " tensors d, ",
                      static_cast<int>(has_d), " given");
    made->workspace_bytes = library().workspace_bytes(made->executable);
    table.add(key, made);
    return made;
}

// One launch on the current stream. Scratch memory is torch's, which hands it out again in the order of the stream.
inline void launch(const Plan& plan, tilewise_operands& operands, const at::Tensor& like) {
    at::Tensor workspace;
    if (plan.workspace_bytes > 0) {
        workspace = at::empty({plan.workspace_bytes}, like.options().dtype(at::kByte));
        operands.workspace = workspace.data_ptr();
    }
    check(library().run(plan.executable, &operands, current_stream(like.device())));
}

}  // namespace tilewise_torch
