// SPDX-License-Identifier: MIT
// Handles that were destroyed, never were any, or are of another kind: a status and a message, never a crash; and handles
// that many threads use, make and destroy at once.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "capi/last_error.hpp"
#include "tilewise/tilewise.h"

namespace {

constexpr const char* kSmallProblem = "gemm:m=4,n=4,k=4,dtype=fp32,layout=rcr";

template <class T>
T* bits(std::uintptr_t value) {
    return reinterpret_cast<T*>(value);
}

struct Handles {
    Handles() {
        EXPECT_EQ(tilewise_context_create("cpu", nullptr, &context), TILEWISE_OK) << last_error();
        EXPECT_EQ(tilewise_registry_create(nullptr, &registry), TILEWISE_OK) << last_error();
        EXPECT_EQ(tilewise_plan_create(context, kSmallProblem, nullptr, &plan), TILEWISE_OK) << last_error();
        EXPECT_EQ(tilewise_plan_prepare(plan, &executable), TILEWISE_OK) << last_error();
    }
    void destroy() const {
        tilewise_context_destroy(context);
        tilewise_registry_destroy(registry);
        tilewise_plan_destroy(plan);
        tilewise_executable_destroy(executable);
    }
    tilewise_context* context = nullptr;
    tilewise_registry* registry = nullptr;
    tilewise_plan* plan = nullptr;
    tilewise_executable* executable = nullptr;
};

// Every function that takes a handle, with handles that are not open.
void expect_refused(tilewise_context* c, tilewise_registry* r, tilewise_plan* p, tilewise_executable* e) {
    char* text = nullptr;
    const tilewise_operands operands = TILEWISE_OPERANDS_INIT;
    void* memory = nullptr;
    tilewise_executable* made = nullptr;
    tilewise_plan* made_plan = nullptr;
    tilewise_select_options options = {};
    options.size = sizeof(options);
    const auto refused = [](tilewise_status status) { return status == TILEWISE_USAGE && !last_error().empty(); };
    EXPECT_TRUE(refused(tilewise_context_describe(c, &text)));
    EXPECT_TRUE(refused(tilewise_load_pack(c, "x")) && refused(tilewise_load_tuning(c, "x", nullptr)));
    EXPECT_TRUE(refused(tilewise_load_models(c, "x")));
    EXPECT_TRUE(refused(tilewise_allocate(c, 8, &memory)) && refused(tilewise_release(c, nullptr)));
    EXPECT_TRUE(refused(tilewise_copy(c, &memory, &memory, 1, nullptr)) && refused(tilewise_synchronize(c, nullptr)));
    EXPECT_TRUE(refused(tilewise_prepare(c, kSmallProblem, nullptr, &made)) && !made);
    EXPECT_TRUE(refused(tilewise_bench(c, kSmallProblem, nullptr, 0, &text)));
    EXPECT_TRUE(refused(tilewise_validate(c, kSmallProblem, nullptr, &text)));
    EXPECT_STREQ(tilewise_context_arch(c), "");
    EXPECT_TRUE(refused(tilewise_registry_add_rule_set(r, "{}", nullptr)));
    EXPECT_TRUE(refused(tilewise_registry_add(r, "x", nullptr, nullptr)));
    EXPECT_TRUE(refused(tilewise_registry_merge(r, r, nullptr)));
    EXPECT_TRUE(refused(tilewise_registry_import(r, "{}", nullptr)));
    EXPECT_TRUE(refused(tilewise_registry_export(r, 1, &text)) && refused(tilewise_registry_clear(r)));
    EXPECT_TRUE(refused(tilewise_registry_name_at(r, 0, &text)) && refused(tilewise_registry_find(r, "x", &text)));
    EXPECT_EQ(tilewise_registry_size(r), 0);
    EXPECT_TRUE(refused(tilewise_plan_describe(p, &text)) && refused(tilewise_plan_prepare(p, &made)));
    EXPECT_TRUE(refused(tilewise_plan_candidate(p, 0, nullptr, nullptr)));
    EXPECT_TRUE(refused(tilewise_plan_rejection(p, 0, nullptr, nullptr, nullptr, nullptr)));
    EXPECT_STREQ(tilewise_plan_kernel(p), "");
    EXPECT_STREQ(tilewise_plan_source(p), "");
    EXPECT_STREQ(tilewise_plan_why(p), "");
    EXPECT_EQ(tilewise_plan_candidate_count(p) + tilewise_plan_rejection_count(p), 0);
    EXPECT_TRUE(refused(tilewise_run(e, &operands, nullptr)));
    EXPECT_TRUE(refused(tilewise_pack_b(e, &memory, &memory, nullptr)));
    EXPECT_TRUE(refused(tilewise_executable_describe(e, &text)));
    EXPECT_STREQ(tilewise_executable_kernel(e), "");
    EXPECT_STREQ(tilewise_executable_source(e), "");
    EXPECT_STREQ(tilewise_executable_why(e), "");
    EXPECT_EQ(tilewise_executable_workspace_bytes(e) + tilewise_executable_packed_b_bytes(e), 0);
    if (c) {
        EXPECT_TRUE(refused(tilewise_plan_create(c, kSmallProblem, nullptr, &made_plan)) && !made_plan);
    }
    if (r) {
        options.registry = r;
        EXPECT_TRUE(refused(tilewise_plan_create(nullptr, kSmallProblem, &options, &made_plan)));
    }
    EXPECT_EQ(text, nullptr);
    tilewise_context_destroy(c);
    tilewise_registry_destroy(r);
    tilewise_plan_destroy(p);
    tilewise_executable_destroy(e);
}

TEST(CapiHandles, Null) { expect_refused(nullptr, nullptr, nullptr, nullptr); }

TEST(CapiHandles, Destroyed) {
    const Handles handles;
    handles.destroy();
    expect_refused(handles.context, handles.registry, handles.plan, handles.executable);
    EXPECT_NE(last_error().find("executable"), std::string::npos) << last_error();
}

// A place that is given out again does not bring the old handle back to life.
TEST(CapiHandles, DestroyedAndThePlaceInUseAgain) {
    const Handles old;
    old.destroy();
    const Handles fresh;
    expect_refused(old.context, old.registry, old.plan, old.executable);
    EXPECT_STRNE(tilewise_executable_kernel(fresh.executable), "");
    fresh.destroy();
}

TEST(CapiHandles, OfAnotherKind) {
    const Handles h;
    const auto value = [](const void* handle) { return reinterpret_cast<std::uintptr_t>(handle); };
    expect_refused(bits<tilewise_context>(value(h.executable)), bits<tilewise_registry>(value(h.context)),
                   bits<tilewise_plan>(value(h.registry)), bits<tilewise_executable>(value(h.plan)));
    EXPECT_EQ(tilewise_registry_size(h.registry), 0);
    EXPECT_STRNE(tilewise_plan_kernel(h.plan), "") << "nothing was destroyed";
    h.destroy();
}

TEST(CapiHandles, AddressesAndOtherNumbers) {
    int here = 0;
    for (const std::uintptr_t number : {~std::uintptr_t{0}, ~std::uintptr_t{0} - 12, std::uintptr_t{0x00fffff1},
                                        reinterpret_cast<std::uintptr_t>(&here)}) {
        expect_refused(bits<tilewise_context>(number), bits<tilewise_registry>(number), bits<tilewise_plan>(number),
                       bits<tilewise_executable>(number));
    }
}

TEST(CapiHandlesThreads, ManyThreadsOnOneContext) {
    tilewise_context* context = nullptr;
    ASSERT_EQ(tilewise_context_create("cpu", nullptr, &context), TILEWISE_OK) << last_error();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) {
                tilewise_executable* executable = nullptr;
                tilewise_registry* registry = nullptr;
                if (tilewise_prepare(context, kSmallProblem, nullptr, &executable) != TILEWISE_OK) ++wrong;
                if (tilewise_registry_create("r", &registry) != TILEWISE_OK) ++wrong;
                alignas(64) const float a[16] = {1}, b[16] = {2};
                alignas(64) float c[16] = {};
                tilewise_operands operands = TILEWISE_OPERANDS_INIT;
                operands.a = a, operands.b = b, operands.c = c;
                if (tilewise_run(executable, &operands, nullptr) != TILEWISE_OK) ++wrong;
                if (c[0] != 2) ++wrong;
                tilewise_executable_destroy(executable);
                tilewise_registry_destroy(registry);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    tilewise_context_destroy(context);
}

// Using a handle while another thread destroys it is refused or goes through, whole.
TEST(CapiHandlesThreads, DestroyedWhileInUse) {
    for (int round = 0; round < 20; ++round) {
        tilewise_registry* registry = nullptr;
        ASSERT_EQ(tilewise_registry_create("r", &registry), TILEWISE_OK);
        std::atomic<int> odd{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 200; ++i) {
                    const tilewise_status status = tilewise_registry_clear(registry);
                    if (status != TILEWISE_OK && status != TILEWISE_USAGE) ++odd;
                }
            });
        }
        tilewise_registry_destroy(registry);
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(odd, 0);
    }
}

}  // namespace
