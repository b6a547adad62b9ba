// SPDX-License-Identifier: MIT
// The C++ interface of tilewise, all of it: problem -> Dispatcher -> Plan -> Executable -> run. It is a header-only layer
// over tilewise.h, so that a program compiled with one compiler runs with a library compiled by another.
#pragma once

#include "tilewise/device.hpp"
#include "tilewise/dispatcher.hpp"
#include "tilewise/error.hpp"
#include "tilewise/kernel_config.hpp"
#include "tilewise/plan.hpp"
#include "tilewise/problem.hpp"
#include "tilewise/registry.hpp"
