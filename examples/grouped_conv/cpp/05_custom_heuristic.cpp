// SPDX-License-Identifier: MIT
// A ranking of one's own in place of the library's model, for each direction: here by the name of the pipeline.
#include "conv_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "Choose convolution kernels by a function of one's own.",
                                  {{"pipeline", "", "the pipeline that is wanted; empty: that of the last candidate"}});
    const auto device = example::need(args.open_device(), "device");
    const auto pipeline_of = [](const std::string& kernel) {
        return *example::need(tilewise::KernelConfig::parse(kernel), "config").get("pipeline");
    };
    tilewise::Dispatcher dispatcher(device);
    dispatcher.set_heuristic([&](const tilewise::Problem&, const std::vector<tilewise::Candidate>& candidates) {
        const std::string& asked = args.text("pipeline");
        const std::string wanted = asked.empty() ? pipeline_of(candidates.back().kernel) : asked;
        std::vector<std::string> names;
        for (const auto& candidate : candidates) {
            if (pipeline_of(candidate.kernel) == wanted) names.push_back(candidate.kernel);
        }
        return names;
    });
    example::ConvShape shape;
    shape.n = 2, shape.g = 2, shape.c = 16, shape.k = 16;
    shape.in = {1, 10, 10}, shape.filter = {1, 3, 3}, shape.pad = {0, 1, 1};
    bool right = true;
    for (const tilewise::Direction direction : example::kDirections) {
        const example::ConvCase conv(device, shape, direction);
        const auto plan = example::need(dispatcher.select(conv.problem), "select");
        right = right && plan.source() == "callback";
        example::need(dispatcher.run(conv.problem, conv.operands()), "run");
        right = conv.is_right(plan.kernel()) && right;
    }
    return right ? 0 : 1;
}
