// SPDX-License-Identifier: MIT
// libtilewise as these ops use it: the functions of the copy that the Python package has loaded, so that one library with one
// set of devices serves both, and its failures as torch's.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <string>

#include "tilewise/tilewise.h"

namespace tilewise_torch {

// The context of a device, with so many threads where it is the CPU; NULL where it cannot be opened. May take Python's lock.
using ContextOf = tilewise_context* (*)(const char* device, int threads);

struct Library {
    decltype(&tilewise_last_error) last_error = nullptr;
    decltype(&tilewise_context_create) context_create = nullptr;
    decltype(&tilewise_problem_operand) problem_operand = nullptr;
    decltype(&tilewise_prepare) prepare = nullptr;
    decltype(&tilewise_executable_workspace_bytes) workspace_bytes = nullptr;
    decltype(&tilewise_executable_destroy) destroy = nullptr;
    decltype(&tilewise_run) run = nullptr;
    ContextOf context_of = nullptr;
};

inline Library& library() {
    static Library loaded;
    return loaded;
}

template <class Function>
void resolve(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    TORCH_CHECK(function, "libtilewise.so has no function ", name);
}

inline void load_library(void* handle, ContextOf context_of) {
    Library& to = library();
    resolve(handle, "tilewise_last_error", to.last_error);
    resolve(handle, "tilewise_context_create", to.context_create);
    resolve(handle, "tilewise_problem_operand", to.problem_operand);
    resolve(handle, "tilewise_prepare", to.prepare);
    resolve(handle, "tilewise_executable_workspace_bytes", to.workspace_bytes);
    resolve(handle, "tilewise_executable_destroy", to.destroy);
    resolve(handle, "tilewise_run", to.run);
    to.context_of = context_of;
}

// Throws the library's refusal in its own words: a NotImplementedError where no kernel can do it, else a RuntimeError.
inline void check(tilewise_status status) {
    if (status == TILEWISE_OK) return;
    const std::string message = library().last_error();
    if (status == TILEWISE_UNSUPPORTED) TORCH_CHECK_NOT_IMPLEMENTED(false, message);
    TORCH_CHECK(false, message);
}

inline tilewise_context* open_context(const std::string& device, int threads) {
    tilewise_context* context = library().context_of(device.c_str(), threads);
    if (!context) check(library().context_create(device.c_str(), nullptr, &context));  // says why
    return context;
}

// torch's current stream as the driver knows it, asked of the device's own implementation: no header of CUDA is needed, and
// the same binary serves a torch without it.
inline void* current_stream(c10::Device device) {
    if (device.is_cpu()) return nullptr;
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

}  // namespace tilewise_torch
