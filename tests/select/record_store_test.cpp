// SPDX-License-Identifier: MIT
#include "select/record_store.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/files.hpp"
#include "build/build_testing.hpp"
#include "measure/record_csv.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAmple = std::int64_t{1} << 20;

Record numbered_record(std::int64_t number) {
    Record record;
    record.problem = "gemm:m=1,n=1,k=1,dtype=fp32,layout=rcr";
    record.status = RecordStatus::crash;
    record.reason = "one \"line\",\nand another";
    record.samples = number;
    return record;
}

class RecordFile : public testing::Test {
protected:
    void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
    void TearDown() override { fs::remove_all(root_); }
    std::string at(const std::string& name) const { return root_ + "/" + name; }
    std::string path() const { return at("records.csv"); }
    std::vector<Record> records() const {
        const auto read = read_records(path());
        EXPECT_TRUE(read.ok()) << read.error().message;
        return read ? *read : std::vector<Record>{};
    }
    // Neither read nor written, and said.
    void expect_refused(const std::string& word) const {
        const RecordStore store(path(), kAmple);
        const Record record = numbered_record(1);
        const auto status = store.append({&record, 1});
        ASSERT_FALSE(status.ok());
        EXPECT_NE(status.error().message.find("not recorded"), std::string::npos) << status.error().message;
        EXPECT_NE(status.error().message.find(word), std::string::npos) << status.error().message;
        EXPECT_FALSE(fs::exists(path() + ".lock"));
    }

    std::string root_ = "/tmp/tilewise-records-test-XXXXXX";
};

TEST_F(RecordFile, KeepsWholeBatchesForItsOwnerAlone) {
    const mode_t before = umask(0);
    const RecordStore store(at("a/b/records.csv"), kAmple);
    EXPECT_EQ(store.size()->records, 0);
    const std::vector<Record> first = {numbered_record(1), numbered_record(2)}, second = {numbered_record(3)};
    EXPECT_TRUE(store.append({}).ok());
    EXPECT_FALSE(fs::exists(store.path())) << "nothing was measured";
    ASSERT_TRUE(store.append(first).ok());
    ASSERT_TRUE(store.append(second).ok());
    umask(before);
    struct stat info {};
    ASSERT_EQ(stat(store.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
    const auto kept = read_records(store.path());
    ASSERT_TRUE(kept.ok()) << kept.error().message;
    EXPECT_EQ(*kept, (std::vector<Record>{first[0], first[1], second[0]}));
    EXPECT_EQ(store.size()->records, 3);
    EXPECT_EQ(store.size()->bytes, info.st_size);
}

TEST_F(RecordFile, ManyProcessesMayAppendAtOnce) {
    constexpr int kProcesses = 4, kBatches = 25;
    std::vector<pid_t> children;
    for (int process = 0; process < kProcesses; ++process) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child > 0) {
            children.push_back(child);
            continue;
        }
        const RecordStore store(path(), kAmple);
        bool ok = true;
        for (int i = 0; i < kBatches; ++i) {
            const std::vector<Record> batch(3, numbered_record(process));
            ok = store.append(batch).ok() && ok;
        }
        _exit(ok ? 0 : 1);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    std::map<std::int64_t, int> counts;
    for (const Record& record : records()) ++counts[record.samples];
    EXPECT_EQ(counts.size(), std::size_t{kProcesses});
    for (const auto& [process, count] : counts) EXPECT_EQ(count, 3 * kBatches) << process;
}

TEST_F(RecordFile, TheOlderHalfGoesWhenItIsFull) {
    const auto line = static_cast<std::int64_t>(record_to_csv(numbered_record(100)).size() + 1);
    const std::int64_t limit = static_cast<std::int64_t>(record_header().size()) + 1 + 20 * line;
    const RecordStore store(path(), limit);
    for (std::int64_t i = 100; i < 120; ++i) {
        const Record record = numbered_record(i);
        ASSERT_TRUE(store.append({&record, 1}).ok());
    }
    EXPECT_EQ(store.size()->records, 20) << "up to the limit nothing goes";
    const Record last = numbered_record(120);
    ASSERT_TRUE(store.append({&last, 1}).ok());
    const auto kept = records();
    EXPECT_LE(store.size()->bytes, limit / 2 + static_cast<std::int64_t>(record_header().size()) + 1);
    ASSERT_GE(kept.size(), 9U);
    for (std::size_t i = 0; i < kept.size(); ++i) {
        EXPECT_EQ(kept[i], numbered_record(121 - static_cast<std::int64_t>(kept.size() - i)));
    }
    struct stat info {};
    ASSERT_EQ(stat(path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
    // A batch that is larger than the limit.
    const std::vector<Record> many(100, numbered_record(500));
    ASSERT_TRUE(store.append(many).ok());
    EXPECT_LE(store.size()->bytes, limit);
    EXPECT_EQ(records().back(), numbered_record(500));
    ASSERT_TRUE(RecordStore(path(), 10).append(many).ok());
    EXPECT_TRUE(records().empty());
}

TEST_F(RecordFile, WithALimitOfNothingNoneIsKept) {
    const Record record = numbered_record(1);
    EXPECT_TRUE(RecordStore(path(), 0).append({&record, 1}).ok());
    EXPECT_TRUE(RecordStore("", 0).append({&record, 1}).ok());
    EXPECT_FALSE(fs::exists(path()));
}

TEST_F(RecordFile, WithoutAPlaceItSaysSo) {
    const Record record = numbered_record(1);
    const auto nowhere = RecordStore("", kAmple).append({&record, 1});
    ASSERT_FALSE(nowhere.ok());
    EXPECT_NE(nowhere.error().message.find("TILEWISE_CACHE_DIR"), std::string::npos) << nowhere.error().message;
    EXPECT_EQ(RecordStore("", kAmple).size()->records, 0);
    EXPECT_FALSE(RecordStore("/proc/nowhere/records.csv", kAmple).append({&record, 1}).ok());
}

TEST_F(RecordFile, WhatAKilledProcessLeftUnfinishedGoes) {
    const RecordStore store(path(), kAmple);
    const std::vector<Record> batch = {numbered_record(1), numbered_record(2)};
    ASSERT_TRUE(store.append(batch).ok());
    const std::string whole = *read_file(path());
    for (const std::size_t lost : {1U, 8U, 40U, 60U}) {
        ASSERT_TRUE(write_file(path(), whole.substr(0, whole.size() - lost)).ok());
        EXPECT_EQ(store.size()->records, 1);
        ASSERT_TRUE(store.append({&batch[1], 1}).ok());
        EXPECT_EQ(records(), batch) << lost;
    }
}

TEST_F(RecordFile, OtherColumnsAreSetAside) {
    ASSERT_TRUE(write_file(path(), "schema,other\n1,1\n").ok());
    const RecordStore store(path(), kAmple);
    const std::vector<Record> batch = {numbered_record(1)};
    ASSERT_TRUE(store.append(batch).ok());
    EXPECT_EQ(*read_file(path() + ".old"), "schema,other\n1,1\n");
    EXPECT_EQ(records(), batch);
}

TEST_F(RecordFile, ALinkASecondNameAndAFifoAreRefused) {
    const std::string mine = at("mine.csv");
    ASSERT_TRUE(write_file(mine, record_header() + "\n").ok());
    fs::create_symlink(mine, path());
    expect_refused("is a link");
    EXPECT_FALSE(RecordStore(path(), kAmple).size().ok());
    fs::remove(path());
    fs::create_hard_link(mine, path());
    expect_refused("another file's name");
    fs::remove(path());
    ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
    expect_refused("not a plain file");
    EXPECT_FALSE(RecordStore(path(), kAmple).size().ok());
    EXPECT_EQ(*read_file(mine), record_header() + "\n");
}

TEST_F(RecordFile, OneThatOthersMayWriteIsRefused) {
    ASSERT_TRUE(write_file(path(), record_header() + "\n").ok());
    ASSERT_EQ(chmod(path().c_str(), 0666), 0);
    expect_refused("chmod go-w");
    ASSERT_EQ(chmod(path().c_str(), 0600), 0);
    if (geteuid() != 0) return;
    ASSERT_EQ(chown(path().c_str(), 12345, 12345), 0);
    expect_refused("belongs to user 12345");
}

TEST(RecordStoreSettings, ComeFromTheEnvironment) {
    const build_testing::Variable cache("TILEWISE_CACHE_DIR", "/some/where"), most("TILEWISE_RECORDS_MAX", "2K");
    const RecordStore store = record_store(*build_settings());
    EXPECT_EQ(store.path(), "/some/where/records.csv");
    EXPECT_EQ(store.max_bytes(), 2048);
    for (const char* bad : {"lots", "-1", "2G"}) {
        const build_testing::Variable other("TILEWISE_RECORDS_MAX", bad);
        const auto settings = build_settings();
        ASSERT_FALSE(settings.ok()) << bad;
        EXPECT_NE(settings.error().message.find("TILEWISE_RECORDS_MAX"), std::string::npos);
    }
    EXPECT_EQ(RecordStore(record_store(BuildSettings{})).path(), "");
    EXPECT_EQ(record_store(BuildSettings{}).max_bytes(), std::int64_t{64} << 20);
}

}  // namespace
}  // namespace tilewise
