// SPDX-License-Identifier: MIT
// Where tests that run many kernels keep them: in the folder that TILEWISE_TEST_CACHE names, so that the same tests under a
// sanitizer compile nothing that was compiled before them; without it in one of their own, which they remove. A kernel is found
// by its source, headers and flags, so that none is ever too old.
#pragma once

#include <cstdlib>
#include <string>

namespace tilewise::build_testing {

inline std::string kept_cache(const std::string& own) {
    const char* kept = std::getenv("TILEWISE_TEST_CACHE");
    return kept && *kept != '\0' ? kept : own;
}

}  // namespace tilewise::build_testing
