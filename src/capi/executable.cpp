// SPDX-License-Identifier: MIT
// The C functions on an executable: preparing a problem, asking about it, running it. A run allocates nothing.
#include "run/executable.hpp"

#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "problem/operand_specs.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::capi {
namespace {

static_assert(sizeof(tilewise_operands::d) / sizeof(void*) == kMaxDTensors);

Status prepare(tilewise_context* context, const char* text, const tilewise_select_options* given,
               tilewise_executable** out) {
    if (!out) return usage_error("the output pointer is NULL");
    *out = nullptr;
    const Pinned<tilewise_context> pinned(context);
    if (!pinned) return not_open(context);
    auto problem = read_problem_argument(text);
    if (!problem) return problem.error();
    const auto read = read_choice(given);
    if (!read) return read.error();
    if (!read->arch.empty()) return usage_error("tilewise_select_options: arch is for plans without a context");
    Runtime& runtime = *pinned->runtime;
    auto plan = choose_plan(runtime, *problem, read->choice);
    if (!plan) return plan.error();
    auto ready = runtime.dispatcher->executable_now(*problem, *plan);
    if (!ready) return ready.error();
    *out = open_handle(std::unique_ptr<tilewise_executable>(
        new tilewise_executable{pinned->runtime, std::move(*problem), std::move(*plan), std::move(*ready)}));
    return {};
}

std::string describe(const tilewise_executable& e) {
    const Plan& plan = e.plan;
    const std::vector<Note> notes = joined(plan.notes, e.ready->notes());
    Json json = Json::object({{"problem", print_problem(e.problem)},
                              {"kernel", plan.kernel->name},
                              {"plan", Json::object({{"kernel", plan.kernel->name},
                                                     {"source", name_of(plan.source)},
                                                     {"why", plan.why},
                                                     {"notes", notes_to_json(notes)},
                                                     {"available", plan.kernel->available}})},
                              {"origin", name_of(e.ready->built().origin)},
                              {"threads", threads_json(*e.ready)},
                              {"align", e.problem.align_bytes},
                              {"workspace_bytes", e.ready->workspace_bytes()},
                              {"packed_b_bytes", e.ready->packed_b_bytes()}});
    json.set("operands", operands_to_json(operand_specs(e.problem)));
    return json.dump();
}

Status run(const tilewise_executable& executable, const tilewise_operands* given, void* stream) {
    if (!given) return usage_error("the operands are NULL");
    tilewise_operands from = TILEWISE_OPERANDS_INIT;
    if (auto status = read_sized(given, "tilewise_operands", from); !status) return status;
    Operands o;
    o.a = from.a, o.b = from.b, o.c = from.c;
    o.bias = from.bias;
    std::copy(std::begin(from.d), std::end(from.d), o.d.begin());
    o.scale_a = from.scale_a, o.scale_b = from.scale_b;
    o.alpha = from.alpha, o.beta = from.beta;
    o.workspace = from.workspace;
    return executable.ready->launch(o, stream);
}

Status pack_b(const tilewise_executable& executable, const void* b, void* packed, void* stream) {
    if (!b || !packed) return usage_error("B or the memory for its packed form is NULL");
    return executable.ready->pack_b(b, packed, stream);
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_prepare(tilewise_context* context, const char* problem, const tilewise_select_options* options,
                                 tilewise_executable** executable) {
    return tilewise::capi::guarded([&] { return tilewise::capi::prepare(context, problem, options, executable); });
}

void tilewise_executable_destroy(tilewise_executable* executable) { tilewise::capi::close(executable); }

const char* tilewise_executable_kernel(const tilewise_executable* executable) {
    return tilewise::capi::value_of(executable, "", [](tilewise_executable& e) { return e.plan.kernel->name.c_str(); });
}

const char* tilewise_executable_source(const tilewise_executable* executable) {
    return tilewise::capi::value_of(executable, "",
                                    [](tilewise_executable& e) { return name_of(e.plan.source).data(); });
}

const char* tilewise_executable_why(const tilewise_executable* executable) {
    return tilewise::capi::value_of(executable, "", [](tilewise_executable& e) { return e.plan.why.c_str(); });
}

int64_t tilewise_executable_workspace_bytes(const tilewise_executable* executable) {
    return tilewise::capi::value_of(executable, int64_t{0},
                                    [](tilewise_executable& e) { return e.ready->workspace_bytes(); });
}

int64_t tilewise_executable_packed_b_bytes(const tilewise_executable* executable) {
    return tilewise::capi::value_of(executable, int64_t{0},
                                    [](tilewise_executable& e) { return e.ready->packed_b_bytes(); });
}

tilewise_status tilewise_executable_describe(const tilewise_executable* executable, char** json) {
    return tilewise::capi::give_text_of(executable, json, [](tilewise_executable& e) -> tilewise::Result<std::string> {
        return tilewise::capi::describe(e);
    });
}

tilewise_status tilewise_run(const tilewise_executable* executable, const tilewise_operands* operands, void* stream) {
    return tilewise::capi::with(executable,
                                [&](tilewise_executable& e) { return tilewise::capi::run(e, operands, stream); });
}

tilewise_status tilewise_pack_b(const tilewise_executable* executable, const void* b, void* packed, void* stream) {
    return tilewise::capi::with(executable,
                                [&](tilewise_executable& e) { return tilewise::capi::pack_b(e, b, packed, stream); });
}

}  // extern "C"
