// SPDX-License-Identifier: MIT
// dispatcher_*: matrix products on host memory, as the original's library of one GEMM kernel offered them.
#include <cstdio>

#include "compat/original_json.hpp"
#include "compat/session.hpp"
#include "tilewise/original.h"

namespace tilewise::compat {
namespace {

// Never destroyed: other threads may still be in a call when the process ends.
Session& session() {
    static auto* made = new Session({"gemm"});
    return *made;
}

int not_open() { return fail(kError, "dispatcher_init was not called, or failed"); }

// The original has no kernel for a product without elements or terms.
bool is_empty(std::int64_t m, std::int64_t n, std::int64_t k) { return m < 1 || n < 1 || k < 1; }
int refuse_empty() { return fail(kNoKernel, "M, N and K must be 1 or more"); }

std::string problem_text(const Settings& settings, std::int64_t m, std::int64_t n, std::int64_t k) {
    std::string text = "gemm:m=" + std::to_string(m) + ",n=" + std::to_string(n) + ",k=" + std::to_string(k) +
                       ",dtype=" + settings.dtype;
    return settings.layout.empty() ? text : text + ",layout=" + settings.layout;
}

// The kernel to name: what was used last, else what a middling problem would use.
std::string current_kernel() {
    constexpr std::int64_t kMediumSize = 1024;
    if (!session().is_open()) return {};
    if (!session().kernel().empty()) return session().original_name(session().kernel());
    return session().original_name(
        session().select(problem_text(session().settings(), kMediumSize, kMediumSize, kMediumSize)));
}

bool read_shape(const std::string& kernel, const char* field, int* const (&out)[3]) {
    const std::string text = field_of(kernel, field);
    int values[3];
    if (std::sscanf(text.c_str(), "%dx%dx%d", &values[0], &values[1], &values[2]) != 3) return false;
    for (int i = 0; i < 3; ++i) *out[i] = values[i];
    return true;
}

int run_gemm(const Buffers& buffers, std::int64_t m, std::int64_t n, std::int64_t k, float* time_ms) {
    if (!session().is_open()) return not_open();
    if (!buffers.a || !buffers.b || !buffers.c) return fail(kError, "A, B or C is NULL");
    if (is_empty(m, n, k)) return refuse_empty();
    const std::string problem = problem_text(session().settings(), m, n, k) + alignment_option(buffers);
    const double ms = session().run_on_host(problem, buffers);
    if (time_ms) *time_ms = static_cast<float>(ms);
    if (ms > 0) return kOk;
    return ms == kNoKernel ? kNoKernel : kError;
}

}  // namespace
}  // namespace tilewise::compat

extern "C" {

int dispatcher_initialize(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::session().open();
}

int dispatcher_init(void) { return dispatcher_initialize(); }

int dispatcher_configure(const char* setting, const char* value) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::session().configure(setting, value);
}

const char* dispatcher_last_error(void) { return tilewise::compat::last_error().c_str(); }

int dispatcher_get_kernel_config(int* tile_m, int* tile_n, int* tile_k, int* warp_tile_m, int* warp_tile_n,
                                 int* warp_tile_k, int* warp_m, int* warp_n, int* warp_k) {
    using namespace tilewise::compat;
    const std::scoped_lock lock(session().mutex());
    if (!session().is_open()) return not_open();
    for (const int* out : {tile_m, tile_n, tile_k, warp_tile_m, warp_tile_n, warp_tile_k, warp_m, warp_n, warp_k}) {
        if (!out) return fail(kError, "an output pointer is NULL");
    }
    const std::string kernel = current_kernel();
    const bool fine = read_shape(kernel, "tile", {tile_m, tile_n, tile_k}) &&
                      read_shape(kernel, "warp_tile", {warp_tile_m, warp_tile_n, warp_tile_k}) &&
                      read_shape(kernel, "wave", {warp_m, warp_n, warp_k});
    return fine ? kOk : fail(kError, "there is no kernel");
}

int dispatcher_select_kernel(int64_t M, int64_t N, int64_t K, char* name_buffer, int buffer_size) {
    using namespace tilewise::compat;
    const std::scoped_lock lock(session().mutex());
    if (!session().is_open()) return not_open();
    if (!name_buffer || buffer_size < 1) return fail(kError, "there is no buffer for the name");
    if (is_empty(M, N, K)) return refuse_empty();
    const std::string name = session().select(problem_text(session().settings(), M, N, K));
    return name.empty() ? kNoKernel : copy_to_buffer(session().original_name(name), name_buffer, buffer_size);
}

int dispatcher_is_supported(int64_t M, int64_t N, int64_t K) {
    using namespace tilewise::compat;
    const std::scoped_lock lock(session().mutex());
    if (is_empty(M, N, K)) return 0;
    return session().is_open() && !session().select(problem_text(session().settings(), M, N, K)).empty() ? 1 : 0;
}

int dispatcher_run_gemm(const void* A, const void* B, void* C, int64_t M, int64_t N, int64_t K, float* time_ms) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::run_gemm({A, B, C}, M, N, K, time_ms);
}

const char* dispatcher_get_kernel_name(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return tilewise::compat::keep_for_caller(tilewise::compat::current_kernel());
}

int dispatcher_get_kernel_name_at(int index, char* buffer, int buffer_size) {
    using namespace tilewise::compat;
    const std::scoped_lock lock(session().mutex());
    if (!session().is_open()) return not_open();
    const std::string name = session().name_at(index);
    return name.empty() ? fail_with_library(kError) : copy_to_buffer(name, buffer, buffer_size);
}

int dispatcher_get_kernel_count(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    return static_cast<int>(tilewise::compat::session().count());
}

const char* dispatcher_export_registry_json(void) {
    using namespace tilewise::compat;
    const std::scoped_lock lock(session().mutex());
    return keep_for_caller(session().is_open() ? session().export_json() : std::string());
}

void dispatcher_cleanup(void) {
    const std::scoped_lock lock(tilewise::compat::session().mutex());
    tilewise::compat::session().close();
}

}  // extern "C"
