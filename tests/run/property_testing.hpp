// SPDX-License-Identifier: MIT
// The tests that try random problems on many kernels of the host's arch share these: settings of the environment, building
// ahead, and one run judged by the reference.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "build/kept_cache.hpp"
#include "config/archs.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/cpu/thread_pool.hpp"
#include "device/forwarding_device.hpp"
#include "measure/bound_run.hpp"
#include "measure/device_tensors.hpp"
#include "measure/verify.hpp"
#include "problem/problem_text.hpp"
#include "registry/registry.hpp"
#include "run/executable.hpp"
#include "run/in_place.hpp"

namespace tilewise::property_testing {

inline int number(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text ? std::atoi(text) : otherwise;
}

// The device with work cut for any number of threads, whatever the host has.
class ThreadsDevice final : public ForwardingDevice {
public:
    ThreadsDevice(Device& device, int threads) : ForwardingDevice(device), threads_(threads) {}
    int max_threads() const override { return threads_; }

private:
    int threads_;
};

// The host's arch, or the one that TILEWISE_TEST_ARCH names; without a kept cache, one of its own that is gone in the end.
class PropertyTest : public testing::Test {
protected:
    void SetUp() override {
        const char* wanted = std::getenv("TILEWISE_TEST_ARCH");
        const auto arch = wanted ? embedded_archs().find(wanted) : host_cpu_arch(embedded_archs());
        ASSERT_TRUE(arch.ok());
        arch_ = *arch;
        auto device = make_cpu_device(*arch_);
        ASSERT_TRUE(device.ok()) << device.error().message;
        device_ = std::move(*device);
        folder_ = std::filesystem::temp_directory_path() / ("tilewise-property-" + std::to_string(getpid()));
        auto settings = build_settings();
        BuildSettings mine = settings ? *settings : BuildSettings{};
        mine.cache_dir = build_testing::kept_cache(folder_);
        builder_ = std::make_unique<Builder>(mine);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    void build_ahead(const std::vector<Kernel>& kernels) {
        std::vector<BuildRequest> requests;
        for (const Kernel& kernel : kernels) requests.push_back(*build_request(kernel.config, *device_));
        for (const auto& built : builder_->build_all(requests, usable_cpus())) {
            EXPECT_TRUE(built.ok()) << built.error().message;
        }
    }

    // Whether the result was right; what was wrong is reported.
    bool run_and_check(Random& random, const Problem& problem, const Kernel& kernel) {
        const int before = failures();
        check_run(random, problem, kernel);
        return failures() == before;
    }

    const ArchSpec* arch_ = nullptr;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Builder> builder_;
    std::string folder_;

private:
    static int failures() {
        const testing::TestResult& result = *testing::UnitTest::GetInstance()->current_test_info()->result();
        int failed = 0;
        for (int i = 0; i < result.total_part_count(); ++i) failed += result.GetTestPartResult(i).failed() ? 1 : 0;
        return failed;
    }

    void check_run(Random& random, const Problem& problem, const Kernel& kernel) {
        constexpr int kMostThreads = 9;
        const auto threads = static_cast<int>(random.between(1, kMostThreads));
        ThreadsDevice device(*device_, threads);
        auto ready = Executable::prepare(problem, kernel, device, *builder_);
        ASSERT_TRUE(ready.ok()) << ready.error().message;
        const std::uint64_t seed = random.bits();
        auto tensors = Tensors::make(problem, seed);
        ASSERT_TRUE(tensors.ok()) << tensors.error().message;
        // With an alpha of 1 kernels take a short way.
        const float alpha = suggested_alpha(problem) * (random.chance(50) ? 1.0f : 0.75f);
        const float beta = problem.beta ? 0.5f : 0.0f;
        auto on_device = DeviceTensors::make(*device_, *tensors);
        ASSERT_TRUE(on_device.ok()) << on_device.error().message;
        Operands operands = on_device->operands();
        const bool d_is_c = can_be_in_place(problem) && seed % 2 == 0;
        if (d_is_c) operands = in_place(*device_, *tensors, operands).value();
        auto run = BoundRun::make(std::make_shared<const Executable>(std::move(*ready)), *device_, {&operands, 1},
                                  alpha, beta);
        ASSERT_TRUE(run.ok()) << run.error().message;
        const Status launched = run->run();
        ASSERT_TRUE(launched.ok()) << launched.error().message;
        ASSERT_TRUE(on_device->fetch().ok());
        VerifyOptions options;
        options.summation = summation_of(kernel.config, device.arch());
        const VerifyReport report = verify_result(*tensors, alpha, beta, options);
        ASSERT_TRUE(report.ok) << kernel.name << "\n"
                               << print_problem(problem) << "\nseed " << seed << ", alpha " << alpha << ", " << threads
                               << " threads" << (d_is_c ? ", d0 is c" : "") << "\n"
                               << describe(report);
    }
};

}  // namespace tilewise::property_testing
