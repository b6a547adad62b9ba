// SPDX-License-Identifier: MIT
#include "build/pack.hpp"

#include <fmt/core.h>

#include <random>

#include "base/compress.hpp"
#include "base/sha256.hpp"
#include "build/build_testing.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {
namespace {

using namespace build_testing;

class PackTest : public BuildTest {
protected:
    void SetUp() override {
        BuildTest::SetUp();
        pack_ = at("kernels.pack");
        Builder builder(settings_);
        for (int answer : {1, 2, 3}) {
            const auto kernel = builder.build(answering(answer));
            ASSERT_TRUE(kernel.ok()) << kernel.error().message;
            items_.push_back({kernel->manifest, kernel->path});
        }
        const auto status = write_pack(items_, pack_);
        ASSERT_TRUE(status.ok()) << status.error().message;
        settings_.cache_dir = at("another");
        settings_.compiler = "/nonexistent/c++";
        settings_.packs = {pack_};
    }
    void expect_refused(const std::string& contents, const std::string& why) const {
        ASSERT_TRUE(write_file(at("bad.pack"), contents).ok());
        const auto pack = Pack::open(at("bad.pack"));
        ASSERT_FALSE(pack.ok());
        EXPECT_EQ(pack.error().code, ErrorCode::toolchain);
        EXPECT_NE(pack.error().message.find(why), std::string::npos) << pack.error().message;
        EXPECT_NE(pack.error().message.find(at("bad.pack")), std::string::npos) << pack.error().message;
    }

    std::vector<PackItem> items_;
    std::string pack_;
};

TEST_F(PackTest, RoundTrip) {
    const auto pack = Pack::open(pack_);
    ASSERT_TRUE(pack.ok()) << pack.error().message;
    EXPECT_EQ(pack->size(), 3U);
    EXPECT_EQ(pack->manifests().size(), 3U);
    for (const PackItem& item : items_) {
        ASSERT_NE(pack->find(item.manifest.digest), nullptr);
        EXPECT_EQ(*pack->find(item.manifest.digest), item.manifest);
        EXPECT_EQ(*pack->read(item.manifest.digest), *read_file(item.path));
    }
    EXPECT_EQ(pack->find(std::string(64, '0')), nullptr);
    EXPECT_FALSE(pack->read(std::string(64, '0')).ok());
    items_.push_back(items_[0]);
    std::swap(items_[0], items_[1]);
    ASSERT_TRUE(write_pack(items_, at("again.pack")).ok());
    EXPECT_EQ(*read_file(at("again.pack")), *read_file(pack_)) << "order and doubles do not matter";
}

TEST_F(PackTest, InMemoryItIsTheSame) {
    const std::string contents = *read_file(pack_);
    const auto pack = Pack::from_memory(contents, "in memory");
    ASSERT_TRUE(pack.ok()) << pack.error().message;
    EXPECT_EQ(pack->manifests(), Pack::open(pack_)->manifests());
    for (const PackItem& item : items_) EXPECT_EQ(*pack->read(item.manifest.digest), *read_file(item.path));
    EXPECT_FALSE(pack->read(std::string(64, '0')).ok());

    for (std::size_t size = 0; size < contents.size(); size += 1 + size / 16) {
        const auto cut = Pack::from_memory(std::string_view(contents).substr(0, size), "in memory");
        ASSERT_FALSE(cut.ok()) << size;
        EXPECT_NE(cut.error().message.find("in memory"), std::string::npos) << cut.error().message;
    }
}

TEST_F(PackTest, OneBlockIsDecodedForAKernelAndItsDamageStaysThere) {
    std::vector<PackItem> items;
    for (int i = 0; i < 3; ++i) {
        std::mt19937 random(static_cast<unsigned>(i));
        std::string code(900'000, '\0');  // two of them are a block
        for (std::size_t j = 0; j < code.size(); ++j) code[j] = static_cast<char>(j % 4096 == 0 ? random() : j);
        PackItem item{items_[0].manifest, at(fmt::format("code-{}", i))};
        ASSERT_TRUE(write_file(item.path, code).ok());
        item.manifest.digest = sha256_hex(item.path), item.manifest.kernel = fmt::format("kernel {}", i);
        item.manifest.sha256 = sha256_hex(code), item.manifest.size = static_cast<std::int64_t>(code.size());
        items.push_back(std::move(item));
    }
    ASSERT_TRUE(write_pack(items, at("one.pack"), {"", 1}).ok());
    ASSERT_TRUE(write_pack(items, at("two.pack"), {"", 3}).ok());
    std::string contents = *read_file(at("one.pack"));
    EXPECT_EQ(contents, *read_file(at("two.pack"))) << "however many threads compress";
    contents[contents.size() - 1000] = static_cast<char>(contents[contents.size() - 1000] ^ 1);
    const auto pack = Pack::from_memory(contents, "in memory");
    ASSERT_TRUE(pack.ok());
    for (const PackItem& item : items) {
        const auto code = pack->read(item.manifest.digest);
        EXPECT_EQ(code.ok(), &item != &items[2]);
        EXPECT_TRUE(!code || *code == *read_file(item.path));
    }
}

TEST_F(PackTest, ItIsSmallerThanItsKernels) {
    std::uintmax_t bytes = 0;
    for (const PackItem& item : items_) bytes += fs::file_size(item.path);
    EXPECT_LT(fs::file_size(pack_), bytes / 4);
}

TEST_F(PackTest, ItMayCarryTuningRecords) {
    EXPECT_EQ(Pack::open(pack_)->tuning(), "");
    EXPECT_TRUE(Builder(settings_).tuning().empty());
    ASSERT_TRUE(write_pack(items_, pack_, {"one\ntwo\n", 1}).ok());
    EXPECT_EQ(Pack::open(pack_)->tuning(), "one\ntwo\n");
    EXPECT_EQ(Builder(settings_).tuning(), std::vector<std::string>{"one\ntwo\n"});
}

TEST_F(PackTest, WhatNeedsACompilerIsKnownAhead) {
    Builder builder(settings_);
    EXPECT_FALSE(builder.has_compiler(answering(4)));
    EXPECT_FALSE(builder.needs_compiler(answering(1))) << "packed";
    EXPECT_TRUE(builder.needs_compiler(answering(4)));
    ASSERT_TRUE(builder.build(answering(1)).ok());
    settings_.packs.clear();
    EXPECT_FALSE(Builder(settings_).needs_compiler(answering(1))) << "cached";
    EXPECT_TRUE(Builder(settings_).needs_compiler(answering(2)));
    settings_.compiler = "";
    EXPECT_TRUE(Builder(settings_).has_compiler(answering(2)));
    BuildRequest for_another = answering(2);
    for_another.suffix = ".bin";
    EXPECT_FALSE(Builder(settings_).has_compiler(for_another));
}

TEST_F(PackTest, AHitNeedsNoCompilerAndGoesIntoTheCache) {
    {
        Builder builder(settings_);
        const auto kernel = builder.build(answering(2));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_EQ(kernel->origin, KernelOrigin::pack);
        EXPECT_EQ(kernel->path, entry(kernel->digest) + "/kernel.so");
        EXPECT_EQ(ask(kernel->path), 2);
        EXPECT_FALSE(builder.build(answering(4)).ok());
    }
    settings_.packs.clear();
    Builder builder(settings_);
    EXPECT_EQ(builder.build(answering(2))->origin, KernelOrigin::cache);
    EXPECT_TRUE(cache().verify().empty());
}

TEST_F(PackTest, OneMayBeAddedLater) {
    settings_.packs.clear();
    Builder builder(settings_);
    EXPECT_FALSE(builder.build(answering(2)).ok());
    ASSERT_TRUE(builder.add_pack(pack_).ok());
    EXPECT_FALSE(builder.needs_compiler(answering(2)));
    const auto kernel = builder.build(answering(2));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->origin, KernelOrigin::pack);
    EXPECT_FALSE(builder.add_pack(at("missing.pack")).ok());
    EXPECT_TRUE(builder.build(answering(3)).ok()) << "the others are still there";
}

TEST_F(PackTest, WithoutAWritableCacheItIsLoadedFromMemory) {
    ASSERT_TRUE(write_file(settings_.cache_dir, "a file, not a folder").ok());
    Builder first(settings_), second(settings_);
    for (int answer : {1, 3}) {
        const auto kernel = first.build(answering(answer));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_EQ(kernel->origin, KernelOrigin::pack);
        EXPECT_NE(kernel->note.find("cache cannot be used"), std::string::npos) << kernel->note;
        EXPECT_EQ(ask(kernel->path), answer);
        EXPECT_EQ(second.build(answering(answer))->path, kernel->path);
    }
}

TEST_F(PackTest, CutOffAnywhereItIsRefused) {
    const std::string good = *read_file(pack_);
    const std::size_t index = good.find('\n');
    for (const std::size_t size : {index + 1, index + 20, good.size() - 1, good.size() / 2}) {
        expect_refused(good.substr(0, size), "cut off");
    }
    for (const std::size_t size : {std::size_t{0}, std::size_t{5}, index})
        expect_refused(good.substr(0, size), "not a pack");
}

TEST_F(PackTest, DamageIsFound) {
    const std::string good = *read_file(pack_);
    std::string bad = good;
    bad[good.find('\n') + 50] = static_cast<char>(bad[good.find('\n') + 50] ^ 1);
    expect_refused(bad, "index is damaged");
    expect_refused("PK\003\004 something else\n", "not a pack");
    expect_refused("tilewise-pack 1 10 x\n", "format 1; this library reads format 2: make it anew");
    expect_refused("tilewise-pack 3 10 10 x\n", "format 3");
    expect_refused("tilewise-pack 2 ten 10 x\n", "first line");
    expect_refused("tilewise-pack 2 10 99999999999 x\n", "first line");
    const auto with_block = [](const std::string& block, std::size_t bytes) {
        return fmt::format("tilewise-pack 2 {} {} {}\n{}", block.size(), bytes, sha256_hex(block), block);
    };
    const auto with_index = [&](const std::string& text) { return with_block(compress(text), text.size()); };
    expect_refused(with_block("nonsense", 100), "block is damaged");
    expect_refused(with_index(R"({"abi": 999, "version": "9.9", "blocks": [], "kernels": []})"), "kernel ABI 999");
    expect_refused(with_index("{}"), "abi");
    expect_refused(with_index("nonsense"), "line 1");
    const auto with_lists = [&](const std::string& blocks, const std::string& kernels) {
        return with_index(
            fmt::format(R"({{"abi": {}, "version": "0", "blocks": {}, "kernels": {}}})", kKernelAbi, blocks, kernels));
    };
    expect_refused(with_lists("[]", "3"), "damaged");
    expect_refused(with_lists("3", "[]"), "damaged");
    expect_refused(with_lists(R"([{"stored": 9, "bytes": 9}])", "[]"), "cut off");
    expect_refused(with_lists(R"([{"stored": 0, "bytes": 99999999999}])", "[]"), "bytes");
    const std::string manifest = manifest_json(items_[0].manifest).dump();
    for (const char* place :
         {R"({"block": 0, "offset": 0, "manifest": )", R"({"block": 1, "offset": 0, "manifest": )"}) {
        expect_refused(with_lists(R"([{"stored": 0, "bytes": 9}])", "[" + (place + manifest) + "}]"), "in no block");
    }
    EXPECT_FALSE(Pack::open(at("missing")).ok());
    EXPECT_FALSE(Pack::open(root_).ok());
}

TEST_F(PackTest, ADamagedKernelInItIsNotUsed) {
    std::string bad = *read_file(pack_);
    bad[bad.size() - 20] = static_cast<char>(bad[bad.size() - 20] ^ 4);
    ASSERT_TRUE(write_file(pack_, bad).ok());
    Builder builder(settings_);
    EXPECT_TRUE(builder.pack_errors().empty());
    int refused = 0;
    for (int answer : {1, 2, 3}) {
        const auto kernel = builder.build(answering(answer));
        refused += kernel.ok() ? 0 : 1;
        EXPECT_TRUE(!kernel.ok() || ask(kernel->path) == answer);
    }
    EXPECT_GE(refused, 1);
    settings_.compiler = "";
    EXPECT_EQ(Builder(settings_).build_all(std::vector{answering(1), answering(2), answering(3)}, 1).size(), 3U);
}

TEST_F(PackTest, WritingIsAllOrNothing) {
    ASSERT_TRUE(write_file(at("changed"), "something else").ok());
    items_[1].path = at("changed");
    const std::string before = *read_file(pack_);
    const auto status = write_pack(items_, pack_);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("have changed"), std::string::npos) << status.error().message;
    EXPECT_EQ(*read_file(pack_), before);
    EXPECT_FALSE(write_pack(items_, at("missing/x.pack")).ok());
    for (const auto& path : fs::directory_iterator(root_)) {
        EXPECT_TRUE(path.path() == pack_ || !path.path().string().starts_with(pack_)) << path << " is left";
    }
}

TEST_F(PackTest, OnlyItsOwnerMayWriteToItWhateverTheUmask) {
    const mode_t before = umask(0);
    const auto status = write_pack(items_, pack_);
    umask(before);
    ASSERT_TRUE(status.ok()) << status.error().message;
    struct stat info {};
    ASSERT_EQ(stat(pack_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0644U);
}

// In a folder where others may write they know our process number, and could lead us to a file of ours.
TEST_F(PackTest, NoLinkIsWrittenThrough) {
    ASSERT_TRUE(write_file(at("mine"), "mine").ok());
    fs::create_symlink(at("mine"), pack_ + "." + std::to_string(getpid()) + ".tmp");
    EXPECT_TRUE(write_pack(items_, pack_).ok());
    fs::create_symlink(at("mine"), at("link.pack"));
    const auto status = write_pack(items_, at("link.pack"));
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("not a plain file"), std::string::npos) << status.error().message;
    EXPECT_EQ(*read_file(at("mine")), "mine");
}

TEST_F(PackTest, OneThatOthersMayHaveWrittenIsRefusedAndLeavesNothingInTheCache) {
    const auto expect_refused = [&](const std::string& word) {
        Builder builder(settings_);
        ASSERT_EQ(builder.pack_errors().size(), 1U);
        const std::string& message = builder.pack_errors()[0].message;
        for (const std::string& part : {word, pack_}) EXPECT_NE(message.find(part), std::string::npos) << message;
        EXPECT_TRUE(builder.needs_compiler(answering(1)));
        EXPECT_FALSE(builder.build(answering(1)).ok());
        EXPECT_FALSE(builder.add_pack(pack_).ok());
        EXPECT_FALSE(builder.build(answering(2)).ok());
        EXPECT_EQ(cache().stats().entries, 0);
    };
    for (const mode_t mode : {0664U, 0646U, 0666U}) {
        ASSERT_EQ(chmod(pack_.c_str(), mode), 0);
        expect_refused("chmod go-w");
    }
    ASSERT_EQ(chmod(pack_.c_str(), 0644), 0);
    if (geteuid() == 0) {
        ASSERT_EQ(chown(pack_.c_str(), 12345, 12345), 0);
        expect_refused("belongs to user 12345");
        ASSERT_EQ(chown(pack_.c_str(), 0, 0), 0);
    }
    fs::rename(pack_, at("moved.pack"));
    ASSERT_EQ(mkfifo(pack_.c_str(), 0600), 0);
    expect_refused("not a plain file");
    fs::remove(pack_);
    fs::create_symlink(at("moved.pack"), pack_);
    EXPECT_TRUE(Builder(settings_).build(answering(1)).ok()) << "a link to a trusted pack";
}

}  // namespace
}  // namespace tilewise
