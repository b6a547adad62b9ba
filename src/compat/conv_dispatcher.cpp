// SPDX-License-Identifier: MIT
// conv_dispatcher_*: convolutions in three directions on memory of the device, as the original's library offered them.
#include "compat/conv_problem.hpp"
#include "compat/session.hpp"

namespace tilewise::compat {
namespace {

// Never destroyed: other threads may still be in a call when the process ends.
Session& session() {
    static auto* made = new Session({"conv_fwd", "conv_bwd_data", "conv_bwd_weight"});
    return *made;
}

int has(const char* op) {
    const std::scoped_lock lock(session().mutex());
    return session().is_open() && session().count(op) > 0 ? 1 : 0;
}

// 0 with the name, or a code.
int select_conv(const ConvProblemC* problem, std::string& name) {
    if (!session().is_open()) return fail(kError, "conv_dispatcher_init was not called, or failed");
    if (!problem) return fail(kError, "the problem is NULL");
    const std::string text = conv_text(*problem, session().settings());
    if (text.empty()) return fail(kError, "direction is none of 0, 1, 2, or layout of channels_last, channels_first");
    name = session().select(text, problem->split_k);
    return name.empty() ? kNoKernel : kOk;
}

}  // namespace
}  // namespace tilewise::compat

extern "C" {

int conv_dispatcher_init(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::session().open();
}

int conv_dispatcher_cleanup(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    tilewise::compat::session().close();
    return tilewise::compat::kOk;
}

const char* conv_dispatcher_version(void) { return "2.0.0"; }

int conv_dispatcher_configure(const char* setting, const char* value) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::session().configure(setting, value);
}

const char* conv_dispatcher_last_error(void) { return tilewise::compat::last_error().c_str(); }

int conv_dispatcher_has_kernels(void) { return tilewise::compat::has("conv_fwd"); }
int conv_dispatcher_has_bwd_data(void) { return tilewise::compat::has("conv_bwd_data"); }
int conv_dispatcher_has_bwd_weight(void) { return tilewise::compat::has("conv_bwd_weight"); }

int conv_dispatcher_get_kernel_count(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return static_cast<int>(tilewise::compat::session().count());
}

int conv_dispatcher_get_kernel_name(int index, char* buffer, int buffer_size) {
    using namespace tilewise::compat;
    const std::scoped_lock lock(session().mutex());
    const std::string name = session().name_at(index);
    return name.empty() ? fail_with_library(kError) : copy_to_buffer(name, buffer, buffer_size);
}

int conv_dispatcher_is_supported(const ConvProblemC* prob) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    std::string name;
    return tilewise::compat::select_conv(prob, name) == tilewise::compat::kOk ? 1 : 0;
}

int conv_dispatcher_select_kernel(const ConvProblemC* prob, char* buffer, int buffer_size) {
    using namespace tilewise::compat;
    const std::scoped_lock lock(session().mutex());
    if (!buffer || buffer_size < 1) return fail(kError, "there is no buffer for the name");
    std::string name;
    const int code = select_conv(prob, name);
    return code == kOk ? copy_to_buffer(name, buffer, buffer_size) : code;
}

float conv_dispatcher_run(const void* a_ptr, const void* b_ptr, void* c_ptr, const ConvProblemC* prob, void* stream) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::run_conv(tilewise::compat::session(), a_ptr, b_ptr, c_ptr, prob, stream);
}

}  // extern "C"
