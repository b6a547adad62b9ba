// SPDX-License-Identifier: MIT
#include "build/message_pack.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tilewise {
namespace {

using namespace std::string_literals;

std::string read(const std::string& bytes) {
    const auto value = read_message_pack(bytes);
    return value ? value->dump() : value.error().message;
}

TEST(MessagePack, ReadsEveryFormThatMetadataHas) {
    EXPECT_EQ(read("\x82\xa1"s + "a\x07\xa1" + "b\x93\xc0\xc2\xc3"), R"({"a":7,"b":[null,false,true]})");
    EXPECT_EQ(read("\x96\xff\xd0\x80\xcc\xff\xcd\x01\x00\xce\x00\x01\x00\x00\xd1\xff\x00"s),
              "[-1,-128,255,256,65536,-256]");
    EXPECT_EQ(read("\xdc\x00\x02\xd9\x01x\xda\x00\x01y"s), R"(["x","y"])");
    EXPECT_EQ(read("\xde\x00\x01\xa1k\xd3\xff\xff\xff\xff\xff\xff\xff\xfe"s), R"({"k":-2})");
}

TEST(MessagePack, RefusesWhatEndsTooSoonOrGoesOn) {
    for (const std::string& bytes :
         {""s, "\x82\xa1"s, "\xa5"s + "ab", "\xdd\xff\xff\xff\xff"s, "\xcd\x01"s, "\x01\x02"s, "\x81\x01\x02"s, "\xc1"s,
          "\xcb"s, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"s, std::string(1000, '\x91')}) {
        EXPECT_FALSE(read_message_pack(bytes).ok()) << read(bytes);
    }
}

}  // namespace
}  // namespace tilewise
