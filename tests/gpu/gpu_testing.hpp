// SPDX-License-Identifier: MIT
// The tests on a real GPU share these: the device, a builder for it, the kernels of a rule set, and the check of each on random
// problems against the reference, with guards around every buffer. Skips, saying so, where there is no GPU.
//   TILEWISE_TEST_DEVICE   cuda:0, hip:0, or emulated:sm_90a on a machine without a GPU (a few kernels: it is slow)
//   TILEWISE_TEST_RULE_SET default     TILEWISE_TEST_DTYPES bf16,fp16,fp32,fp8,bf8,fp8_bf8,bf8_fp8,int8
//   TILEWISE_TEST_PROBLEMS 6 for each kernel     TILEWISE_TEST_SHARD 0/1: every n-th kernel, for several processes at once
//   TILEWISE_TEST_ONLY     a part of the kernels' names     TILEWISE_TEST_COVERED  a file that gets the names of those found right
//   TILEWISE_TEST_DONE     a file with names of kernels to leave out
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/random.hpp"
#include "base/text.hpp"
#include "config/archs.hpp"
#include "device/make_device.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "measure/bound_run.hpp"
#include "measure/device_tensors.hpp"
#include "measure/verify.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"
#include "run/executable.hpp"
#include "run/in_place.hpp"

namespace tilewise {

inline std::string variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value ? value : otherwise;
}

class GpuTest : public testing::Test {
protected:
    void SetUp() override { open(embedded_archs()); }

    void open(const ArchCatalog& archs) {
        auto opened = make_device(variable("TILEWISE_TEST_DEVICE", "cuda:0"), archs);
        if (!opened) GTEST_SKIP() << opened.error().message;
        device = std::move(*opened);
        BuildSettings settings = build_settings().value();
        settings.driver_version = device->driver_version();
        exact_builder = std::make_unique<Builder>(settings);
        settings.exact_epilogues = false;
        builder = std::make_unique<Builder>(std::move(settings));
    }

    // With the usual output of each type unless another is given.
    KernelList kernels(Op op, const std::string& rule_set, std::optional<DType> out = std::nullopt) const;

    // A problem for the kernel; one that it may not run is drawn again.
    using Draw = std::function<std::optional<Problem>(Random&, const KernelConfig&)>;
    void check(const KernelList& list, const Draw& draw) const;

    std::unique_ptr<Device> device;
    std::unique_ptr<Builder> builder;        // of kernels for every epilogue: random problems have as many as there are
    std::unique_ptr<Builder> exact_builder;  // of kernels for one

private:
    bool run(Random& random, const Kernel& kernel, const Problem& problem, Builder& with) const;
};

inline KernelList GpuTest::kernels(Op op, const std::string& rule_set, std::optional<DType> out) const {
    KernelList mine;
    const std::string only = variable("TILEWISE_TEST_ONLY", "");
    const std::string shard = variable("TILEWISE_TEST_SHARD", "0/1");
    const auto at = *parse_integer(shard.substr(0, shard.find('/')));
    const auto of = *parse_integer(shard.substr(shard.find('/') + 1));
    std::int64_t index = 0;
    std::set<std::string> done;
    std::ifstream names(variable("TILEWISE_TEST_DONE", "/dev/null"));
    for (std::string name; std::getline(names, name);) done.insert(name);
    const std::string dtypes = variable("TILEWISE_TEST_DTYPES", "bf16,fp16,fp32,fp8,bf8,fp8_bf8,bf8_fp8,int8");
    for (const std::string_view dtype : split(dtypes, ',')) {
        KernelQuery query;
        query.arch = &device->arch();
        query.set = parse_enum<RuleSet>(rule_set).value();
        query.op = op;
        query.dtypes = parse_pair(dtype).value();
        if (!device->arch().find_warp_tiles(*query.dtypes) || (out && !is_output_of(query.dtypes->a, *out))) continue;
        if (query.dtypes->a == DType::int8 && (op == Op::conv_bwd_data || op == Op::conv_bwd_weight)) continue;
        query.out = out;
        const auto listed = list_kernels(query);
        EXPECT_TRUE(listed.ok()) << listed.error().message;
        for (const Kernel& kernel : *listed) {
            if (!kernel.available || kernel.name.find(only) == std::string::npos) continue;
            const bool is_mine = index++ % of == at;  // also of those that are done, so that parts stay what they are
            if (is_mine && !done.contains(kernel.name)) mine.push_back(std::make_shared<const Kernel>(kernel));
        }
    }
    return mine;
}

inline bool GpuTest::run(Random& random, const Kernel& kernel, const Problem& problem, Builder& with) const {
    SCOPED_TRACE(kernel.name + "\n" + print_problem(problem));
    const auto failed = [](const auto& result) {
        if (result.ok()) return false;
        ADD_FAILURE() << result.error().message;
        return true;
    };
    auto ready = Executable::prepare(problem, kernel, *device, with);
    if (failed(ready)) return false;
    auto tensors = Tensors::make(problem, random.bits());
    if (failed(tensors)) return false;
    const float alpha = random.chance(30) ? 0.75f : 1.0f, beta = problem.beta ? 0.5f : 0.0f;
    auto on_device = DeviceTensors::make(*device, *tensors);
    if (failed(on_device)) return false;
    Operands operands = on_device->operands();
    const bool d_is_c = can_be_in_place(problem) && random.chance(50);
    if (d_is_c) operands = in_place(*device, *tensors, operands).value();
    auto bound =
        BoundRun::make(std::make_shared<const Executable>(std::move(*ready)), *device, {&operands, 1}, alpha, beta);
    if (failed(bound)) return false;
    // Again with the same workspace: what blocks tell each other there must not be left over.
    const int times = kernel.config.stream_k != StreamK::off && beta == 0.0f && !d_is_c ? 3 : 1;
    for (int i = 0; i < times; ++i) {
        if (failed(bound->run())) return false;
    }
    if (failed(on_device->fetch())) return false;
    VerifyOptions options;
    options.summation = summation_of(kernel.config, device->arch());
    const VerifyReport report = verify_result(*tensors, alpha, beta, options);
    EXPECT_TRUE(report.ok) << (d_is_c ? "d0 is c; " : "") << describe(report);
    return report.ok;
}

inline void GpuTest::check(const KernelList& list, const Draw& draw) const {
    const auto problems = *parse_integer(variable("TILEWISE_TEST_PROBLEMS", "6"));
    constexpr int kTries = 200;  // for each problem
    Random random(2026);
    int runs = 0, without = 0;
    std::ofstream covered(variable("TILEWISE_TEST_COVERED", "/dev/null"), std::ios::app);
    for (const KernelPtr& kernel : list) {
        int mine = 0;
        bool right = true;
        for (std::int64_t tries = 0; mine < problems && tries < kTries * problems; ++tries) {
            const std::optional<Problem> problem = draw(random, kernel->config);
            if (!problem || check_problem(*problem) ||
                !may_run(ProblemView(*problem), kernel->config, device->arch())) {
                continue;
            }
            // The first problem of every other kernel has code of its own.
            const bool is_exact = mine == 0 && (&kernel - list.data()) % 2 == 0;
            ++mine, ++runs;
            right = run(random, *kernel, *problem, is_exact ? *exact_builder : *builder);
            if (!right) break;
        }
        if (mine > 0 && right) covered << kernel->name << std::endl;  // each by itself: a later one may end the process
        if (mine > 0) continue;
        ++without;
        ADD_FAILURE() << "no problem found that " << kernel->name << " may run";
    }
    std::printf("%zu kernels, %d runs, %d without a problem\n", list.size(), runs, without);
}

}  // namespace tilewise
