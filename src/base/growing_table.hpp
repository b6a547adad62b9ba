// SPDX-License-Identifier: MIT
// A hash table that only grows. Looking up takes no lock and allocates nothing, from any thread and in the child of a fork;
// adding is for one thread at a time (hold fork_safe_mutex). Values stay where they are for as long as the table lives.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace tilewise {

// `Hash` takes a Key, or anything that equals one.
template <class Key, class Value, class Hash>
class GrowingTable {
public:
    GrowingTable() { grow(kFirstSlots); }
    GrowingTable(const GrowingTable&) = delete;
    GrowingTable& operator=(const GrowingTable&) = delete;

    template <class View>
    const Value* find(const View& key) const {  // null when it is not there
        const std::size_t hash = Hash()(key);
        const Slots& slots = *newest_.load(std::memory_order_acquire);
        for (std::size_t i = hash;; ++i) {
            const Entry* entry = slots[i & (slots.size() - 1)].load(std::memory_order_acquire);
            if (!entry) return nullptr;
            if (entry->hash == hash && entry->key == key) return &entry->value;
        }
    }

    // Returns the value that is there in the end: the one that was there before, if any.
    const Value& add(Key key, Value value) {
        if (const Value* found = find(key)) return *found;
        if (2 * (entries_.size() + 1) > newest_.load(std::memory_order_relaxed)->size()) grow(2 * all_.back()->size());
        const std::size_t hash = Hash()(key);
        entries_.push_back({hash, std::move(key), std::move(value)});
        place(*all_.back(), entries_.back());
        return entries_.back().value;
    }

    std::size_t size() const { return entries_.size(); }  // for the one who adds

private:
    struct Entry {
        std::size_t hash;
        Key key;
        Value value;
    };
    using Slots = std::vector<std::atomic<const Entry*>>;  // a power of two of them, at most half of them used
    static constexpr std::size_t kFirstSlots = 16;

    static void place(Slots& slots, const Entry& entry) {
        std::size_t i = entry.hash;
        while (slots[i & (slots.size() - 1)].load(std::memory_order_relaxed)) ++i;
        slots[i & (slots.size() - 1)].store(&entry, std::memory_order_release);
    }

    void grow(std::size_t size) {
        auto slots = std::make_unique<Slots>(size);
        for (const Entry& entry : entries_) place(*slots, entry);
        all_.push_back(std::move(slots));
        newest_.store(all_.back().get(), std::memory_order_release);
    }

    std::deque<Entry> entries_;  // never moved
    // Readers may still be in the older ones, which together are as large as the newest.
    std::vector<std::unique_ptr<Slots>> all_;
    std::atomic<const Slots*> newest_{nullptr};
};

}  // namespace tilewise
