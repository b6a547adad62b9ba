// SPDX-License-Identifier: MIT
#include "select/tuning_database.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/files.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;

const TuningRecord kRecord = {"d", "p", "k", "c", 2.0};

class TuningFile : public testing::Test {
protected:
    void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
    void TearDown() override { fs::remove_all(root_); }
    std::string at(const std::string& name) const { return root_ + "/" + name; }
    // A file of one record that a user keeps elsewhere.
    std::string good() const {
        TuningDatabase elsewhere(at("good.jsonl"));
        EXPECT_TRUE(elsewhere.add(kRecord).ok());
        return elsewhere.path();
    }
    // Neither read nor written, and said; what is found out is still kept for this process.
    void expect_refused(const std::string& word) const {
        TuningDatabase database(at("tuning.jsonl"));
        EXPECT_FALSE(database.find("d", "p").has_value());
        ASSERT_TRUE(database.refused().has_value());
        EXPECT_NE(database.refused()->message.find(word), std::string::npos) << database.refused()->message;
        const auto added = database.add({"d", "q", "k", "c", 3.0});
        ASSERT_FALSE(added.ok());
        EXPECT_NE(added.error().message.find(at("tuning.jsonl")), std::string::npos) << added.error().message;
        EXPECT_EQ(database.find("d", "q")->us, 3.0);
        EXPECT_FALSE(TuningDatabase("").load(at("tuning.jsonl")).ok());
    }

    std::string root_ = "/tmp/tilewise-tuning-test-XXXXXX";
};

TEST_F(TuningFile, IsForItsOwnerAloneAndSoIsItsFolder) {
    const mode_t before = umask(0);
    TuningDatabase database(at("a/b/tuning.jsonl"));
    EXPECT_TRUE(database.add(kRecord).ok());
    umask(before);
    struct stat info {};
    ASSERT_EQ(stat(at("a/b").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
    ASSERT_EQ(stat(database.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
    TuningDatabase reread(database.path());
    EXPECT_EQ(*reread.find("d", "p"), kRecord);
    EXPECT_FALSE(reread.refused().has_value());
}

TEST_F(TuningFile, ALinkIsRefused) {
    const std::string mine = good();
    const std::string text = *read_file(mine);
    fs::create_symlink(mine, at("tuning.jsonl"));
    expect_refused("is a link");
    EXPECT_EQ(*read_file(mine), text);
    fs::remove(at("tuning.jsonl"));
    fs::create_symlink(at("nothing"), at("tuning.jsonl"));
    expect_refused("is a link");
    EXPECT_FALSE(fs::exists(at("nothing")));
}

TEST_F(TuningFile, AnotherNameOfAFileIsNotWrittenTo) {
    const std::string mine = good();
    const std::string text = *read_file(mine);
    fs::create_hard_link(mine, at("tuning.jsonl"));
    TuningDatabase database(at("tuning.jsonl"));
    EXPECT_FALSE(database.add(kRecord).ok());
    EXPECT_EQ(*read_file(mine), text);
}

TEST_F(TuningFile, AFifoIsRefusedAndNotWaitedFor) {
    ASSERT_EQ(mkfifo(at("tuning.jsonl").c_str(), 0600), 0);
    expect_refused("tuning.jsonl");
}

TEST_F(TuningFile, OneThatOthersMayHaveWrittenIsRefused) {
    fs::rename(good(), at("tuning.jsonl"));
    for (const mode_t mode : {0620U, 0666U}) {
        ASSERT_EQ(chmod(at("tuning.jsonl").c_str(), mode), 0);
        expect_refused("chmod go-w");
    }
    ASSERT_EQ(chmod(at("tuning.jsonl").c_str(), 0644), 0);
    EXPECT_EQ(TuningDatabase(at("tuning.jsonl")).size(), 1U);
    if (geteuid() != 0) return;
    ASSERT_EQ(chown(at("tuning.jsonl").c_str(), 12345, 12345), 0);
    expect_refused("belongs to user 12345");
}

TEST_F(TuningFile, WithoutAPlaceResultsAreKeptForThisProcess) {
    TuningDatabase database("");
    EXPECT_FALSE(database.find("d", "p").has_value());
    EXPECT_FALSE(database.refused().has_value()) << "nothing is wrong yet";
    const auto added = database.add(kRecord);
    ASSERT_FALSE(added.ok());
    for (const char* word : {"this process only", "TILEWISE_CACHE_DIR"}) {
        EXPECT_NE(added.error().message.find(word), std::string::npos) << added.error().message;
    }
    EXPECT_EQ(*database.find("d", "p"), kRecord);
}

TEST_F(TuningFile, WhatAPackSaysCountsWhereNothingWasMeasuredHere) {
    TuningDatabase database(at("tuning.jsonl"));
    ASSERT_TRUE(database.add(kRecord).ok());
    const TuningRecord other = {"d", "q", "k", "c", 5.0};
    const TuningRecord slower = {"d", "p", "another", "c", 9.0};
    ASSERT_TRUE(database.add_missing(tuning_line(slower) + "\n" + tuning_line(other) + "\n", "a pack").ok());
    EXPECT_EQ(database.find("d", "p"), kRecord);
    EXPECT_EQ(database.find("d", "q"), other);
    EXPECT_EQ(database.records().size(), 2U);
    EXPECT_EQ(TuningDatabase(database.path()).size(), 1U) << "not kept";
    const auto bad = database.add_missing(tuning_line({"d", "r", "k", "c", 1.0}) + "\nnonsense\n", "a pack");
    ASSERT_FALSE(bad.ok());
    EXPECT_NE(bad.error().message.find("'a pack', line 2"), std::string::npos) << bad.error().message;
    EXPECT_FALSE(database.find("d", "r").has_value());
}

}  // namespace
}  // namespace tilewise
