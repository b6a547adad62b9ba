// SPDX-License-Identifier: MIT
// One mutex for the tables that must be usable in the child of a fork, whatever the parent's other threads were doing: the
// forking thread holds it across the fork, so that the child finds it free and what it guards whole. A fork
// waits for it, so it is held shortly (a table, a line of a file), and whoever holds it takes no other lock.
#pragma once

#include <mutex>

namespace tilewise {

std::mutex& fork_safe_mutex();

}  // namespace tilewise
