// SPDX-License-Identifier: MIT
// The places where NVRTC may be. Nothing is loaded here.
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/text.hpp"
#include "base/trust.hpp"
#include "build/nvrtc.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libnvrtc.so";  // then .13, .12, .11.2; not libnvrtc-builtins, libnvrtc.alt

int add_if_nvrtc(dl_phdr_info* info, std::size_t, void* found) {
    const std::string_view path = info->dlpi_name;
    const std::size_t name = path.rfind('/') + 1;
    if (path.substr(name).starts_with(kPrefix)) static_cast<std::vector<std::string>*>(found)->emplace_back(path);
    return 0;
}

// 13 of libnvrtc.so.13 and cuda-13.0; 0 for a name without a number.
std::int64_t number_in(const fs::path& path) {
    const std::string name = path.filename();
    const std::size_t start = name.find_first_of("0123456789");
    if (start == std::string::npos) return 0;
    const std::size_t end = name.find_first_not_of("0123456789", start);
    return parse_integer(std::string_view(name).substr(start, end == std::string::npos ? end : end - start))
        .value_or(0);
}

// The entries of a folder that begin so, the highest number first.
std::vector<fs::path> entries(const fs::path& folder, std::string_view prefix) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        if (at->path().filename().string().starts_with(prefix)) found.push_back(at->path());
    }
    std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
        return std::pair(-number_in(a), a) < std::pair(-number_in(b), b);
    });
    return found;
}

class Places {
public:
    std::vector<std::string> take() { return std::move(places_); }

    void add(std::string place) {
        if (std::find(places_.begin(), places_.end(), place) == places_.end()) places_.push_back(std::move(place));
    }
    void add_loaded() {
        std::vector<std::string> loaded;
        dl_iterate_phdr(add_if_nvrtc, &loaded);
        for (std::string& path : loaded) add(std::move(path));
    }
    void add_folder(const fs::path& folder) {
        for (const fs::path& path : entries(folder, kPrefix)) {
            if (is_safe(path)) add(path);
        }
    }
    void add_packages(const fs::path& site_packages) {
        // cu13, cu12: since CUDA 13 one folder for all of NVIDIA's packages; before, one for each.
        for (const char* name : {"cu", "cuda_nvrtc"}) {
            for (const fs::path& package : entries(site_packages / "nvidia", name)) add_folder(package / "lib");
        }
    }
    // All the Python versions' packages under a prefix such as /usr/local or a virtual environment.
    void add_prefix(const fs::path& prefix) {
        for (const fs::path& python : entries(prefix / "lib", "python3")) {
            for (const char* name : {"site-packages", "dist-packages"}) add_packages(python / name);
        }
    }
    // Where this library is: in a Python package, installed under a prefix, or in the build folder of a source tree.
    void add_around_us() {
        Dl_info info{};
        std::error_code error;
        if (dladdr(reinterpret_cast<void*>(&nvrtc_places), &info) == 0) return;
        // The main program is known to the loader by the word it was called with.
        const bool is_program = std::string_view(info.dli_fname).find(".so") == std::string_view::npos;
        const fs::path us = fs::canonical(is_program ? "/proc/self/exe" : info.dli_fname, error);
        if (error) return;
        for (fs::path folder = us.parent_path(); folder != folder.parent_path(); folder = folder.parent_path()) {
            const fs::path name = folder.filename();
            if (name == "site-packages" || name == "dist-packages") add_packages(folder);
        }
        const fs::path prefix = us.parent_path().parent_path();
        add_prefix(prefix);
        add_prefix(prefix.parent_path() / ".venv");
    }

private:
    // A loaded library can do all we can. Only the owner counts: packages are often installed for their user's group to write.
    static bool is_safe(const fs::path& path) {
        struct stat info {};
        return stat(path.c_str(), &info) == 0 && trusts_owner(info.st_uid);
    }

    std::vector<std::string> places_;
};

}  // namespace

std::vector<std::string> nvrtc_places() {
    Places places;
    places.add_loaded();
    if (const char* environment = secure_getenv("VIRTUAL_ENV"); environment && *environment == '/') {
        places.add_prefix(environment);
    }
    places.add_around_us();
    if (const char* home = secure_getenv("HOME"); home && *home == '/') places.add_prefix(fs::path(home) / ".local");
    places.add_prefix("/usr/local");
    places.add_packages("/usr/lib/python3/dist-packages");
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) places.add(name);
    for (const fs::path& toolkit : entries("/usr/local", "cuda")) places.add_folder(toolkit / "lib64");
    return places.take();
}

}  // namespace tilewise
