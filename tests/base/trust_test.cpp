// SPDX-License-Identifier: MIT
#include "base/trust.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kStranger = 12345;

class Trust : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_NE(mkdtemp(root_.data()), nullptr);
        ASSERT_TRUE(write_file(at("file"), "text").ok());
        ASSERT_TRUE(make_directories(at("folder")).ok());
    }
    void TearDown() override { fs::remove_all(root_); }
    std::string at(const std::string& name) const { return root_ + "/" + name; }
    static void expect(const std::string& message, const std::string& word) {
        EXPECT_NE(message.find(word), std::string::npos) << message;
    }

    std::string root_ = "/tmp/tilewise-trust-test-XXXXXX";
};

TEST_F(Trust, OfOwners) {
    EXPECT_FALSE(has_raised_rights());
    EXPECT_TRUE(trusts_owner(geteuid()));
    EXPECT_TRUE(trusts_owner(0));
    EXPECT_FALSE(trusts_owner(kStranger));
}

TEST_F(Trust, OfFolders) {
    EXPECT_TRUE(check_owner(at("missing"), false).ok());
    EXPECT_TRUE(check_owner(root_, false).ok());
    ASSERT_EQ(chmod(root_.c_str(), 0770), 0);
    const auto shared = check_owner(root_, true);
    ASSERT_FALSE(shared.ok());
    expect(shared.error().message, "chmod go-w");
    ASSERT_EQ(chmod(root_.c_str(), 01777), 0);
    EXPECT_TRUE(check_owner(root_, true).ok());
    EXPECT_FALSE(check_owner(root_, false).ok());
}

TEST_F(Trust, OfLinksToFolders) {
    fs::create_directory_symlink(at("folder"), at("link"));
    EXPECT_TRUE(check_owner(at("link"), true).ok()) << "our own";
    const auto inside = check_owner(at("link"), false);
    ASSERT_FALSE(inside.ok());
    expect(inside.error().message, "is a link");
    if (geteuid() != 0) return;
    ASSERT_EQ(lchown(at("link").c_str(), kStranger, kStranger), 0);
    const auto planted = check_owner(at("link"), true);
    ASSERT_FALSE(planted.ok());
    expect(planted.error().message, "link of user 12345");
}

TEST_F(Trust, NotOfAnotherUsersFolder) {
    if (geteuid() != 0) {
        EXPECT_FALSE(check_owner("/", true).ok());
        return;
    }
    ASSERT_EQ(chown(root_.c_str(), kStranger, kStranger), 0);
    const auto status = check_owner(root_, true);
    ASSERT_FALSE(status.ok());
    expect(status.error().message, "belongs to user 12345");
}

TEST_F(Trust, OfFilesThatOnlyTheirOwnerMayWrite) {
    EXPECT_EQ(*read_trusted_file(at("file")), "text");
    for (const mode_t mode : {0644U, 0444U}) {
        ASSERT_EQ(chmod(at("file").c_str(), mode), 0);
        EXPECT_TRUE(read_trusted_file(at("file")).ok());
    }
    for (const mode_t mode : {0620U, 0602U, 0666U}) {
        ASSERT_EQ(chmod(at("file").c_str(), mode), 0);
        const auto text = read_trusted_file(at("file"));
        ASSERT_FALSE(text.ok());
        expect(text.error().message, "chmod go-w '" + at("file") + "'");
    }
}

TEST_F(Trust, NotOfAnotherUsersFile) {
    if (geteuid() != 0) {
        EXPECT_TRUE(TrustedFile::open("/etc/passwd", O_RDONLY).ok()) << "root's";
        return;
    }
    ASSERT_EQ(chown(at("file").c_str(), kStranger, kStranger), 0);
    const auto text = read_trusted_file(at("file"));
    ASSERT_FALSE(text.ok());
    expect(text.error().message, "belongs to user 12345");
    expect(text.error().message, "chown 0 '" + at("file") + "'");
}

// None of these is waited for, read or written.
TEST_F(Trust, NotOfLinksFifosFoldersAndDevices) {
    fs::create_symlink(at("file"), at("link"));
    ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
    for (const std::string& path : {at("link"), at("fifo"), root_, std::string("/dev/zero"), at("missing")}) {
        const auto text = read_trusted_file(path);
        ASSERT_FALSE(text.ok()) << path;
        expect(text.error().message, path);
    }
    for (const std::string& path : {at("link"), at("fifo")}) {
        EXPECT_FALSE(TrustedFile::open(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600).ok()) << path;
    }
    EXPECT_TRUE(TrustedFile::open(at("link"), O_RDONLY).ok()) << "it leads to a trusted file";
}

}  // namespace
}  // namespace tilewise
