// SPDX-License-Identifier: MIT
// conv_bwdw_*: the gradient of the weights alone, as the original's separate library offered it.
#include "compat/conv_problem.hpp"
#include "compat/session.hpp"

namespace tilewise::compat {
namespace {

// Never destroyed: other threads may still be in a call when the process ends.
Session& session() {
    static auto* made = new Session({"conv_bwd_weight"});
    return *made;
}

}  // namespace
}  // namespace tilewise::compat

extern "C" {

int conv_bwdw_init(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::session().open();
}

void conv_bwdw_cleanup(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    tilewise::compat::session().close();
}

const char* conv_bwdw_version(void) { return "1.0.0"; }

int conv_bwdw_configure(const char* setting, const char* value) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::session().configure(setting, value);
}

const char* conv_bwdw_last_error(void) { return tilewise::compat::last_error().c_str(); }

int conv_bwdw_has_kernels(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::session().count() > 0 ? 1 : 0;
}

int conv_bwdw_get_kernel_count(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return static_cast<int>(tilewise::compat::session().count());
}

int conv_bwdw_get_kernel_name(int index, char* buffer, int buffer_size) {
    using namespace tilewise::compat;
    const std::scoped_lock lock(session().mutex());
    const std::string name = session().name_at(index);
    return name.empty() ? fail_with_library(kError) : copy_to_buffer(name, buffer, buffer_size);
}

float conv_bwdw_run(const void* input_ptr, const void* grad_output_ptr, void* grad_weight_ptr,
                    const ConvBwdwProblemC* prob, void* stream) {
    using namespace tilewise::compat;
    const std::scoped_lock lock(session().mutex());
    const ConvProblemC problem = prob ? with_direction(*prob) : ConvProblemC{};
    return run_conv(session(), input_ptr, grad_output_ptr, grad_weight_ptr, prob ? &problem : nullptr, stream);
}

}  // extern "C"
