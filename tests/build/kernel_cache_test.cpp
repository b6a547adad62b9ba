// SPDX-License-Identifier: MIT
#include "build/kernel_cache.hpp"

#include <algorithm>
#include <thread>

#include "build/build_testing.hpp"

namespace tilewise {
namespace {

using namespace build_testing;

class KernelCacheTest : public BuildTest {
protected:
    std::string built(int answer) {
        Builder builder(settings_);
        const auto kernel = builder.build(answering(answer));
        EXPECT_TRUE(kernel.ok()) << kernel.error().message;
        return kernel.ok() ? kernel->digest : "";
    }
    void set_used(const std::string& digest, std::int64_t seconds) const {
        const timespec times[2] = {{seconds, 0}, {seconds, 0}};
        ASSERT_EQ(utimensat(AT_FDCWD, (entry(digest) + "/used").c_str(), times, 0), 0);
    }
    // After whatever was done to the entry: it is not used as it is, and the next build puts it right.
    void expect_rebuilt(int answer) {
        const std::string digest = *digest_of(answering(answer));
        Builder builder(settings_);
        const auto kernel = builder.build(answering(answer));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_EQ(kernel->origin, KernelOrigin::built);
        EXPECT_EQ(ask(kernel->path), answer);
        EXPECT_EQ(kernel->path, entry(digest) + "/kernel.so");
        EXPECT_TRUE(cache().verify().empty());
    }
};

TEST_F(KernelCacheTest, EmptyAndMissingCaches) {
    KernelCache none(""), missing(at("not/there"));
    for (KernelCache* cache : {&none, &missing}) {
        EXPECT_TRUE(cache->check().ok());
        EXPECT_FALSE(cache->find(std::string(64, 'a')).has_value());
        EXPECT_FALSE(cache->find("../../etc").has_value());
        EXPECT_TRUE(cache->ls().empty());
        EXPECT_TRUE(cache->verify().empty());
        EXPECT_EQ(cache->stats().bytes, 0);
        EXPECT_EQ(*cache->clear(), 0);
    }
    EXPECT_FALSE(fs::exists(at("not"))) << "looking creates nothing";
    EXPECT_FALSE(none.private_dir().ok());
}

// Who looks for an entry a moment before it is published sees none, and must not take the new one for a broken one.
TEST_F(KernelCacheTest, LookingForAnEntryNeverRemovesOneThatIsPublishedMeanwhile) {
    const std::string digest = built(1), kept = at("kept");
    fs::copy(entry(digest), kept, fs::copy_options::recursive);
    int lost = 0;
    {
        const std::jthread other([&](const std::stop_token& stop) {
            KernelCache looking = cache();
            while (!stop.stop_requested()) static_cast<void>(looking.find(digest));
        });
        for (int i = 0; i < 300; ++i) {
            fs::rename(entry(digest), at("before"));
            fs::remove_all(at("before"));
            fs::copy(kept, at("made"), fs::copy_options::recursive);
            fs::rename(at("made"), entry(digest));
            std::this_thread::sleep_for(1ms);
            if (fs::exists(entry(digest))) continue;
            ++lost;
            fs::copy(kept, at("made"), fs::copy_options::recursive);
            fs::rename(at("made"), entry(digest));
        }
    }
    EXPECT_EQ(lost, 0);
}

TEST_F(KernelCacheTest, TruncatedKernel) {
    const std::string digest = built(1);
    fs::resize_file(entry(digest) + "/kernel.so", 4096);
    ASSERT_EQ(cache().verify().size(), 1U);
    EXPECT_NE(cache().verify()[0].reason.find("4096 bytes instead of"), std::string::npos);
    expect_rebuilt(1);
}

TEST_F(KernelCacheTest, OneFlippedBit) {
    const std::string digest = built(2);
    const std::string path = entry(digest) + "/kernel.so";
    std::string contents = *read_file(path);
    contents[contents.size() / 2] = static_cast<char>(contents[contents.size() / 2] ^ 1);
    ASSERT_TRUE(write_file(path, contents).ok());
    const auto bad = cache().verify();
    ASSERT_EQ(bad.size(), 1U);
    EXPECT_EQ(bad[0].digest, digest);
    EXPECT_NE(bad[0].reason.find("have changed"), std::string::npos) << bad[0].reason;
    expect_rebuilt(2);
}

TEST_F(KernelCacheTest, MissingParts) {
    for (const char* part : {"/manifest.json", "/kernel.so", ""}) {
        const std::string digest = built(3);
        fs::remove_all(entry(digest) + part);
        if (*part == '\0') fs::create_directory(entry(digest));
        expect_rebuilt(3);
    }
}

TEST_F(KernelCacheTest, DamagedManifests) {
    const std::string digest = built(4), other = built(5);
    const std::string path = entry(digest) + "/manifest.json";
    const std::string good = *read_file(path), of_other = *read_file(entry(other) + "/manifest.json");
    std::string elsewhere = good;
    elsewhere.replace(elsewhere.find("\"kernel.so\""), 11, "\"kernel./../x\"");
    for (const std::string& text : {std::string(), good.substr(0, 50), of_other, elsewhere, std::string("[]")}) {
        ASSERT_TRUE(write_file(path, text).ok());
        EXPECT_EQ(cache().verify().size(), 1U) << text;
        expect_rebuilt(4);
    }
}

TEST_F(KernelCacheTest, FilesAndLinksInTheWay) {
    const std::string digest = built(6);
    const std::string good = at("elsewhere");
    fs::copy(entry(digest), good, fs::copy_options::recursive);
    fs::remove_all(entry(digest));
    ASSERT_TRUE(write_file(entry(digest), "a file").ok());
    expect_rebuilt(6);

    fs::remove(entry(digest) + "/kernel.so");
    fs::create_symlink(good + "/kernel.so", entry(digest) + "/kernel.so");
    expect_rebuilt(6);
    EXPECT_TRUE(fs::exists(good + "/kernel.so")) << "what a link points to is not touched";
}

TEST_F(KernelCacheTest, ForeignFilesStay) {
    const std::string digest = built(7);
    const std::string root = settings_.cache_dir;
    const std::vector<std::string> foreign = {"/notes",     "/v1/notes",     "/v1/" + digest.substr(0, 2) + "/notes",
                                              "/tmp/notes", "/failed/notes", "/locks/notes"};
    ASSERT_TRUE(make_directories(root + "/failed").ok());
    for (const std::string& name : foreign) ASSERT_TRUE(write_file(root + name, "mine").ok());
    fs::create_directory_symlink(root_, root + "/v1/00");
    EXPECT_EQ(cache().ls().size(), 1U);
    EXPECT_EQ(*cache().clear(), 1);
    for (const std::string& name : foreign) EXPECT_TRUE(fs::exists(root + name)) << name;
    EXPECT_EQ(cache().stats().entries, 0);
    fs::remove(root + "/tmp/notes");
}

TEST_F(KernelCacheTest, LsAndStats) {
    const std::string first = built(8), second = built(9);
    set_used(first, 13'000'000'000);  // in some centuries
    set_used(second, 1000);
    const auto entries = cache().ls();
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].manifest.digest, first);
    EXPECT_EQ(entries[0].manifest.kernel, "answer_8");
    EXPECT_EQ(entries[1].manifest.digest, second);
    EXPECT_EQ(cache().stats().entries, 2);
    EXPECT_EQ(cache().stats().bytes, entries[0].bytes + entries[1].bytes);
}

TEST_F(KernelCacheTest, PruneRemovesTheLeastRecentlyUsed) {
    std::vector<std::string> digests;
    for (int i = 0; i < 4; ++i) digests.push_back(built(i));
    const int used[] = {4000, 1000, 2000, 3000};
    for (int i = 0; i < 4; ++i) set_used(digests[static_cast<std::size_t>(i)], used[i]);
    const std::int64_t each = cache().stats().bytes / 4;
    EXPECT_EQ(*cache().prune(4 * each + 3), 0);
    EXPECT_EQ(*cache().prune(2 * each + each / 2), 2);
    EXPECT_TRUE(fs::exists(entry(digests[0])));
    EXPECT_TRUE(fs::exists(entry(digests[3])));
    EXPECT_EQ(cache().stats().entries, 2);

    // Using one, in another process as it were, makes it the youngest.
    EXPECT_TRUE(cache().find(digests[3]).has_value());
    EXPECT_EQ(*cache().prune(each + each / 2), 1);
    EXPECT_TRUE(fs::exists(entry(digests[3])));
    EXPECT_EQ(*cache().prune(0, digests[3]), 0) << "the one to keep is kept";
    EXPECT_EQ(*cache().prune(0), 1);
}

TEST_F(KernelCacheTest, TheLimitIsAppliedNowAndThen) {
    const std::string old = built(1000);
    settings_.cache_max_bytes = 1;
    int answer = 1001;
    while ((*digest_of(answering(answer)))[0] != '0') ++answer;
    const std::string digest = built(answer);
    EXPECT_FALSE(fs::exists(entry(old)));
    EXPECT_TRUE(fs::exists(entry(digest))) << "what was just built is kept";
}

TEST_F(KernelCacheTest, ACacheOthersCanWriteIsRefused) {
    built(10);
    ASSERT_EQ(chmod(settings_.cache_dir.c_str(), 0777), 0);
    Builder builder(settings_);
    const auto kernel = builder.build(answering(10));
    ASSERT_FALSE(kernel.ok());
    for (const char* word : {"refused", "chmod go-w", "TILEWISE_CACHE_DIR"}) {
        EXPECT_NE(kernel.error().message.find(word), std::string::npos) << kernel.error().message;
    }
    EXPECT_FALSE(cache().prune(0).ok());
    ASSERT_EQ(chmod(settings_.cache_dir.c_str(), 01777), 0);
    EXPECT_TRUE(builder.build(answering(10)).ok()) << "sticky: others cannot touch what is ours";
    ASSERT_EQ(chmod((settings_.cache_dir + "/v1").c_str(), 01777), 0);
    EXPECT_FALSE(Builder(settings_).build(answering(10)).ok()) << "but within, nobody else has any business";
}

TEST_F(KernelCacheTest, AShardIsCheckedAsStrictlyAsTheCache) {
    const std::string digest = built(12);
    const std::string shard = entry(digest).substr(0, entry(digest).rfind('/'));
    const auto expect_refused = [&](const std::string& word) {
        EXPECT_FALSE(cache().verify().empty() && cache().check(digest).ok());
        Builder builder(settings_);
        const auto kernel = builder.build(answering(12));
        ASSERT_FALSE(kernel.ok());
        for (const std::string& part : {std::string("refused"), shard, word}) {
            EXPECT_NE(kernel.error().message.find(part), std::string::npos) << kernel.error().message;
        }
    };
    for (const mode_t mode : {0720U, 0777U, 01777U}) {
        ASSERT_EQ(chmod(shard.c_str(), mode), 0);
        expect_refused("chmod go-w");
    }
    ASSERT_EQ(chmod(shard.c_str(), 0700), 0);
    EXPECT_TRUE(Builder(settings_).build(answering(12)).ok());
    if (geteuid() == 0) {
        ASSERT_EQ(chown(shard.c_str(), 12345, 12345), 0);
        expect_refused("belongs to user 12345");
        ASSERT_EQ(chown(shard.c_str(), geteuid(), 0), 0);
    }
    fs::rename(shard, at("elsewhere"));
    fs::create_directory_symlink(at("elsewhere"), shard);
    expect_refused("is a link");
}

// Whatever lies there, it is neither used nor waited for, and makes room for a good one.
TEST_F(KernelCacheTest, AnEntryThatIsNotOursAloneIsBuiltAgain) {
    const std::string digest = built(13);
    for (const char* part : {"", "/kernel.so", "/manifest.json"}) {
        ASSERT_EQ(chmod((entry(digest) + part).c_str(), 0777), 0);
        ASSERT_EQ(cache().verify().size(), 1U) << part;
        EXPECT_NE(cache().verify()[0].reason.find("chmod go-w"), std::string::npos) << cache().verify()[0].reason;
        expect_rebuilt(13);
    }
    fs::rename(entry(digest), at("elsewhere"));
    fs::create_directory_symlink(at("elsewhere"), entry(digest));
    expect_rebuilt(13);
    EXPECT_TRUE(fs::exists(at("elsewhere/kernel.so")));
    for (const char* part : {"/kernel.so", "/manifest.json"}) {
        fs::remove(entry(digest) + part);
        ASSERT_EQ(mkfifo((entry(digest) + part).c_str(), 0600), 0);
        expect_rebuilt(13);
    }
}

TEST_F(KernelCacheTest, WhatIsKeptIsForItsOwnerAloneWhateverTheUmask) {
    const mode_t before = umask(0);
    const std::string digest = built(14);
    umask(before);
    for (const auto& path : fs::recursive_directory_iterator(settings_.cache_dir)) {
        EXPECT_EQ(fs::status(path).permissions() & fs::perms(077), fs::perms::none) << path;
    }
    Builder builder(settings_);
    EXPECT_EQ(builder.build(answering(14))->origin, KernelOrigin::cache);
}

TEST_F(KernelCacheTest, AnotherUsersCacheIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
    built(11);
    ASSERT_TRUE(make_directories(settings_.cache_dir + "/libraries").ok());
    for (const char* folder : {"", "/v1", "/libraries"}) {
        ASSERT_EQ(chown((settings_.cache_dir + folder).c_str(), 12345, 12345), 0);
        Builder builder(settings_);
        const auto kernel = builder.build(answering(11));
        ASSERT_FALSE(kernel.ok());
        EXPECT_NE(kernel.error().message.find("belongs to user 12345"), std::string::npos) << kernel.error().message;
        ASSERT_EQ(chown((settings_.cache_dir + folder).c_str(), geteuid(), 0), 0);
    }
    // A file of another user in an entry counts as damage.
    ASSERT_EQ(chown((entry(*digest_of(answering(11))) + "/kernel.so").c_str(), 12345, 12345), 0);
    expect_rebuilt(11);
}

}  // namespace
}  // namespace tilewise
