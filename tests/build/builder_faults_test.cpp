// SPDX-License-Identifier: MIT
// These must not go wrong: many processes at once, kills at any moment, disks that are full or read-only, forks. Each
// ends in a correct kernel or a clear error, never in a hang or a wrong kernel.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <random>

#include "build/build_testing.hpp"

namespace tilewise {
namespace {

using namespace build_testing;

constexpr int kSkip = 77;  // what a child ends with when the machine does not let it try

BuildSettings settings_of_parent() {
    BuildSettings settings = *build_settings();
    settings.compile_limit = 30s;
    return settings;
}

// Run by start_again().
TEST(BuilderChild, DISABLED_Builds) {
    const int answer = std::atoi(std::getenv("TILEWISE_TEST_ANSWER"));
    Builder builder(settings_of_parent());
    const auto kernel = builder.build(answering(answer));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(ask(kernel->path), answer);
}

TEST(BuilderChild, DISABLED_HasAFullDisk) {
    BuildSettings settings = settings_of_parent();
    fs::create_directory(settings.cache_dir);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(kSkip);
    // Room for folders and the source, but not for the kernel; then for nothing; then for a kernel, but no more.
    for (const char* size : {"size=12k", "size=4k,nr_inodes=3", "size=64k"}) {
        if (mount("tilewise-test", settings.cache_dir.c_str(), "tmpfs", 0,
                  (std::string("mode=0700,") + size).c_str()) != 0) {
            _exit(kSkip);
        }
        for (int answer = 1; answer <= 5; ++answer) {
            Builder builder(settings);
            const auto kernel = builder.build(answering(answer));
            ASSERT_TRUE(kernel.ok()) << size << ": " << kernel.error().message;
            EXPECT_EQ(ask(kernel->path), answer);
            if (kernel->origin == KernelOrigin::private_) {
                EXPECT_NE(kernel->note.find("No space left"), std::string::npos) << kernel->note;
            }
            EXPECT_TRUE(answer < 5 || kernel->origin == KernelOrigin::private_) << size;
        }
        EXPECT_TRUE(KernelCache(settings.cache_dir).verify().empty());
        umount2(settings.cache_dir.c_str(), MNT_DETACH);
    }
}

TEST(BuilderChild, DISABLED_HasAReadOnlyDisk) {
    BuildSettings settings = settings_of_parent();
    fs::create_directory(settings.cache_dir);
    const char* folder = settings.cache_dir.c_str();
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tilewise-test", folder, "tmpfs", 0, "mode=0700") != 0) {
        _exit(kSkip);
    }
    ASSERT_TRUE(Builder(settings).build(answering(1)).ok());
    ASSERT_EQ(mount("tilewise-test", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
    Builder builder(settings);
    EXPECT_EQ(builder.build(answering(1))->origin, KernelOrigin::cache);
    const auto kernel = builder.build(answering(2));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->origin, KernelOrigin::private_);
    EXPECT_NE(kernel->note.find("Read-only file system"), std::string::npos) << kernel->note;
    EXPECT_EQ(ask(kernel->path), 2);
}

TEST(BuilderChild, DISABLED_MayWriteNothing) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
    Builder builder(settings_of_parent());
    const auto kernel = builder.build(answering(1));
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, ErrorCode::toolchain);
    EXPECT_NE(kernel.error().message.find("File too large"), std::string::npos) << kernel.error().message;
}

class BuilderFaults : public BuildTest {
protected:
    pid_t start(const std::string& test, int answer = 0, const std::string& compiler = "") const {
        return start_again("BuilderChild.DISABLED_" + test,
                           {"TILEWISE_CACHE_DIR=" + settings_.cache_dir, "TMPDIR=" + settings_.temp_dir,
                            "TILEWISE_CXX=" + compiler, "TILEWISE_TEST_ANSWER=" + std::to_string(answer)});
    }
    bool nothing_left() const {
        Builder builder(settings_);
        BuildRequest any = answering(static_cast<int>(std::random_device()() % 1000000));
        return builder.build(any).ok() && fs::is_empty(settings_.cache_dir + "/tmp");
    }
};

TEST_F(BuilderFaults, SixteenProcessesBuildTheSameKernelOnce) {
    const std::string compiler = counting_compiler(at("log"));
    for (int answer : {16, 17}) {
        std::vector<pid_t> children;
        for (int i = 0; i < 16; ++i) children.push_back(start("Builds", answer, compiler));
        for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0);
    }
    EXPECT_EQ(lines(at("log")), 2);
    EXPECT_EQ(cache().stats().entries, 2);
    EXPECT_TRUE(cache().verify().empty());
    EXPECT_TRUE(fs::is_empty(settings_.cache_dir + "/locks"));
}

// The locks only save work: the cache is right without them.
TEST_F(BuilderFaults, SixteenProcessesWithoutLocks) {
    ASSERT_TRUE(make_directories(settings_.cache_dir).ok());
    ASSERT_TRUE(write_file(settings_.cache_dir + "/locks", "not a folder").ok());
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i) children.push_back(start("Builds", 18));
    for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0);
    EXPECT_EQ(cache().stats().entries, 1);
    EXPECT_TRUE(cache().verify().empty());
}

TEST_F(BuilderFaults, KilledWhileCompiling) {
    const std::string slow =
        fake_compiler("echo $$ > " + at("pid") + ".new; mv " + at("pid") + ".new " + at("pid") + "; exec sleep 1000");
    const pid_t child = start("Builds", 30, slow);
    ASSERT_TRUE(soon([&] { return fs::exists(at("pid")); }));
    kill(child, SIGKILL);
    EXPECT_EQ(exit_code(child), -SIGKILL);
    pid_t compiler = 0;
    ASSERT_TRUE(std::ifstream(at("pid")) >> compiler);
    kill(compiler, SIGKILL);  // nobody else will: its parent is gone
    EXPECT_FALSE(fs::is_empty(settings_.cache_dir + "/tmp"));
    Builder builder(settings_);
    const auto kernel = builder.build(answering(30));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(ask(kernel->path), 30);
    EXPECT_TRUE(soon([&] { return nothing_left(); })) << "the next build cleans up";
}

TEST_F(BuilderFaults, KilledAtAnyMoment) {
    const auto real = find_host_compiler("");
    ASSERT_TRUE(real.ok());
    std::mt19937 random(7);
    int finished = 0;
    for (int i = 0; i < 40; ++i) {
        // A shared answer now and then: what a killed process left must not disturb one that builds the same.
        const pid_t child = start("Builds", 100 + i / 4, real->path);
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 90));
        kill(child, SIGKILL);
        finished += exit_code(child) == 0 ? 1 : 0;
        EXPECT_TRUE(cache().verify().empty());
    }
    for (int answer = 100; answer < 110; ++answer) {
        Builder builder(settings_);
        const auto kernel = builder.build(answering(answer));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_EQ(ask(kernel->path), answer);
    }
    EXPECT_TRUE(soon([&] { return nothing_left(); }));
    RecordProperty("finished_before_the_kill", finished);
}

TEST_F(BuilderFaults, AStoppedProcessIsNotWaitedForForEver) {
    const std::string digest = *digest_of(answering(31));
    auto locked = cache().lock(digest, 0ms);  // by someone who never goes on
    ASSERT_TRUE(locked.ok() && locked->has_value());
    settings_.compile_limit = 1s;  // the lock is waited for a little longer than a compiler may take
    Builder builder(settings_);
    const auto kernel = builder.build(answering(31));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->origin, KernelOrigin::built);
    EXPECT_EQ(ask(kernel->path), 31);
}

TEST_F(BuilderFaults, AFileInPlaceOfTheCacheOrItsFolders) {
    for (const char* path : {"", "/tmp", "/v1"}) {
        settings_.cache_dir = at(std::string("cache") + std::to_string(std::string(path).size()));
        if (*path != '\0') fs::create_directory(settings_.cache_dir);
        ASSERT_TRUE(write_file(settings_.cache_dir + path, "").ok());
        Builder builder(settings_);
        const auto kernel = builder.build(answering(40));
        ASSERT_TRUE(kernel.ok()) << path << ": " << kernel.error().message;
        EXPECT_EQ(kernel->origin, KernelOrigin::private_);
        EXPECT_NE(kernel->note.find(settings_.cache_dir), std::string::npos) << kernel->note;
        EXPECT_EQ(ask(kernel->path), 40);
        EXPECT_EQ(builder.build(answering(40))->path, kernel->path) << "built once";
        BuildRequest wrong = answering(41);
        wrong.source += "error;";
        EXPECT_EQ(builder.build(wrong).error().code, ErrorCode::toolchain);
    }
}

TEST_F(BuilderFaults, AReadOnlyCache) {
    if (geteuid() == 0) {  // who may write everywhere but on a read-only disk
        const int code = exit_code(start("HasAReadOnlyDisk"));
        if (code == kSkip) GTEST_SKIP() << "root may write everywhere, and no file system can be mounted here";
        EXPECT_EQ(code, 0);
        return;
    }
    ASSERT_TRUE(Builder(settings_).build(answering(42)).ok());
    for (const char* folder : {"/v1", "/tmp", "/locks", ""}) chmod((settings_.cache_dir + folder).c_str(), 0500);
    Builder builder(settings_);
    EXPECT_EQ(builder.build(answering(42))->origin, KernelOrigin::cache);
    EXPECT_EQ(builder.build(answering(43))->origin, KernelOrigin::private_);
    for (const char* folder : {"", "/v1", "/tmp", "/locks"}) chmod((settings_.cache_dir + folder).c_str(), 0700);
}

TEST_F(BuilderFaults, NoPlaceAtAll) {
    settings_.cache_dir = "";
    Builder here(settings_);
    const auto kernel = here.build(answering(44));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_NE(kernel->note.find("TILEWISE_CACHE_DIR"), std::string::npos) << kernel->note;
    BuildSettings nowhere = settings_;
    nowhere.temp_dir = "/nonexistent";
    Builder builder(nowhere);
    const auto refused = builder.build(answering(44));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("/nonexistent"), std::string::npos) << refused.error().message;
}

TEST_F(BuilderFaults, APrivateBuildRemovesOnlyFoldersThatTilewiseMade) {
    const std::string prefix = settings_.temp_dir + "/tilewise-" + std::to_string(geteuid()) + "-";
    ASSERT_TRUE(make_directories(prefix + "results").ok());
    ASSERT_TRUE(write_file(prefix + "results/figures", "a user's").ok());
    ASSERT_TRUE(make_directories(prefix + "empty").ok());
    settings_.cache_dir = "";
    const pid_t child = fork();  // leaves its folder behind
    if (child == 0) {
        Builder builder(settings_);
        if (!builder.build(answering(45)).ok()) _exit(1);
        kill(getpid(), SIGKILL);
    }
    EXPECT_EQ(exit_code(child), -SIGKILL);
    EXPECT_EQ(std::distance(fs::directory_iterator(settings_.temp_dir), fs::directory_iterator()), 3);
    ASSERT_TRUE(Builder(settings_).build(answering(45)).ok());
    EXPECT_EQ(std::distance(fs::directory_iterator(settings_.temp_dir), fs::directory_iterator()), 2);
    EXPECT_EQ(*read_file(prefix + "results/figures"), "a user's");
    for (const char* name : {"results", "empty"}) fs::remove_all(prefix + name);
}

TEST_F(BuilderFaults, AFullDisk) {
    const int code = exit_code(start("HasAFullDisk"));
    if (code == kSkip) GTEST_SKIP() << "no small file system can be mounted here";
    EXPECT_EQ(code, 0);
}

TEST_F(BuilderFaults, AProcessThatMayWriteNothing) { EXPECT_EQ(exit_code(start("MayWriteNothing")), 0); }

// A child of a fork has none of the threads that were building, and must not wait for them.
TEST_F(BuilderFaults, AForkWhileBuilding) {
    const std::string gate = at("gate");
    const auto real = find_host_compiler("");
    ASSERT_TRUE(real.ok());
    settings_.compiler = fake_compiler("touch " + at("compiling") + "\nwhile [ ! -e " + gate +
                                       " ]; do sleep 0.01; done\nexec " + real->path + " \"$@\"");
    Builder builder(settings_);
    std::thread thread([&] { EXPECT_EQ(ask(builder.build(answering(50))->path), 50); });
    ASSERT_TRUE(soon([&] { return fs::exists(at("compiling")); }));
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        std::ofstream(gate) << "open";
        const auto kernel = builder.build(answering(50));
        _exit(kernel.ok() && ask(kernel->path) == 50 ? 0 : 1);
    }
    EXPECT_EQ(exit_code(child), 0);
    thread.join();
    EXPECT_EQ(cache().stats().entries, 1);
}

}  // namespace
}  // namespace tilewise
