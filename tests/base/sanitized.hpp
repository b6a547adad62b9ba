// SPDX-License-Identifier: MIT
// Whether this program has the address or the thread sanitizer. Asked when it runs: the same object files of tests are linked with
// the library as it is and with one under a sanitizer (CMakeLists.txt).
#pragma once

extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
}

namespace tilewise {

inline bool is_sanitized() { return &__asan_init != nullptr || &__tsan_init != nullptr; }

}  // namespace tilewise
