// SPDX-License-Identifier: MIT
// NVRTC, NVIDIA's compiler as a library: found on this machine and loaded when the first CUDA kernel is compiled, never
// before. It needs neither a GPU nor a driver. Declared here as far as we use it, so that no CUDA header is needed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "build/code_suffix.hpp"
#include "build/toolchain.hpp"

namespace tilewise {

struct NvrtcProgram;  // NVRTC's own
enum class NvrtcResult : int { success = 0 };

struct Nvrtc {
    void* library;  // the loader's handle
    NvrtcResult (*version)(int* major, int* minor);
    const char* (*error_text)(NvrtcResult);
    NvrtcResult (*create)(NvrtcProgram**, const char* source, const char* name, int headers, const char* const* texts,
                          const char* const* names);
    NvrtcResult (*destroy)(NvrtcProgram**);
    NvrtcResult (*compile)(NvrtcProgram*, int options, const char* const*);
    NvrtcResult (*log_size)(NvrtcProgram*, std::size_t*);  // with the 0 at its end
    NvrtcResult (*log)(NvrtcProgram*, char*);
    NvrtcResult (*cubin_size)(NvrtcProgram*, std::size_t*);
    NvrtcResult (*cubin)(NvrtcProgram*, char*);
    NvrtcResult (*ptx_size)(NvrtcProgram*, std::size_t*);  // with the 0 at its end
    NvrtcResult (*ptx)(NvrtcProgram*, char*);
    // Called from time to time while it compiles; 1 ends that. Null before CUDA 12.8.
    NvrtcResult (*set_callback)(NvrtcProgram*, int (*)(void* data, void* unused), void* data);
};

// Major and minor of a toolchain's "13.0".
std::optional<std::pair<int, int>> nvrtc_version(std::string_view text);

// Whether a driver (driver_version as in BuildSettings) loads code of this suffix that NVRTC major.minor built: cubins of
// its own CUDA major version or an earlier one; PTX is stricter and must not be of a later minor version either.
bool driver_loads(std::string_view suffix, int major, int minor, int driver_version);

// `wanted` is a path ($TILEWISE_NVRTC) that must do; when it is empty, the first of nvrtc_places() that loads, is new
// enough, and whose code the driver, if there is one, loads. The error says where was looked, what was found, and what is
// needed.
Result<Toolchain> find_nvrtc(const std::string& wanted, std::optional<int> driver_version,
                             std::string_view suffix = kCubin);

// The functions of the library at `path`, which stays loaded from now on: unloading a compiler that has run is asking
// for trouble, and it is needed again.
Result<Nvrtc> load_nvrtc(const std::string& path);

// Where to look, in this order: what the process has loaded already; Python packages; the system. Each a path, or a name
// for the loader to find.
std::vector<std::string> nvrtc_places();
constexpr std::string_view kNvrtcPlaces =
    "in this process; in nvidia/*/lib of the Python packages of VIRTUAL_ENV, of where tilewise is, of this user and of "
    "the system; where the loader looks; in /usr/local/cuda*";

}  // namespace tilewise
