// SPDX-License-Identifier: MIT
#include "build/message_pack.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "build/toolchain_error.hpp"

namespace tilewise {
namespace {

constexpr int kDeepest = 16;  // metadata of kernels has five levels

class MessagePackReader {
public:
    explicit MessagePackReader(std::string_view bytes) : bytes_(bytes) {}

    Result<Json> value(int depth) {
        if (depth > kDeepest) return bad("values within values");
        if (at_ >= bytes_.size()) return bad("an end");
        const auto tag = static_cast<unsigned char>(bytes_[at_++]);
        if (tag <= 0x7f) return Json(std::int64_t{tag});
        if (tag >= 0xe0) return Json(std::int64_t{tag} - 256);
        if (tag <= 0x8f) return map(tag & 0x0fu, depth);
        if (tag <= 0x9f) return array(tag & 0x0fu, depth);
        if (tag <= 0xbf) return text(tag & 0x1fu);
        switch (tag) {
            case 0xc0: return Json();
            case 0xc2: return Json(false);
            case 0xc3: return Json(true);
            case 0xcc: return whole(1, false);
            case 0xcd: return whole(2, false);
            case 0xce: return whole(4, false);
            case 0xcf: return whole(8, false);
            case 0xd0: return whole(1, true);
            case 0xd1: return whole(2, true);
            case 0xd2: return whole(4, true);
            case 0xd3: return whole(8, true);
            case 0xd9: return counted(1, depth, &MessagePackReader::text_of);
            case 0xda: return counted(2, depth, &MessagePackReader::text_of);
            case 0xdb: return counted(4, depth, &MessagePackReader::text_of);
            case 0xdc: return counted(2, depth, &MessagePackReader::array);
            case 0xdd: return counted(4, depth, &MessagePackReader::array);
            case 0xde: return counted(2, depth, &MessagePackReader::map);
            case 0xdf: return counted(4, depth, &MessagePackReader::map);
            default: return bad(fmt::format("a value of the form {:#x}", tag));
        }
    }
    bool at_end() const { return at_ == bytes_.size(); }
    Error bad(std::string_view what) const {
        return toolchain_error(fmt::format("the metadata has {} at byte {} of {}", what, at_, bytes_.size()));
    }

private:
    // Big-endian; false where the bytes end first.
    bool number(int size, std::uint64_t& to) {
        if (bytes_.size() - at_ < static_cast<std::size_t>(size)) return false;
        to = 0;
        for (int i = 0; i < size; ++i) to = to << 8 | static_cast<unsigned char>(bytes_[at_++]);
        return true;
    }
    Result<Json> whole(int size, bool has_sign) {
        std::uint64_t bits = 0;
        if (!number(size, bits)) return bad("an end within a number");
        const int unused = 64 - 8 * size;
        if (has_sign) return Json(static_cast<std::int64_t>(bits << unused) >> unused);
        if (bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return bad("a huge number");
        return Json(static_cast<std::int64_t>(bits));
    }
    Result<Json> counted(int size, int depth, Result<Json> (MessagePackReader::*read)(std::uint64_t, int)) {
        std::uint64_t count = 0;
        if (!number(size, count)) return bad("an end within a count");
        return (this->*read)(count, depth);
    }
    Result<Json> text(std::uint64_t size) {
        if (bytes_.size() - at_ < size) return bad("an end within a text");
        const std::string_view read = bytes_.substr(at_, size);
        at_ += size;
        return Json(read);
    }
    Result<Json> text_of(std::uint64_t size, int) { return text(size); }
    Result<Json> array(std::uint64_t count, int depth) {
        Json::Array items;
        for (std::uint64_t i = 0; i < count; ++i) {
            auto item = value(depth + 1);
            if (!item) return item;
            items.push_back(std::move(*item));
        }
        return Json(std::move(items));
    }
    Result<Json> map(std::uint64_t count, int depth) {
        Json::Object members;
        for (std::uint64_t i = 0; i < count; ++i) {
            auto key = value(depth + 1);
            if (!key) return key;
            if (!key->string()) return bad("a key that is no text");
            auto item = value(depth + 1);
            if (!item) return item;
            members.push_back({*key->string(), std::move(*item)});
        }
        return Json(std::move(members));
    }

    std::string_view bytes_;
    std::size_t at_ = 0;
};

}  // namespace

Result<Json> read_message_pack(std::string_view bytes) {
    MessagePackReader reader(bytes);
    auto value = reader.value(0);
    if (value && !reader.at_end()) return reader.bad("more than one value");
    return value;
}

}  // namespace tilewise
