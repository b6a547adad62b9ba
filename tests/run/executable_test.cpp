// SPDX-License-Identifier: MIT
// Getting ready while other processes look after the cache.
#include "run/executable.hpp"

#include "device/forwarding_device.hpp"
#include "run/run_testing.hpp"

namespace tilewise {
namespace {

using namespace run_testing;

// Does what another process that prunes may do: the kernel goes after it was built and before it is loaded.
class PruningDevice : public ForwardingDevice {
public:
    PruningDevice(Device& device, std::string cache_dir, int times)
        : ForwardingDevice(device), cache_(std::move(cache_dir)), times_(times) {}

    Result<std::shared_ptr<const Code>> load(const BuiltKernel& kernel) override {
        ++loads;
        if (times_-- > 0) {
            EXPECT_EQ(*cache_.clear(), 1);
        }
        return ForwardingDevice::load(kernel);
    }

    int loads = 0;

private:
    KernelCache cache_;
    int times_;
};

class ExecutableTest : public RunTest {
protected:
    const Problem problem_ = *parse_problem("gemm:m=13,n=21,k=9,dtype=fp32,layout=rcr");
};

TEST_F(ExecutableTest, AKernelThatIsPrunedBeforeItIsLoadedIsBuiltAgain) {
    settings_.compiler = counting_compiler(at("log"));
    Builder builder(settings_);
    PruningDevice device(*device_, settings_.cache_dir, 2);
    auto ready = Executable::prepare(problem_, small_kernel(), device, builder);
    ASSERT_TRUE(ready.ok()) << ready.error().message;
    EXPECT_EQ(device.loads, 3);
    EXPECT_EQ(lines(at("log")), 3);
    const auto report = checked_run(problem_, std::move(*ready));
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->ok) << describe(*report);
}

// Changed since it was built, by a fault or by another process with another compiler: it is never loaded as it is.
TEST_F(ExecutableTest, AKernelWhoseContentsChangeIsBuiltAgain) {
    Builder builder(settings_);
    ASSERT_TRUE(Executable::prepare(problem_, small_kernel(), *device_, builder).ok());
    const auto entries = KernelCache(settings_.cache_dir).ls();
    ASSERT_EQ(entries.size(), 1U);
    std::string contents = *read_file(entries[0].path);
    contents.back() = static_cast<char>(contents.back() ^ 1);
    ASSERT_TRUE(write_file(entries[0].path, contents).ok());
    auto ready = Executable::prepare(problem_, small_kernel(), *device_, builder);
    ASSERT_TRUE(ready.ok()) << ready.error().message;
    EXPECT_TRUE(KernelCache(settings_.cache_dir).verify().empty());
    const auto report = checked_run(problem_, std::move(*ready));
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->ok) << describe(*report);
}

TEST_F(ExecutableTest, AKernelThatIsAlwaysPrunedIsAnErrorThatSaysSo) {
    Builder builder(settings_);
    PruningDevice device(*device_, settings_.cache_dir, 1000);
    const auto ready = Executable::prepare(problem_, small_kernel(), device, builder);
    ASSERT_FALSE(ready.ok());
    EXPECT_EQ(ready.error().code, ErrorCode::toolchain);
    EXPECT_NE(ready.error().message.find("TILEWISE_CACHE_MAX"), std::string::npos) << ready.error().message;
    EXPECT_EQ(device.loads, 3);
}

// A file that is there and does not load is not built over and over.
TEST_F(ExecutableTest, AKernelThatCannotBeLoadedIsAnErrorAtOnce) {
    class Refusing : public ForwardingDevice {
    public:
        using ForwardingDevice::ForwardingDevice;
        Result<std::shared_ptr<const Code>> load(const BuiltKernel&) override {
            ++loads;
            return Error{ErrorCode::device, "no"};
        }
        int loads = 0;
    };
    Builder builder(settings_);
    Refusing device(*device_);
    const auto ready = Executable::prepare(problem_, small_kernel(), device, builder);
    ASSERT_FALSE(ready.ok());
    EXPECT_EQ(ready.error(), (Error{ErrorCode::device, "no"}));
    EXPECT_EQ(device.loads, 1);
}

TEST_F(ExecutableTest, NotesWhatIsNotAsItShouldBe) {
    Builder builder(settings_);
    const auto usual = Executable::prepare(problem_, small_kernel(), *device_, builder);
    ASSERT_TRUE(usual.ok()) << usual.error().message;
    EXPECT_TRUE(usual->notes().empty());

    settings_.cache_dir = "";
    Builder without_cache(settings_);
    const auto ready = Executable::prepare(problem_, small_kernel(), *device_, without_cache);
    ASSERT_TRUE(ready.ok()) << ready.error().message;
    ASSERT_EQ(ready->notes().size(), 1u);
    EXPECT_EQ(ready->notes()[0].kind, "cache");
    EXPECT_EQ(forbid(ready->notes()).error().code, ErrorCode::toolchain);
}

}  // namespace
}  // namespace tilewise
