// SPDX-License-Identifier: MIT
// Random sequences of calls of the C interface: odd texts, null pointers, sizes of structs, handles that were destroyed, are
// of another kind or never were any. Whatever comes, each call gives a status, with a message unless it went well.
#include <algorithm>
#include <cstring>

#include "tape.hpp"
#include "tilewise/tilewise.h"

std::vector<std::string> fuzz_seeds() {
    return {
        std::string("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f", 16),
        std::string("\x10\x00\x11\x01\x12\x02\x13\x03\x14\x04\x15\x05\x16\x06\x17\x07\x18\x08", 18),
        "\x05gemm:m=4,n=4,k=4,dtype=fp32,layout=rcr\n\x06{\"arch\": \"gfx942\"}\n\x07\x08\x09",
        "\x0bconv_fwd:n=1,g=2,c=4,k=4,in=5x5,filter=3x3,dtype=bf16\n\x0c\x0d\x0e",
        "\x01gemm_fp32_any_basic_v1_default_intrawave_28x128x128_1x1x1_28x16x1@cpu-avx512\n\x02tile\n\x03high\n",
    };
}

namespace {

constexpr const char* kProblem = "gemm:m=4,n=4,k=4,dtype=fp32,layout=rcr";
constexpr std::size_t kBytesOfStruct = 8192;  // more than any size a call believes

class Calls : public Tape {
public:
    using Tape::Tape;

    std::int64_t number() {
        static constexpr std::int64_t kOdd[] = {0, 1, -1, 4, 255, 1 << 20, INT64_MAX, INT64_MIN};
        return often() ? kOdd[below(std::size(kOdd))] : byte();
    }
    // The rest of a line, a text that means something, or none.
    const char* text() {
        static constexpr const char* kKnown[] = {
            nullptr,
            "",
            "{}",
            kProblem,
            "cpu",
            "gfx942",
            "auto",
            "measure",
            "default",
            "tiny",
            "fp32",
            "a",
            "tile",
            "high",
            "conv_bwd_data:n=1,g=2,c=4,k=4,in=5x5,filter=3x3,dtype=fp32",
            R"({"op": "gemm", "rule_set": "tiny"})",
            "gemm_fp32_any_basic_v1_default_intrawave_28x128x128_1x1x1_28x16x1@cpu-avx512",
            "gemm_fp32_rcr_compv3_default_intrawave_64x64x8_2x2x0_32x64x1@sm_90a",
            R"({"kernels": [{"config": {"op": "gemm", "dtype": "bf16", "layout": "rcr", "pipeline": "compv3",
                "epilogue": "default", "scheduler": "intrawave", "tile": "0x0x0", "wave": "1x1x1",
                "warp_tile": "16x8x16", "arch": "sm_90a"}}]})",
            "/nonexistent"};
        if (often()) return kKnown[below(std::size(kKnown))];
        const std::uint8_t* line = std::find(at_, end_, '\n');
        texts_.emplace_back(at_, line);
        at_ = line == end_ ? end_ : line + 1;
        return texts_.back().c_str();
    }

private:
    std::vector<std::string> texts_ = reserved();

    static std::vector<std::string> reserved() {
        std::vector<std::string> texts;
        texts.reserve(4096);  // so that the texts given out stay where they are
        return texts;
    }
};

void check(tilewise_status status) {
    require(status >= TILEWISE_OK && status <= TILEWISE_DEVICE, "a status that callers may expect");
    require((status == TILEWISE_OK) == (tilewise_last_error()[0] == '\0'),
            "a message for a failure, and for nothing else");
}

template <class Call>
void take_text(const Call& call) {
    char* text = nullptr;
    const tilewise_status status = call(&text);
    check(status);
    require((status == TILEWISE_OK) == (text != nullptr), "a text or a failure");
    if (text) require(std::strlen(text) < std::size_t{1} << 30, "a text with an end");
    tilewise_free(text);
}

// Handles that were given out, open or not.
template <class T>
struct Pool {
    std::vector<T*> all = {nullptr, reinterpret_cast<T*>(std::uintptr_t{0xdeadbeef})};

    T* any(Calls& tape) { return all[tape.below(all.size())]; }
    template <class Call>
    void take(const Call& call) {
        T* made = nullptr;
        const tilewise_status status = call(&made);
        check(status);
        require((status == TILEWISE_OK) == (made != nullptr), "a handle or a failure");
        if (made) all.push_back(made);
    }
};

struct Pools {
    Pool<tilewise_context> contexts;
    Pool<tilewise_registry> registries;
    Pool<tilewise_plan> plans;
    Pool<tilewise_executable> executables;

    // One of each to begin with, so that what follows is not all refusals.
    Pools() {
        contexts.take([](auto** out) { return tilewise_context_create("cpu", nullptr, out); });
        registries.take([](auto** out) { return tilewise_registry_create("fuzz", out); });
        plans.take([&](auto** out) { return tilewise_plan_create(contexts.all.back(), kProblem, nullptr, out); });
        executables.take([&](auto** out) { return tilewise_plan_prepare(plans.all.back(), out); });
    }
    ~Pools() {
        for (auto* it : contexts.all) tilewise_context_destroy(it);
        for (auto* it : registries.all) tilewise_registry_destroy(it);
        for (auto* it : plans.all) tilewise_plan_destroy(it);
        for (auto* it : executables.all) tilewise_executable_destroy(it);
    }
};

// A struct in a block of memory that is longer than any size it may claim.
template <class T>
struct Block {
    explicit Block(Calls& tape) : bytes(kBytesOfStruct) {
        if (!tape.often()) bytes[sizeof(T) + tape.below(64)] = 1;  // a field of a newer library
        static constexpr std::size_t kSizes[] = {0, 1, 8, 24, sizeof(T), sizeof(T) + 8, 4096, 5000, ~std::size_t{0}};
        value().size = tape.often() ? sizeof(T) : kSizes[tape.below(std::size(kSizes))];
    }
    T& value() { return *reinterpret_cast<T*>(bytes.data()); }
    std::vector<std::uint8_t> bytes;
};

std::int32_t rank(void* user, const char*, const char* const* kernels, const double*, std::int32_t count,
                  std::int32_t* order) {
    Calls& tape = *static_cast<Calls*>(user);
    for (std::int32_t i = 0; i < count; ++i) {
        require(kernels[i][0] != '\0', "a candidate has a name");
        order[i] = static_cast<std::int32_t>(tape.number());
    }
    return static_cast<std::int32_t>(tape.number());
}

void query(Calls& tape) {
    const char *first = tape.text(), *second = tape.text(), *third = tape.text();
    switch (tape.below(13)) {
        case 0: return take_text([&](char** out) { return tilewise_kernels(first, out); });
        case 1: return take_text([&](char** out) { return tilewise_find_kernel(first, second, out); });
        case 2: return take_text([&](char** out) { return tilewise_check(first, tape.byte(), out); });
        case 3: return take_text([&](char** out) { return tilewise_correct(first, out); });
        case 4: return take_text([&](char** out) { return tilewise_config_get(first, second, out); });
        case 5: return take_text([&](char** out) { return tilewise_config_set(first, second, third, out); });
        case 6: return take_text([&](char** out) { return tilewise_select(first, second, out); });
        case 7: return take_text([&](char** out) { return tilewise_problem_describe(first, out); });
        case 8: return take_text([&](char** out) { return tilewise_problem_text(first, out); });
        case 9: return take_text([&](char** out) { return tilewise_config_fields(out); });
        case 10: return check(tilewise_check_abi(static_cast<int>(tape.number())));
        case 11: return take_text([&](char** out) { return tilewise_archs(first, out); });
        default: return check(tilewise_problem_work(first, nullptr, nullptr));
    }
}

void problem(Calls& tape) {
    Block<tilewise_gemm> gemm(tape);
    Block<tilewise_conv> conv(tape);
    Block<tilewise_tensor> tensor(tape);
    for (auto* field : {&gemm.value().m, &gemm.value().n, &gemm.value().k, &gemm.value().batch}) *field = tape.number();
    gemm.value().dtype = tape.text(), gemm.value().layout = tape.text(), gemm.value().options = tape.text();
    for (auto* field : {&conv.value().n, &conv.value().g, &conv.value().c, &conv.value().k}) *field = tape.number();
    conv.value().dims = static_cast<std::int32_t>(tape.number());
    for (int i = 0; i < 3; ++i) {
        conv.value().in[i] = tape.number(), conv.value().filter[i] = tape.number();
        conv.value().stride[i] = tape.number(), conv.value().pad_before[i] = tape.number();
    }
    conv.value().op = tape.text(), conv.value().dtype = tape.text(), conv.value().options = tape.text();
    take_text([&](char** out) { return tilewise_gemm_text(tape.often() ? &gemm.value() : nullptr, out); });
    take_text([&](char** out) { return tilewise_conv_text(tape.often() ? &conv.value() : nullptr, out); });
    const char *whole = tape.text(), *operand = tape.text();
    check(tilewise_problem_operand(whole, operand, tape.often() ? &tensor.value() : nullptr));
}

void registry(Calls& tape, Pools& pools) {
    std::int64_t count = 0;
    std::int64_t* added = tape.often() ? &count : nullptr;
    tilewise_registry *one = pools.registries.any(tape), *other = pools.registries.any(tape);
    const char *first = tape.text(), *second = tape.text();
    switch (tape.below(10)) {
        case 0:
        case 1: return pools.registries.take([&](auto** out) { return tilewise_registry_create(first, out); });
        case 2: return check(tilewise_registry_add_rule_set(one, R"({"rule_set": "tiny", "op": "gemm"})", added));
        case 3: return check(tilewise_registry_add(one, first, second, added));
        case 4: return check(tilewise_registry_merge(one, other, added));
        case 5: return check(tilewise_registry_import(one, first, added));
        case 6: return take_text([&](char** out) { return tilewise_registry_export(one, tape.byte(), out); });
        case 7: return take_text([&](char** out) { return tilewise_registry_name_at(one, tape.number(), out); });
        case 8: return take_text([&](char** out) { return tilewise_registry_find(one, first, out); });
        default: return tilewise_registry_destroy(one);
    }
}

void context(Calls& tape, Pools& pools) {
    void* memory = nullptr;
    tilewise_context* one = pools.contexts.any(tape);
    const char* first = tape.text();
    Block<tilewise_context_options> options(tape);
    options.value().arch = tape.text(), options.value().threads = static_cast<std::int32_t>(tape.byte());
    switch (tape.below(9)) {
        case 0:
            return pools.contexts.take(
                [&](auto** out) { return tilewise_context_create(first, &options.value(), out); });
        case 1: return pools.contexts.take([&](auto** out) { return tilewise_context_create("cpu", nullptr, out); });
        case 2: return take_text([&](char** out) { return tilewise_context_describe(one, out); });
        case 3: return check(tilewise_load_pack(one, first));
        case 4: return check(tilewise_load_tuning(one, first, nullptr));
        case 5: return check(tilewise_load_models(one, first));
        case 6: return check(tilewise_synchronize(one, nullptr));
        case 7: {
            const tilewise_status status = tilewise_allocate(one, tape.byte(), &memory);
            check(status);
            if (status == TILEWISE_OK) check(tilewise_release(one, memory));
            return;
        }
        default: return tilewise_context_destroy(one);
    }
}

// Selecting builds nothing, whatever the problem; only one small problem is prepared and run.
void plan(Calls& tape, Pools& pools) {
    tilewise_plan* one = pools.plans.any(tape);
    Block<tilewise_select_options> options(tape);
    tilewise_select_options& o = options.value();
    o.rule_set = tape.text(), o.kernel = tape.often() ? nullptr : tape.text(),
    o.arch = tape.often() ? nullptr : tape.text();
    o.strategy = tape.often() ? nullptr : "first-fit";
    o.registry = tape.often() ? nullptr : pools.registries.any(tape);
    if (!tape.often()) o.rank = rank, o.rank_user = &tape;
    const char* name = nullptr;
    switch (tape.below(8)) {
        case 0:
        case 1: {
            const tilewise_select_options* given = tape.often() ? &o : nullptr;
            tilewise_context* where = pools.contexts.any(tape);
            return pools.plans.take([&](auto** out) { return tilewise_plan_create(where, tape.text(), given, out); });
        }
        case 2: return take_text([&](char** out) { return tilewise_plan_describe(one, out); });
        case 3: return check(tilewise_plan_candidate(one, tape.number(), &name, nullptr));
        case 4: return check(tilewise_plan_rejection(one, tape.number(), &name, nullptr, nullptr, nullptr));
        case 5:
            require(tilewise_plan_kernel(one) && tilewise_plan_source(one) && tilewise_plan_why(one), "texts");
            return;
        case 6:
            return pools.executables.take(
                [&](auto** out) { return tilewise_prepare(pools.contexts.any(tape), kProblem, nullptr, out); });
        default: return tilewise_plan_destroy(one);
    }
}

void executable(Calls& tape, Pools& pools) {
    tilewise_executable* one = pools.executables.any(tape);
    alignas(64) float a[16] = {}, b[16] = {}, c[16] = {};
    Block<tilewise_operands> operands(tape);
    operands.value().a = tape.often() ? a : nullptr;
    operands.value().b = tape.often() ? b : a + 1;  // not aligned as the problem says
    operands.value().c = tape.often() ? c : nullptr;
    switch (tape.below(6)) {
        case 0:
        case 1: return check(tilewise_run(one, tape.often() ? &operands.value() : nullptr, nullptr));
        case 2: return take_text([&](char** out) { return tilewise_executable_describe(one, out); });
        case 3: require(tilewise_executable_kernel(one) && tilewise_executable_why(one), "texts"); return;
        case 4: return check(tilewise_pack_b(one, nullptr, nullptr, nullptr));
        default: return tilewise_executable_destroy(one);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr int kMostCalls = 64;
    Calls tape(data, size);
    Pools pools;
    for (int i = 0; i < kMostCalls && !tape.is_done(); ++i) {
        switch (tape.below(6)) {
            case 0: query(tape); break;
            case 1: problem(tape); break;
            case 2: registry(tape, pools); break;
            case 3: context(tape, pools); break;
            case 4: plan(tape, pools); break;
            default: executable(tape, pools); break;
        }
    }
    return 0;
}
