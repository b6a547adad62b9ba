// SPDX-License-Identifier: MIT
// A hash table that forgets what was not asked for in a while: it is two tables, and when the newer one is full it becomes the older,
// whose entries go. Looking up takes no lock, from any thread and in the child of a fork; adding is for one thread at a time (hold
// fork_safe_mutex). Values are handed out as copies: shared pointers, which keep what they point at for who has them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/growing_table.hpp"

namespace tilewise {

template <class Key, class Value, class Hash>
class RotatingTable {
public:
    // At most so many entries, 2 or more.
    explicit RotatingTable(std::size_t most) : half_(std::max<std::size_t>(1, most / 2)) {}
    ~RotatingTable() {
        delete newer_.load();
        delete older_.load();
    }
    RotatingTable(const RotatingTable&) = delete;
    RotatingTable& operator=(const RotatingTable&) = delete;

    struct Found {
        Value value;
        bool is_old = false;  // in the older table: who adds it again keeps it from going
    };
    template <class View>
    std::optional<Found> find(const View& key) const {
        const Reading reading(readers_);
        if (const Value* found = newer_.load()->find(key)) return Found{*found, false};
        if (const Value* found = older_.load()->find(key)) return Found{*found, true};
        return std::nullopt;
    }

    // Returns the value that is there in the end: the one that was there before, if any.
    Value add(Key key, Value value) {
        if (auto found = older_.load()->find(key)) value = *found;
        if (newer_.load()->size() >= half_) rotate();
        return newer_.load()->add(std::move(key), std::move(value));
    }

    std::size_t most() const { return 2 * half_; }
    std::size_t size() const { return newer_.load()->size() + older_.load()->size(); }  // for the one who adds

private:
    using Table = GrowingTable<Key, Value, Hash>;

    // Counted, so that a table goes only when nobody can be in it.
    class Reading {
    public:
        explicit Reading(std::atomic<int>& readers) : readers_(readers) { readers_.fetch_add(1); }
        ~Reading() { readers_.fetch_sub(1); }
        Reading(const Reading&) = delete;
        Reading& operator=(const Reading&) = delete;

    private:
        std::atomic<int>& readers_;
    };

    void rotate() {
        leaving_.emplace_back(older_.exchange(newer_.load()));
        newer_.store(new Table);
        // Who reads from now on meets the new tables, so a moment without readers is enough. Without one, the next time will do.
        if (readers_.load() == 0) leaving_.clear();
    }

    const std::size_t half_;
    std::atomic<Table*> newer_{new Table}, older_{new Table};
    std::vector<std::unique_ptr<Table>> leaving_;
    mutable std::atomic<int> readers_{0};
};

}  // namespace tilewise
