// SPDX-License-Identifier: MIT
// A loaded library and its functions by name. It stays loaded: peers start threads that outlive any object here.
#pragma once

#include <dlfcn.h>
#include <fmt/core.h>

#include <string>

#include "base/result.hpp"

namespace tilewise::bench {

class SharedObject {
public:
    static Result<SharedObject> load(const std::string& path) {
        // Local: two versions of one library must not find each other's functions.
        void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) return Error{ErrorCode::device, fmt::format("cannot load {}: {}", path, dlerror())};
        return SharedObject(handle);
    }

    // Null where the library has no such function.
    template <class Function>
    bool find(const char* name, Function*& function) const {
        function = reinterpret_cast<Function*>(dlsym(handle_, name));
        return function != nullptr;
    }

private:
    explicit SharedObject(void* handle) : handle_(handle) {}

    void* handle_;
};

}  // namespace tilewise::bench
