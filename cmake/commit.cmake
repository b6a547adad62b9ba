# SPDX-License-Identifier: MIT
# Writes OUTPUT, a source whose version() has the commit, if that is not what OUTPUT holds already.
#   cmake -D ROOT=... -D VERSION=... -D OUTPUT=... -P commit.cmake
# The commit is that of the checkout ROOT, or the line of ROOT/COMMIT in a source distribution; without either there is none.
cmake_minimum_required(VERSION 3.22)
set(commit "")
execute_process(COMMAND git -C ${ROOT} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(REAL_PATH "${ROOT}" root)
if(top STREQUAL root)
    execute_process(COMMAND git -C ${ROOT} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND git -C ${ROOT} diff --quiet HEAD -- RESULT_VARIABLE changed ERROR_QUIET)
    if(commit AND changed)
        string(APPEND commit ".dirty")
    endif()
elseif(EXISTS ${ROOT}/COMMIT)
    file(STRINGS ${ROOT}/COMMIT commit LIMIT_COUNT 1)
endif()
if(commit)
    set(VERSION "${VERSION}+g${commit}")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"// Generated from cmake/commit.cmake; do not edit.
#include \"base/version.hpp\"

namespace tilewise {

std::string_view version() { return \"${VERSION}\"; }

}  // namespace tilewise
")
