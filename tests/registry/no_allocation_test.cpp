// SPDX-License-Identifier: MIT
// The hot path allocates nothing: is_valid, first_misfit without numbers, and first_fit. Every allocation of this
// program goes through the counting operators below.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "config/fit.hpp"
#include "config/random_config.hpp"
#include "config/rules.hpp"
#include "problem/random_problem.hpp"
#include "registry/sample_kernels.hpp"

namespace {

std::atomic<std::size_t> allocations = 0;

void* counted_or_null(std::size_t size, std::size_t align) noexcept {
    ++allocations;
    if (size == 0) size = 1;
    return align == 0 ? std::malloc(size) : std::aligned_alloc(align, (size + align - 1) / align * align);
}

void* counted(std::size_t size, std::size_t align) {
    void* memory = counted_or_null(size, align);
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

// The plain, nothrow and aligned forms; the array forms call these. Not inlined: where g++ sees only one of a pair inside
// a caller, it takes free() for a mismatch.
#define NOT_INLINED __attribute__((noinline))
NOT_INLINED void* operator new(std::size_t size) { return counted(size, 0); }
NOT_INLINED void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted_or_null(size, 0); }
NOT_INLINED void* operator new(std::size_t size, std::align_val_t align) {
    return counted(size, static_cast<std::size_t>(align));
}
NOT_INLINED void* operator new(std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
    return counted_or_null(size, static_cast<std::size_t>(align));
}
NOT_INLINED void operator delete(void* memory) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace tilewise {
namespace {

template <class Body>
std::size_t allocations_in(const Body& body) {
    const std::size_t before = allocations;
    body();
    return allocations - before;
}

TEST(NoAllocation, TheCounterCounts) {
    EXPECT_EQ(allocations_in([] {}), 0u);
    EXPECT_GE(allocations_in([] { EXPECT_EQ(std::string(100, 'x').size(), 100u); }), 1u);
    EXPECT_GE(allocations_in([] { delete new int(1); }) + allocations_in([] { std::vector<int>(10); }), 1u);
}

class NoAllocationOn : public EachArch {};

// In a thread of its own, so that what a thread sets up at its first check is as small as can be.
TEST_P(NoAllocationOn, InIsValid) {
    const ArchSpec& spec = arch();
    int valid = 0;
    std::thread([&] {
        Random random(1);
        while (!is_valid(nearly_valid_config(random, spec), spec)) {
        }  // passes every rule once: whatever a thread sets up is set up
        for (int i = 0; i < 2000; ++i) {
            const KernelConfig config = nearly_valid_config(random, spec);
            bool yes = false;
            ASSERT_EQ(allocations_in([&] { yes = is_valid(config, spec); }), 0u) << kernel_name(config);
            valid += yes ? 1 : 0;
        }
    }).join();
    EXPECT_GT(valid, 0);
}

TEST_P(NoAllocationOn, InFirstMisfitAndFirstFit) {
    const ArchSpec& spec = arch();
    Random random(2);
    Registry registry;
    registry.add(sample_kernels(GetParam(), RuleSet::standard));
    const auto kernels = registry.kernels();
    int fits = 0;
    for (int i = 0; i < 50; ++i) {
        const Problem problem = i % 2 == 0 ? friendly_problem(random) : random_problem(random);
        for (std::size_t k = 0; k < kernels->size(); k += 7) {
            const KernelConfig& config = (*kernels)[k]->config;
            ASSERT_EQ(allocations_in([&] { (void)first_misfit(ProblemView(problem), config, spec); }), 0u)
                << print_problem(problem) << "\n"
                << kernel_name(config);
        }
        KernelPtr fit;
        ASSERT_EQ(allocations_in([&] { fit = registry.first_fit(problem, spec); }), 0u) << print_problem(problem);
        fits += fit ? 1 : 0;
    }
    EXPECT_GT(fits, 0);
}

INSTANTIATE_TEST_SUITE_P(Archs, NoAllocationOn, testing::ValuesIn(arch_names()), test_name);

}  // namespace
}  // namespace tilewise
