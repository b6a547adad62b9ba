// SPDX-License-Identifier: MIT
// The worker of a sweep: it alone touches the device. It reads one problem with its kernels a line, checks and times them, and
// answers in lines of JSON:
//   {"device": {…}}                                   first of all
//   {"at": 3}                                         from now on kernel 3 is in hand; -1: the problem itself
//   {"result": 3, "status": "ok", "time_us": …, …}    what came of it
//   {"done": true}                                    the problem is finished, but for kernels that have no result
//   {"reference_us": 12.5}                            in answer to {"reference": PROBLEM, "kernel": NAME}
#pragma once

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "select/runtime.hpp"

namespace tilewise {

// Serves until there is nothing more to read. Both are open files.
Status serve_sweep(Runtime& runtime, const ArchCatalog& archs, int input, int output);

}  // namespace tilewise
