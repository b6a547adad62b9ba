// SPDX-License-Identifier: MIT
// Several threads at once; meant for the thread sanitizer, but the outcome is checked as well.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "problem/problem_text.hpp"
#include "registry/sample_kernels.hpp"

namespace tilewise {
namespace {

TEST(RegistryThreads, AddingAtOnceLosesNothing) {
    const auto kernels = sample_kernels();
    Registry registry, expected;
    expected.add(kernels);
    std::atomic<std::size_t> taken = 0;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            // Each thread adds all kernels, from another place on, so that every one is raced for.
            for (std::size_t i = 0; i < kernels.size(); ++i) {
                taken += registry.add(kernels[(i + t * kernels.size() / 4) % kernels.size()]);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(taken, kernels.size()) << "each is taken once";
    EXPECT_EQ(names_in(registry), names_in(expected));
}

TEST(RegistryThreads, ReadersSeeAllOfAListOrNone) {
    const auto kernels = sample_kernels();
    const ArchSpec& arch = arch_named("gfx942");
    const auto problem = parse_problem("gemm:m=256,n=256,k=256,dtype=bf16");
    Registry registry;
    std::atomic<bool> done = false;
    std::atomic<int> torn = 0, reads = 0;
    std::vector<std::thread> readers;
    for (int t = 0; t < 3; ++t) {
        readers.emplace_back([&] {
            do {
                const auto snapshot = registry.kernels();
                if (!snapshot->empty() && snapshot->size() != kernels.size()) ++torn;
                const Candidates candidates = registry.candidates(*problem, arch);
                const std::size_t seen = candidates.accepted.size() + candidates.rejected.size();
                if (seen != 0 && seen != kernels.size()) ++torn;
                const KernelPtr fit = registry.first_fit(*problem, arch);
                const KernelPtr found = registry.find(kernels.front().name);
                if ((fit && fit->config.op != Op::gemm) || (found && found->name != kernels.front().name)) ++torn;
                ++reads;
            } while (!done);
        });
    }
    for (int i = 0; i < 30; ++i) {
        registry.add(kernels);
        registry.clear();
    }
    done = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(torn, 0);
    EXPECT_GE(reads, 3);
}

TEST(RegistryThreads, MergingBothWaysDoesNotDeadlock) {
    Registry a("a"), b("b");
    a.add(sample_kernels("gfx942"));
    b.add(sample_kernels("gfx90a"));
    const std::size_t all = a.size() + b.size();
    std::thread one([&] {
        for (int i = 0; i < 20; ++i) a.merge(b);
    });
    std::thread other([&] {
        for (int i = 0; i < 20; ++i) b.merge(a);
    });
    one.join();
    other.join();
    EXPECT_EQ(a.size(), all);
    EXPECT_EQ(names_in(a), names_in(b));
}

}  // namespace
}  // namespace tilewise
