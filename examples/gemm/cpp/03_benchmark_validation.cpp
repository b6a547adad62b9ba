// SPDX-License-Identifier: MIT
// Times a product, as the library does it and by hand, and checks the result against a reference of its own.
#include "gemm_case.hpp"
#include "timing.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "Time and check one matrix product.",
                                  {{"size", "320", "rows, columns and depth"},
                                   {"dtype", "fp32", "fp32 or bf16"},
                                   {"warmup", "3", "runs before the timed ones"},
                                   {"iterations", "10", "timed runs"},
                                   {"all", "", "let the library time every kernel that may run it", true}});
    const auto device = example::need(args.open_device(), "device");
    const tilewise::Dispatcher dispatcher(device);
    const long size = args.number("size");
    const example::GemmCase gemm(device, size, size, size, args.text("dtype"));
    example::time_by_hand(device, dispatcher, gemm, args.number("warmup"), args.number("iterations"));
    const std::string json = example::need(dispatcher.bench(gemm.problem, args.has("all")), "bench");
    std::printf("by the library: %s\n", json.c_str());
    return gemm.is_right("the result") ? 0 : 1;
}
