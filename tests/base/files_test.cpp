// SPDX-License-Identifier: MIT
#include "base/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
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

TEST_F(FileTree, AFullDiskIsAnError) {
    const auto status = write_file("/dev/full", "x");
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("No space"), std::string::npos) << status.error().message;
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

TEST_F(FileTree, OwnerCheck) {
    EXPECT_TRUE(check_owner(at("missing"), false).ok());
    EXPECT_TRUE(check_owner(root_, false).ok());
    ASSERT_EQ(chmod(root_.c_str(), 0770), 0);
    const auto shared = check_owner(root_, true);
    ASSERT_FALSE(shared.ok());
    EXPECT_NE(shared.error().message.find("chmod go-w"), std::string::npos) << shared.error().message;
    ASSERT_EQ(chmod(root_.c_str(), 01777), 0);
    EXPECT_TRUE(check_owner(root_, true).ok());
    EXPECT_FALSE(check_owner(root_, false).ok());
}

TEST_F(FileTree, OwnerCheckRefusesAnotherUsersFolder) {
    if (geteuid() != 0) {
        EXPECT_FALSE(check_owner("/", true).ok());
        return;
    }
    ASSERT_EQ(chown(root_.c_str(), 12345, 12345), 0);
    const auto status = check_owner(root_, true);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("belongs to user 12345"), std::string::npos) << status.error().message;
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
