// SPDX-License-Identifier: MIT
#include "base/files.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "base/embedded.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class FileTree : public testing::Test {
protected:
    void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
    void TearDown() override { fs::remove_all(root_); }
    std::string at(const std::string& name) const { return root_ + "/" + name; }
    void write(const std::string& name, std::string_view text = "x") const {
        ASSERT_TRUE(make_directories(fs::path(at(name)).parent_path()).ok());
        ASSERT_TRUE(write_file(at(name), text).ok());
    }

    int entries() const {
        return static_cast<int>(std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
    }
    static int mode_of(const std::string& path) {
        struct stat info {};
        return lstat(path.c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 07777) : -1;
    }

    std::string root_ = "/tmp/tilewise-files-test-XXXXXX";
};

TEST(Files, EmbeddedFilesAreTheFilesOfTheTree) {
    ASSERT_FALSE(embedded_files().empty());
    std::string_view before;
    for (const EmbeddedFile& file : embedded_files()) {
        EXPECT_LT(before, file.path) << "sorted, no path twice";
        before = file.path;
        const auto text = read_file(std::string(TILEWISE_SOURCE_DIR "/") + std::string(file.path));
        ASSERT_TRUE(text.ok()) << text.error().message;
        EXPECT_EQ(*text, file.text) << file.path;
    }
}

TEST(Files, AMissingFileIsNamedWithTheReason) {
    for (const std::string path : {"/nonexistent/x.json", "/tmp"}) {
        const auto text = read_file(path);
        ASSERT_FALSE(text.ok()) << path;
        EXPECT_EQ(text.error().code, ErrorCode::usage);
        EXPECT_NE(text.error().message.find(path), std::string::npos) << text.error().message;
        EXPECT_GT(text.error().message.size(), path.size() + 20) << "says why: " << text.error().message;
    }
}

TEST_F(FileTree, WriteReplacesAndErrorsNameThePath) {
    write("a", "long text");
    write("a", "short");
    EXPECT_EQ(*read_file(at("a")), "short");
    EXPECT_TRUE(sync_files(root_).ok());
    for (const Status& status : {write_file(at("a/b"), ""), sync_files(at("a/b")), make_directories(at("a/b"))}) {
        ASSERT_FALSE(status.ok());
        EXPECT_NE(status.error().message.find(at("a/b").substr(0, 10)), std::string::npos) << status.error().message;
    }
}

TEST_F(FileTree, WhatCannotBeWrittenLeavesTheOldFileAndNothingElse) {
    write("a", "old");
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit none{0, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
    const auto status = write_file(at("a"), "new");
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("too large"), std::string::npos) << status.error().message;
    EXPECT_EQ(*read_file(at("a")), "old");
    EXPECT_EQ(entries(), 1);
}

// A file appears under its name with all its text, and no name that others may have made is written through.
TEST_F(FileTree, OnlyAPlainFileIsReplaced) {
    write("mine", "mine");
    fs::create_symlink(at("mine"), at("link"));
    fs::create_symlink(at("nothing"), at("dangling"));
    ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
    for (const std::string& path : {at("link"), at("dangling"), at("fifo"), root_, std::string("/dev/null")}) {
        const auto status = write_file(path, "x");
        ASSERT_FALSE(status.ok()) << path;
        EXPECT_NE(status.error().message.find("not a plain file"), std::string::npos) << status.error().message;
    }
    EXPECT_EQ(*read_file(at("mine")), "mine");
    EXPECT_FALSE(fs::exists(at("nothing")));
    EXPECT_EQ(entries(), 4);
}

TEST_F(FileTree, NobodyElseMayWriteToWhatIsWritten) {
    const mode_t before = umask(0);
    write("secret", "x");
    ASSERT_TRUE(write_file(at("public"), "x", 0644).ok());
    {
        auto file = NewFile::create(at("unfinished"), 0644);
        ASSERT_TRUE(file.ok() && file->append("x").ok());
        for (const auto& path : fs::directory_iterator(root_)) EXPECT_EQ(mode_of(path.path()) & 022, 0) << path;
        EXPECT_FALSE(fs::exists(at("unfinished"))) << "it is published as a whole";
    }
    umask(before);
    EXPECT_EQ(mode_of(at("secret")), 0600);
    EXPECT_EQ(mode_of(at("public")), 0644);
    EXPECT_EQ(entries(), 2) << "what was not published is gone";
}

TEST_F(FileTree, DirectoriesAreForTheOwnerAlone) {
    ASSERT_TRUE(make_directories(at("a/b/c")).ok());
    ASSERT_TRUE(make_directories(at("a/b/c")).ok());
    struct stat info {};
    ASSERT_EQ(stat(at("a/b").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
    EXPECT_FALSE(make_directories("").ok());
}

TEST_F(FileTree, PublishingGivesTheNameToTheFirst) {
    write("one/f", "1");
    write("two/f", "2");
    EXPECT_TRUE(*publish_directory(at("one"), at("target")));
    EXPECT_FALSE(*publish_directory(at("two"), at("target")));
    EXPECT_EQ(*read_file(at("target/f")), "1");
    write("file");
    EXPECT_FALSE(*publish_directory(at("two"), at("file")));
    EXPECT_FALSE(publish_directory(at("two"), at("missing/target")).ok());
}

TEST_F(FileTree, RemovingFollowsNoLinks) {
    write("keep/f");
    write("gone/sub/f");
    fs::create_directory_symlink(at("keep"), at("gone/sub/link"));
    fs::create_directory_symlink(at("keep"), at("top"));
    EXPECT_TRUE(remove_tree(at("gone")).ok());
    EXPECT_TRUE(remove_tree(at("top")).ok());
    EXPECT_TRUE(remove_tree(at("never-there")).ok());
    EXPECT_FALSE(fs::exists(at("gone")));
    EXPECT_FALSE(fs::exists(fs::symlink_status(at("top"))));
    EXPECT_TRUE(fs::exists(at("keep/f")));
}

TEST_F(FileTree, PrivateDirIsPrivateAndGoesAway) {
    std::string path;
    {
        auto dir = PrivateDir::create(root_, "p-");
        ASSERT_TRUE(dir.ok()) << dir.error().message;
        const PrivateDir moved = std::move(*dir);
        path = moved.path();
        EXPECT_TRUE(path.starts_with(at("p-"))) << path;
        struct stat info {};
        ASSERT_EQ(stat(path.c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0700U);
        write("other-thing/f");
        PrivateDir::remove_abandoned(root_, "p-");
        EXPECT_TRUE(fs::exists(path)) << "its owner lives";
        if (fork() == 0) {
            std::destroy_at(&moved);
            _exit(0);
        }
        wait(nullptr);
        EXPECT_TRUE(fs::exists(path)) << "a forked child does not own it";
    }
    EXPECT_FALSE(fs::exists(path));
    EXPECT_TRUE(fs::exists(at("other-thing/f")));
    EXPECT_FALSE(PrivateDir::create(at("missing"), "p-").ok());
}

TEST_F(FileTree, PrivateDirOfAKilledProcessIsRemovedByTheNext) {
    const pid_t child = fork();
    if (child == 0) {
        auto dir = PrivateDir::create(root_, "p-");
        kill(getpid(), SIGKILL);
    }
    waitpid(child, nullptr, 0);
    ASSERT_FALSE(fs::is_empty(root_));
    PrivateDir::remove_abandoned(root_, "p-");
    EXPECT_TRUE(fs::is_empty(root_));
}

// Only a folder with our mark in it goes, or an empty one that its maker had no time to mark.
TEST_F(FileTree, FoldersThatWereNotMadeHereStay) {
    write("p-results/figures", "a user's");
    ASSERT_EQ(mkdir(at("p-empty").c_str(), 0700), 0);
    ASSERT_EQ(mkdir(at("p-killed").c_str(), 01700), 0);
    write("p-marked/.made-by-tilewise", "");
    write("p-marked/work/source.cpp", "x");
    fs::create_directory_symlink(at("p-results"), at("p-link"));
    PrivateDir::remove_abandoned(root_, "p-");
    EXPECT_TRUE(fs::exists(at("p-results/figures")));
    EXPECT_TRUE(fs::exists(at("p-empty")));
    EXPECT_TRUE(fs::exists(at("p-link")));
    EXPECT_EQ(entries(), 3);
}

// Who may rename the folders above cannot lead us elsewhere.
TEST_F(FileTree, InsideAPrivateDirIsInsideItWhateverTakesItsName) {
    ASSERT_TRUE(make_directories(at("parent")).ok());
    {
        auto dir = PrivateDir::create(at("parent"), "p-");
        ASSERT_TRUE(dir.ok()) << dir.error().message;
        const std::string name = fs::path(dir->path()).filename();
        fs::rename(at("parent"), at("moved"));
        write("parent/" + name + "/theirs");
        ASSERT_TRUE(write_file(dir->inside() + "/ours", "x").ok());
        EXPECT_TRUE(fs::exists(at("moved/" + name + "/ours")));
        EXPECT_FALSE(fs::exists(at("parent/" + name + "/ours")));
        EXPECT_EQ(shown(dir->inside() + "/ours"), at("moved/" + name + "/ours"));
        const auto status = write_file(dir->inside() + "/missing/x", "");
        EXPECT_NE(status.error().message.find(at("moved")), std::string::npos) << status.error().message;
    }
    EXPECT_FALSE(fs::exists(at("moved/ours")));
    EXPECT_EQ(std::distance(fs::recursive_directory_iterator(at("parent")), fs::recursive_directory_iterator()), 2)
        << "what took its name is not touched";
}

TEST_F(FileTree, LockKeepsOthersOutUntilItsHolderEnds) {
    auto mine = FileLock::acquire(at("lock"), 0ms);
    ASSERT_TRUE(mine.ok() && mine->has_value());
    auto other = FileLock::acquire(at("lock"), 30ms);
    ASSERT_TRUE(other.ok());
    EXPECT_FALSE(other->has_value());
    mine->reset();
    EXPECT_TRUE(fs::is_empty(root_)) << "no lock files pile up";

    const pid_t child = fork();
    if (child == 0) {
        auto held = FileLock::acquire(at("lock"), 0ms);
        sleep(100);
        _exit(0);
    }
    for (int i = 0; i < 500 && !fs::exists(at("lock")); ++i) std::this_thread::sleep_for(2ms);
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(FileLock::acquire(at("lock"), 10ms)->has_value());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(FileLock::acquire(at("lock"), 10ms)->has_value());
    EXPECT_FALSE(FileLock::acquire(at("missing/lock"), 0ms).ok());
}

TEST_F(FileTree, LockOfManyThreadsIsHeldByOneAtATime) {
    std::atomic<int> inside = 0, total = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < 10; ++n) {
                const auto lock = FileLock::acquire(at("lock"), 20s);
                ASSERT_TRUE(lock.ok() && lock->has_value());
                EXPECT_EQ(++inside, 1);
                ++total;
                --inside;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(total, 80);
}

}  // namespace
}  // namespace tilewise
