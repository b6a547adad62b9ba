// SPDX-License-Identifier: MIT
#include "base/parse_matches.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/compressed_block.hpp"

namespace tilewise::block {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kLongEnough = 128;    // a match of so many bytes is taken at once
constexpr std::uint32_t kCompared = 1 << 12;  // bytes; what is longer is several matches

struct Match {
    std::uint32_t length = 0, offset = 0;
};

std::uint32_t common_length(std::string_view bytes, std::size_t a, std::size_t b) {  // a < b
    const char *first = bytes.data() + a, *second = bytes.data() + b;
    const char *const start = second, *const end = second + std::min<std::size_t>(bytes.size() - b, kCompared);
    while (end - second >= 8) {
        std::uint64_t x = 0, y = 0;
        std::memcpy(&x, first, 8), std::memcpy(&y, second, 8);
        if (x != y) return static_cast<std::uint32_t>(second - start + std::countr_zero(x ^ y) / 8);
        first += 8, second += 8;
    }
    while (second < end && *first == *second) ++first, ++second;
    return static_cast<std::uint32_t>(second - start);
}

// The nearest places before one that begin, most likely, with the same so many bytes.
class Places {
public:
    Places(std::string_view bytes, std::size_t width)
        : bytes_(bytes),
          width_(width),
          hash_bits_(std::clamp(static_cast<int>(std::bit_width(bytes.size())), 8, 17)),
          known_(std::size_t{1} << hash_bits_) {
        for (auto& places : known_) places.fill(kNone);
    }
    void add(std::size_t at) {
        if (at + width_ > bytes_.size()) return;
        auto& places = known_[hash(at)];
        std::copy_backward(places.begin(), places.end() - 1, places.end());
        places[0] = static_cast<std::uint32_t>(at);
    }
    template <class Body>
    void for_each(std::size_t at, const Body& body) const {
        if (at + width_ > bytes_.size()) return;
        for (const std::uint32_t place : known_[hash(at)]) {
            if (place == kNone) return;
            body(place);
        }
    }

private:
    static constexpr std::size_t kKept = 8;
    std::size_t hash(std::size_t at) const {
        std::uint64_t hash = 0;
        for (std::size_t i = 0; i < width_; i += 4) {
            std::uint32_t word = 0;
            std::memcpy(&word, bytes_.data() + at + i, sizeof(word));
            hash = (hash ^ word) * 0x9e3779b97f4a7c15;
            hash ^= hash >> 29;
        }
        return static_cast<std::size_t>((hash * 0x9e3779b97f4a7c15) >> (64 - hash_bits_));
    }
    std::string_view bytes_;
    std::size_t width_;
    int hash_bits_;
    std::vector<std::array<std::uint32_t, kKept>> known_;
};

// Near short matches and far long ones: from each width the longest of its nearest places.
class MatchFinder {
public:
    explicit MatchFinder(std::string_view bytes)
        : bytes_(bytes), places_{Places(bytes, 4), Places(bytes, 8), Places(bytes, 24)} {}

    // Longer ones are further away. To be called for each place in turn.
    const std::vector<Match>& find(std::size_t at) {
        found_.clear();
        std::uint32_t longest = kShortest - 1;
        for (Places& places : places_) {
            places.for_each(at, [&](std::uint32_t place) {
                const bool may_be_longer =
                    at + longest < bytes_.size() && bytes_[place + longest] == bytes_[at + longest];
                const std::uint32_t length = may_be_longer ? common_length(bytes_, place, at) : 0;
                if (length <= longest) return;
                longest = length;
                found_.push_back({length, static_cast<std::uint32_t>(at - place)});
            });
        }
        return found_;
    }
    void add(std::size_t at) {
        for (Places& places : places_) places.add(at);
    }

private:
    static constexpr std::uint32_t kShortest = 4;
    std::string_view bytes_;
    std::array<Places, 3> places_;
    std::vector<Match> found_;
};

using Counts = CodeTables<std::uint32_t>;
using Prices = CodeTables<std::uint16_t>;  // in sixteenths of a bit
constexpr std::uint32_t kPriceUnit = 16;

// As if each symbol had occurred a little more often than it did.
Prices prices_of(const Counts& counts) {
    Prices prices;
    for_each_code(counts, prices, [](const auto& from, auto& to) {
        double total = 0;
        for (const std::uint32_t count : from) total += count + 0.25;
        for (std::size_t i = 0; i < from.size(); ++i) {
            const double bits = std::min(std::log2(total / (from[i] + 0.25)), double{kMaxCodeBits});
            to[i] = static_cast<std::uint16_t>(std::lround(bits * kPriceUnit));
        }
        return true;
    });
    return prices;
}

// The prices before anything was counted.
Counts first_counts() {
    Counts counts;
    counts.literals.fill(1);
    const auto falling = [](auto& code) {
        for (std::size_t i = 0; i < code.size(); ++i) code[i] = static_cast<std::uint32_t>(4096 / (i + 1));
    };
    falling(counts.runs), falling(counts.lengths), falling(counts.repeat_lengths), falling(counts.low_offsets);
    counts.offsets.fill(64);
    for (std::size_t i = 0; i < kRepeats; ++i) counts.offsets[i] = 1024 >> i;
    return counts;
}

std::uint32_t number_price(const std::array<std::uint16_t, kNumberSymbols>& code, std::uint32_t value) {
    const std::uint32_t symbol = number_symbol(value);
    return code[symbol] + number_extra_bits(symbol) * kPriceUnit;
}

// The cheapest way to a place.
struct Step {
    std::uint32_t price = kNone;
    std::uint32_t length = 0;  // of the match that ends here; 0: a literal
    std::uint32_t offset = 0;
    std::uint32_t run = 0;  // literals up to here
    LastOffsets last;
};

class Parser {
public:
    Parser(std::string_view bytes, const Prices& prices)
        : bytes_(bytes), prices_(prices), finder_(bytes), steps_(bytes.size() + 1) {}

    std::vector<Sequence> parse() {
        steps_[0].price = number_price(prices_.runs, 0);
        for (std::size_t at = 0; at < bytes_.size();) {
            const std::uint32_t taken = go_on_from(at);
            for (std::uint32_t i = 0; i < taken; ++i) finder_.add(at + i);
            at += taken;
        }
        return sequences();
    }

private:
    // Tries all that may follow; returns how far to go on.
    std::uint32_t go_on_from(std::size_t at) {
        const Step here = steps_[at];
        try_literal(at, here);
        Match longest;
        std::uint32_t known = 0;
        for (std::uint32_t i = 0; i < kRepeats; ++i) {
            const std::uint32_t offset = here.last.offset[i];
            if (offset > at) continue;
            const std::uint32_t length = common_length(bytes_, at - offset, at);
            if (length < kMinMatch) continue;
            if (length > longest.length) longest = {length, offset};
            const std::uint32_t price = here.price + prices_.offsets[i];
            try_lengths(at, here, {length, offset}, price, prices_.repeat_lengths, kMinMatch);
        }
        if (longest.length >= kLongEnough) return longest.length;
        for (const Match& match : finder_.find(at)) {
            if (match.length > longest.length) longest = match;
            const std::uint32_t price = here.price + offset_price(match.offset);
            try_lengths(at, here, match, price, prices_.lengths, std::max(known + 1, kMinMatch));
            known = match.length;
        }
        return longest.length >= kLongEnough ? longest.length : 1;
    }
    std::uint32_t offset_price(std::uint32_t offset) const {
        const std::uint32_t symbol = number_symbol(offset >> kLowOffsetBits);
        return prices_.offsets[kRepeats + symbol] + number_extra_bits(symbol) * kPriceUnit +
               prices_.low_offsets[offset % kLowOffsetSymbols];
    }
    void try_literal(std::size_t at, const Step& here) {
        const std::uint32_t offset = here.last.offset[0];
        const auto byte = static_cast<unsigned char>(bytes_[at]);
        const unsigned before = at >= offset ? static_cast<unsigned char>(bytes_[at - offset]) : 0U;
        const std::uint32_t price = here.price + prices_.literals[(byte - before) & 0xff] +
                                    number_price(prices_.runs, here.run + 1) - number_price(prices_.runs, here.run);
        Step& next = steps_[at + 1];
        if (price >= next.price) return;
        next = {price, 0, 0, here.run + 1, here.last};
    }
    // A long match is worth trying at a few lengths only.
    void try_lengths(std::size_t at, const Step& here, const Match& match, std::uint32_t price,
                     const std::array<std::uint16_t, kNumberSymbols>& code, std::uint32_t least) {
        const std::uint32_t start = match.length >= kLongEnough ? match.length : least;
        const std::uint32_t no_run = number_price(prices_.runs, 0);
        for (std::uint32_t length = start; length <= match.length; ++length) {
            const std::uint32_t whole = price + number_price(code, length - kMinMatch) + no_run;
            Step& next = steps_[at + length];
            if (whole >= next.price) continue;
            next = {whole, length, match.offset, 0, here.last};
            next.last.use(match.offset);
        }
    }
    std::vector<Sequence> sequences() const {
        std::vector<Sequence> list;
        std::size_t at = bytes_.size();
        if (steps_[at].length == 0) list.push_back({steps_[at].run, 0, 0}), at -= steps_[at].run;
        while (at > 0) {
            const Step& match = steps_[at];
            at -= match.length;
            const std::uint32_t run = steps_[at].run;
            list.push_back({run, match.length, match.offset});
            at -= run;
        }
        std::reverse(list.begin(), list.end());
        return list;
    }

    std::string_view bytes_;
    const Prices& prices_;
    MatchFinder finder_;
    std::vector<Step> steps_;
};

struct CountingSink {
    Counts counts;

    template <class Pick>
    void symbol(const Pick& pick, std::uint32_t symbol) {
        ++pick(counts)[symbol];
    }
    void extra(std::uint32_t, std::uint32_t) {}
};

}  // namespace

CodeTables<std::uint32_t> count_symbols(std::string_view bytes, const std::vector<Sequence>& sequences) {
    CountingSink sink;
    SequenceWriter writer(bytes, sink);
    for (const Sequence& sequence : sequences) writer.write(sequence);
    return sink.counts;
}

// Prices follow from what is counted in the first bytes, parsed with prices that are a guess.
std::vector<Sequence> parse_matches(std::string_view bytes) {
    constexpr std::size_t kTrial = std::size_t{1} << 19;
    const std::string_view first = bytes.substr(0, kTrial);
    const Prices guess = prices_of(first_counts());
    const Prices prices = prices_of(count_symbols(first, Parser(first, guess).parse()));
    return Parser(bytes, prices).parse();
}

}  // namespace tilewise::block
