// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/compress.hpp"
#include "base/compressed_block.hpp"

namespace tilewise {
namespace {

using namespace block;

// Bits of a block. Behind its end there are zeros: whoever reads them is told by overrun().
class BitReader {
public:
    explicit BitReader(std::string_view from) : from_(from) {}

    // At least 32 bits can be peeked at and skipped after it.
    void refill() {
        if (bits_ >= kWanted) return;
        if (from_.size() - at_ >= sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, from_.data() + at_, sizeof(word));
            window_ |= word << bits_;
            const std::uint32_t taken = (63 - bits_) / 8;
            at_ += taken;
            bits_ += taken * 8;
            return;
        }
        while (bits_ < kWanted) {
            if (at_ < from_.size())
                window_ |= std::uint64_t{static_cast<unsigned char>(from_[at_++])} << bits_;
            else
                added_ += 8;
            bits_ += 8;
        }
    }
    std::uint32_t peek(std::uint32_t count) const {
        return static_cast<std::uint32_t>(window_ & ((std::uint64_t{1} << count) - 1));
    }
    void skip(std::uint32_t count) { window_ >>= count, bits_ -= count; }
    std::uint32_t take(std::uint32_t count) {
        const std::uint32_t value = peek(count);
        skip(count);
        return value;
    }
    bool overrun() const { return added_ > bits_; }
    bool at_end() const { return at_ == from_.size() && bits_ - added_ < 8; }

private:
    static constexpr std::uint32_t kWanted = 32;
    std::string_view from_;
    std::size_t at_ = 0;
    std::uint64_t window_ = 0;
    std::uint32_t bits_ = 0;   // in the window
    std::uint32_t added_ = 0;  // of them, zeros from behind the end
};

// A symbol for the next kMaxCodeBits bits, whatever they are; 0 bits: no code begins like this.
struct Entry {
    std::uint8_t symbol = 0;
    std::uint8_t bits = 0;
};
using Decoder = std::array<Entry, std::size_t{1} << kMaxCodeBits>;

struct Decoders {
    Decoder literals, runs, offsets, low_offsets, lengths, repeat_lengths;
};

std::uint32_t reversed(std::uint32_t code, std::uint32_t bits) {
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < bits; ++i) result |= ((code >> i) & 1) << (bits - 1 - i);
    return result;
}

// False where the lengths are those of no code.
template <std::size_t N>
bool make_decoder(const std::array<std::uint8_t, N>& lengths, Decoder& decoder) {
    std::uint32_t code = 0;
    for (std::uint32_t bits = 1; bits <= kMaxCodeBits; ++bits, code <<= 1) {
        for (std::size_t symbol = 0; symbol < N; ++symbol) {
            if (lengths[symbol] != bits) continue;
            if (code >> bits != 0) return false;
            const Entry entry{static_cast<std::uint8_t>(symbol), static_cast<std::uint8_t>(bits)};
            for (std::size_t at = reversed(code, bits); at < decoder.size(); at += std::size_t{1} << bits) {
                decoder[at] = entry;
            }
            ++code;
        }
    }
    return true;
}

class BlockReader {
public:
    BlockReader(std::string_view block, std::size_t size) : in_(block), size_(size), out_(size + kSlack, '\0') {}

    bool read() {
        if (!read_codes()) return false;
        while (true) {
            if (!read_literals()) return false;
            if (at_ == size_) break;
            if (!read_match()) return false;
            if (at_ == size_) break;
        }
        return !in_.overrun() && in_.at_end();
    }
    std::string take() && {
        out_.resize(size_);
        return std::move(out_);
    }

private:
    static constexpr std::size_t kSlack = 16;  // matches are copied in pieces of so many bytes

    bool read_codes() {
        CodeTables<std::uint8_t> lengths;
        return for_each_code(lengths, *decoders_, [&](auto& code, Decoder& decoder) {
            for (std::uint8_t& length : code) {
                in_.refill();
                length = static_cast<std::uint8_t>(in_.take(4));
                if (length > kMaxCodeBits) return false;
            }
            return make_decoder(code, decoder);
        });
    }
    // Symbols without a code have none of 0 bits, so that reading them stands still; the caller checks.
    Entry symbol(const Decoder& decoder) {
        in_.refill();
        const Entry entry = decoder[in_.peek(kMaxCodeBits)];
        in_.skip(entry.bits);
        return entry;
    }
    bool number(const Decoder& decoder, std::uint32_t& value) {
        const Entry entry = symbol(decoder);
        value = extended(entry.symbol);
        return entry.bits != 0;
    }
    std::uint32_t extended(std::uint32_t symbol) {
        in_.refill();
        return number_base(symbol) + in_.take(number_extra_bits(symbol));
    }
    bool read_literals() {
        std::uint32_t run = 0;
        if (!number(decoders_->runs, run) || run > size_ - at_ || in_.overrun()) return false;
        auto* const out = reinterpret_cast<unsigned char*>(out_.data());
        const std::size_t offset = last_.offset[0];
        for (; run > 0; --run, ++at_) {
            const Entry entry = symbol(decoders_->literals);
            if (entry.bits == 0) return false;
            const unsigned before = at_ >= offset ? out[at_ - offset] : 0U;
            out[at_] = static_cast<unsigned char>(before + entry.symbol);
        }
        return true;
    }
    bool read_match() {
        const Entry entry = symbol(decoders_->offsets);
        if (entry.bits == 0) return false;
        const bool repeats = entry.symbol < kRepeats;
        std::uint32_t offset = 0, length = 0;
        if (repeats) {
            offset = last_.offset[entry.symbol];
        } else {
            offset = extended(entry.symbol - kRepeats) << kLowOffsetBits;
            const Entry low = symbol(decoders_->low_offsets);
            if (low.bits == 0) return false;
            offset |= low.symbol;
        }
        if (!number(repeats ? decoders_->repeat_lengths : decoders_->lengths, length)) return false;
        if (length > size_ || offset == 0 || offset > at_) return false;
        length += kMinMatch;
        if (length > size_ - at_) return false;
        last_.use(offset);
        copy_match(offset, length);
        return true;
    }
    // Pieces that do not touch themselves are copied at once, beyond the end of the match if need be: what is there comes later.
    void copy_match(std::size_t offset, std::size_t length) {
        char* to = out_.data() + at_;
        const char* from = to - offset;
        at_ += length;
        if (offset >= kSlack) {
            for (std::size_t done = 0; done < length; done += kSlack) std::memcpy(to + done, from + done, kSlack);
        } else {
            for (std::size_t i = 0; i < length; ++i) to[i] = from[i];
        }
    }

    BitReader in_;
    std::size_t size_;
    std::string out_;
    std::size_t at_ = 0;
    LastOffsets last_;
    std::unique_ptr<Decoders> decoders_ = std::make_unique<Decoders>();
};

}  // namespace

Result<std::string> decompress(std::string_view block, std::size_t size) {
    if (size > kMaxBlockBytes) {
        return usage_error(fmt::format("a block of {} bytes; need at most {}", size, kMaxBlockBytes));
    }
    if (size == 0) {
        return block.empty() ? Result<std::string>(std::string()) : usage_error("a compressed block is damaged");
    }
    BlockReader reader(block, size);
    if (!reader.read()) return usage_error("a compressed block is damaged");
    return std::move(reader).take();
}

}  // namespace tilewise
