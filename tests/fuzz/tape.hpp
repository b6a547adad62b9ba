// SPDX-License-Identifier: MIT
// The input of a fuzz target as a tape of choices; at its end everything is zero.
#pragma once

#include <iterator>

#include "fuzz.hpp"

class Tape {
public:
    Tape(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

    bool is_done() const { return at_ == end_; }
    std::uint8_t byte() { return is_done() ? 0 : *at_++; }
    std::size_t below(std::size_t limit) { return byte() % limit; }
    bool often() { return byte() % 4 != 0; }
    template <class List>
    auto one_of(const List& values) {
        return std::data(values)[below(std::size(values))];
    }

protected:
    const std::uint8_t *at_, *end_;
};
