// SPDX-License-Identifier: MIT
#include "base/compress.hpp"

#include <algorithm>
#include <queue>
#include <vector>

#include "base/compressed_block.hpp"
#include "base/parse_matches.hpp"

namespace tilewise {
namespace {

using namespace block;

class BitWriter {
public:
    void put(std::uint32_t value, std::uint32_t count) {
        window_ |= std::uint64_t{value} << bits_;
        bits_ += count;
        for (; bits_ >= 8; bits_ -= 8, window_ >>= 8) text_ += static_cast<char>(window_ & 0xff);
    }
    std::string take() && {
        if (bits_ > 0) text_ += static_cast<char>(window_);
        return std::move(text_);
    }

private:
    std::string text_;
    std::uint64_t window_ = 0;
    std::uint32_t bits_ = 0;
};

// The depth of each symbol in Huffman's tree; 0 for one that does not occur.
std::vector<int> tree_depths(const std::vector<std::uint32_t>& counts) {
    struct Node {
        std::uint64_t count;
        std::size_t index;
        bool operator>(const Node& other) const {
            return count != other.count ? count > other.count : index > other.index;
        }
    };
    std::priority_queue<Node, std::vector<Node>, std::greater<>> open;
    std::vector<std::size_t> parent(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] > 0) open.push({counts[i], i});
    }
    while (open.size() > 1) {
        const Node a = open.top();
        open.pop();
        const Node b = open.top();
        open.pop();
        parent[a.index] = parent[b.index] = parent.size();
        open.push({a.count + b.count, parent.size()});
        parent.push_back(0);
    }
    std::vector<int> depth(parent.size(), 0);
    for (std::size_t i = parent.size(); i-- > 0;) {
        if (parent[i] != 0) depth[i] = depth[parent[i]] + 1;
    }
    depth.resize(counts.size());
    return depth;
}

// Rare symbols count as less rare until no code is too long.
template <std::size_t N>
std::array<std::uint8_t, N> code_lengths(const std::array<std::uint32_t, N>& given) {
    std::array<std::uint8_t, N> lengths{};
    std::vector<std::uint32_t> counts(given.begin(), given.end());
    const auto used = std::count_if(counts.begin(), counts.end(), [](std::uint32_t count) { return count > 0; });
    if (used == 1) {
        lengths[static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin())] = 1;
        return lengths;
    }
    while (true) {
        const auto depths = tree_depths(counts);
        if (*std::max_element(depths.begin(), depths.end()) <= kMaxCodeBits) {
            std::transform(depths.begin(), depths.end(), lengths.begin(),
                           [](int depth) { return static_cast<std::uint8_t>(depth); });
            return lengths;
        }
        for (std::uint32_t& count : counts) count = (count + 1) / 2;
    }
}

// The canonical codes, as the reader meets their bits.
template <std::size_t N>
std::array<std::uint16_t, N> codes_of(const std::array<std::uint8_t, N>& lengths) {
    std::array<std::uint16_t, N> codes{};
    std::uint32_t code = 0;
    for (std::uint32_t bits = 1; bits <= kMaxCodeBits; ++bits, code <<= 1) {
        for (std::size_t symbol = 0; symbol < N; ++symbol) {
            if (lengths[symbol] != bits) continue;
            for (std::uint32_t i = 0; i < bits; ++i) {
                codes[symbol] = static_cast<std::uint16_t>(codes[symbol] | ((code >> i & 1) << (bits - 1 - i)));
            }
            ++code;
        }
    }
    return codes;
}

class BlockSink {
public:
    explicit BlockSink(const CodeTables<std::uint32_t>& counts) {
        for_each_code(counts, lengths_, [](const auto& from, auto& to) {
            to = code_lengths(from);
            return true;
        });
        for_each_code(lengths_, codes_, [&](const auto& from, auto& to) {
            for (const std::uint8_t length : from) out_.put(length, 4);
            to = codes_of(from);
            return true;
        });
    }
    template <class Pick>
    void symbol(const Pick& pick, std::uint32_t symbol) {
        out_.put(pick(codes_)[symbol], pick(lengths_)[symbol]);
    }
    void extra(std::uint32_t value, std::uint32_t bits) { out_.put(value, bits); }
    std::string take() && { return std::move(out_).take(); }

private:
    CodeTables<std::uint8_t> lengths_;
    CodeTables<std::uint16_t> codes_;
    BitWriter out_;
};

}  // namespace

std::string compress(std::string_view bytes) {
    if (bytes.empty()) return {};
    const auto sequences = parse_matches(bytes);
    BlockSink sink(count_symbols(bytes, sequences));
    SequenceWriter writer(bytes, sink);
    for (const Sequence& sequence : sequences) writer.write(sequence);
    return std::move(sink).take();
}

}  // namespace tilewise
