// SPDX-License-Identifier: MIT
// Times a case of an example, GemmCase or ConvCase, by hand: how a program runs a kernel again and again.
#pragma once

#include <algorithm>
#include <chrono>

#include "arguments.hpp"

namespace example {

// Runs it `warmup` times and then `runs` times, each to its end, prints the times of the latter, and leaves the result in
// the case.
template <class Case>
void time_by_hand(const tilewise::Device& device, const tilewise::Dispatcher& dispatcher, const Case& item, long warmup,
                  long runs) {
    const auto executable = need(dispatcher.prepare(item.problem), "prepare");
    const auto workspace =
        need(tilewise::Buffer::make(device, static_cast<std::size_t>(executable.workspace_bytes())), "workspace");
    tilewise::Operands operands = item.operands();
    operands.workspace = workspace.data();
    std::vector<double> us;
    for (long i = 0; i < warmup + std::max(runs, 1L); ++i) {
        const auto begin = std::chrono::steady_clock::now();
        need(executable.run(operands), "run");
        need(device.synchronize(), "wait");
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        if (i >= warmup) us.push_back(took.count());
    }
    std::sort(us.begin(), us.end());
    const double median = us[us.size() / 2];
    std::printf("%s\n%s\nby hand: min %.1f us, median %.1f us, max %.1f us, %.4f TFLOPS\n", item.problem.text().c_str(),
                executable.kernel().c_str(), us.front(), median, us.back(), item.problem.flops() / median / 1e6);
}

}  // namespace example
