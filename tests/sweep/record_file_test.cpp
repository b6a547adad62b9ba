// SPDX-License-Identifier: MIT
#include "sweep/record_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/files.hpp"
#include "measure/record_csv.hpp"

namespace tilewise {
namespace {

struct RecordFileTest : testing::Test {
    const std::string path =
        std::filesystem::temp_directory_path() / ("tilewise-sweep-" + std::to_string(getpid()) + ".csv");

    RecordFileTest() { std::filesystem::remove(path); }
    ~RecordFileTest() override { std::filesystem::remove(path); }

    static Record record(const std::string& kernel, RecordStatus status = RecordStatus::ok) {
        Record one;
        one.device = "a device";
        one.set = "a set@1234";
        one.problem = "a problem";
        one.kernel_name = kernel;
        one.status = status;
        return one;
    }
    Result<RecordFile> resume() const { return RecordFile::resume(path, "a device", "a set@1234"); }
    std::string text() const { return *read_file(path); }
};

TEST_F(RecordFileTest, BeginsWithAHeaderAndGoesOn) {
    {
        auto file = RecordFile::begin(path);
        ASSERT_TRUE(file.ok()) << file.error().message;
        ASSERT_TRUE(file->append(record("one")).ok());
        EXPECT_TRUE(file->has("a problem", "one"));
    }
    auto again = resume();
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_TRUE(again->has("a problem", "one"));
    EXPECT_FALSE(again->has("a problem", "two"));
    ASSERT_EQ(again->found().size(), 1u);
    ASSERT_TRUE(again->append(record("two")).ok());
    EXPECT_EQ(text(),
              record_header() + '\n' + record_to_csv(record("one")) + '\n' + record_to_csv(record("two")) + '\n');
    EXPECT_FALSE(RecordFile::begin(path).ok()) << "nothing is overwritten";
}

TEST_F(RecordFileTest, AFileOfSomethingElseStaysAsItIs) {
    for (const std::string other : {"my diary", "a line\nanother", "\"a quote that never ends\nschema,set\n"}) {
        ASSERT_TRUE(write_file(path, other).ok());
        const auto refused = resume();
        ASSERT_FALSE(refused.ok()) << other;
        EXPECT_NE(refused.error().message.find("has no records of a sweep"), std::string::npos)
            << refused.error().message;
        EXPECT_EQ(text(), other);
    }
    ASSERT_TRUE(write_file(path, record_header().substr(0, 20)).ok()) << "of a process that was killed at once";
    ASSERT_TRUE(resume().ok());
    EXPECT_EQ(text(), record_header() + '\n');
}

TEST_F(RecordFileTest, GoingOnWithAMissingOrEmptyFileBeginsIt) {
    ASSERT_TRUE(resume().ok());
    EXPECT_EQ(text(), record_header() + '\n');
    ASSERT_TRUE(write_file(path, "").ok());
    ASSERT_TRUE(resume().ok());
    EXPECT_EQ(text(), record_header() + '\n');
    ASSERT_TRUE(write_file(path, record_header().substr(0, 9)).ok());
    ASSERT_TRUE(resume().ok());
    EXPECT_EQ(text(), record_header() + '\n');
}

TEST_F(RecordFileTest, ATornLastLineIsDropped) {
    Record two = record("two");
    two.reason = "lines\nin a \"quote\"";
    const std::string whole = record_header() + '\n' + record_to_csv(record("one")) + '\n', last = record_to_csv(two);
    for (std::size_t cut = 1; cut < last.size(); ++cut) {
        ASSERT_TRUE(write_file(path, whole + last.substr(0, cut)).ok());
        const auto file = resume();
        ASSERT_TRUE(file.ok()) << cut << ": " << file.error().message;
        EXPECT_EQ(file->found().size(), 1u);
        EXPECT_EQ(text(), whole);
    }
}

TEST_F(RecordFileTest, WhatWasLeftOutIsMeasuredNow) {
    Record left = record("left", RecordStatus::skipped);
    left.reason = std::string(kLeftOut) + "the budget was over";
    Record skipped = record("skipped", RecordStatus::skipped);
    skipped.reason = "three crashed";
    ASSERT_TRUE(
        write_file(path, record_header() + '\n' + record_to_csv(left) + '\n' + record_to_csv(skipped) + '\n').ok());
    const auto file = resume();
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_FALSE(file->has("a problem", "left"));
    EXPECT_TRUE(file->has("a problem", "skipped"));
    EXPECT_EQ(text(), record_header() + '\n' + record_to_csv(skipped) + '\n');
}

TEST_F(RecordFileTest, AnotherDeviceListOrSchemaIsRefusedNamingBoth) {
    const auto refused = [&](const std::string& contents, const std::string& have, const std::string& need) {
        ASSERT_TRUE(write_file(path, contents).ok());
        const auto file = resume();
        ASSERT_FALSE(file.ok());
        for (const std::string& told : {path, have, need}) {
            EXPECT_NE(file.error().message.find(told), std::string::npos) << file.error().message;
        }
        EXPECT_EQ(text(), contents) << "nothing is changed";
    };
    Record other = record("one");
    other.device = "another device";
    refused(record_header() + '\n' + record_to_csv(other) + '\n', "another device", "a device");
    other = record("one");
    other.set = "a set@5678";
    refused(record_header() + '\n' + record_to_csv(other) + '\n', "a set@5678", "a set@1234");
    refused("schema,device,problem\n1,a device,p\n", "have 1", "is 2");
    refused("a,b\n1,2\n", "no records", path);
}

TEST_F(RecordFileTest, AFullDiskLeavesWholeRecords) {
    auto file = RecordFile::begin(path);
    ASSERT_TRUE(file.ok() && file->append(record("one")).ok());
    const std::string before = text();
    struct rlimit old {};
    getrlimit(RLIMIT_FSIZE, &old);
    const struct rlimit little { before.size() + 10, old.rlim_max };
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    const auto status = file->append(record("two"));
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, handler);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("--resume"), std::string::npos) << status.error().message;
    EXPECT_EQ(text(), before);
    EXPECT_TRUE(file->append(record("two")).ok());
}

TEST_F(RecordFileTest, OnlyAPlainFileIsWritten) {
    for (const std::string& place : {std::string("/dev/full"), std::string("/nonexistent/a.csv")}) {
        const auto file = RecordFile::begin(place);
        ASSERT_FALSE(file.ok());
        EXPECT_NE(file.error().message.find(place), std::string::npos) << file.error().message;
    }
}

}  // namespace
}  // namespace tilewise
