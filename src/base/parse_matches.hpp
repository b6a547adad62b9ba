// SPDX-License-Identifier: MIT
// How the encoder of compress.hpp divides bytes into literals and matches: it looks for those that take the fewest bits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/compressed_block.hpp"

namespace tilewise::block {

// Some literals, then a match; the last has none (length 0).
struct Sequence {
    std::uint32_t run = 0;
    std::uint32_t length = 0;
    std::uint32_t offset = 0;

    bool operator==(const Sequence&) const = default;
};

std::vector<Sequence> parse_matches(std::string_view bytes);

// Gives `sink` what a block consists of behind its codes: symbol(pick, symbol), where pick(tables) is the code's part of any
// CodeTables, and extra(value, bits).
template <class Sink>
class SequenceWriter {
public:
    SequenceWriter(std::string_view bytes, Sink& sink) : bytes_(bytes), sink_(sink) {}

    void write(const Sequence& sequence) {
        number(
            [](auto& tables) -> auto& { return tables.runs; }, sequence.run);
        for (std::uint32_t i = 0; i < sequence.run; ++i) literal();
        if (sequence.length > 0) match(sequence);
    }

private:
    template <class Pick>
    void number(const Pick& pick, std::uint32_t value, std::uint32_t first_symbol = 0) {
        const std::uint32_t symbol = number_symbol(value);
        sink_.symbol(pick, first_symbol + symbol);
        sink_.extra(value - number_base(symbol), number_extra_bits(symbol));
    }
    void literal() {
        const std::uint32_t offset = last_.offset[0];
        const unsigned before = at_ >= offset ? static_cast<unsigned char>(bytes_[at_ - offset]) : 0U;
        const std::uint32_t difference = (static_cast<unsigned char>(bytes_[at_]) - before) & 0xff;
        ++at_;
        sink_.symbol(
            [](auto& tables) -> auto& { return tables.literals; }, difference);
    }
    void match(const Sequence& sequence) {
        const auto offsets = [](auto& tables) -> auto& { return tables.offsets; };
        std::uint32_t repeat = 0;
        while (repeat < kRepeats && last_.offset[repeat] != sequence.offset) ++repeat;
        const std::uint32_t length = sequence.length - kMinMatch;
        if (repeat < kRepeats) {
            sink_.symbol(offsets, repeat);
            number(
                [](auto& tables) -> auto& { return tables.repeat_lengths; }, length);
        } else {
            number(offsets, sequence.offset >> kLowOffsetBits, kRepeats);
            sink_.symbol(
                [](auto& tables) -> auto& { return tables.low_offsets; }, sequence.offset % kLowOffsetSymbols);
            number(
                [](auto& tables) -> auto& { return tables.lengths; }, length);
        }
        last_.use(sequence.offset);
        at_ += sequence.length;
    }

    std::string_view bytes_;
    Sink& sink_;
    std::size_t at_ = 0;
    LastOffsets last_;
};

CodeTables<std::uint32_t> count_symbols(std::string_view bytes, const std::vector<Sequence>& sequences);

}  // namespace tilewise::block
