// SPDX-License-Identifier: MIT
// The checker checked: real kernels with one small fault each must not pass. A checker that lets one of them through would
// let the same mistake through in the registry.
#include <algorithm>
#include <set>

#include "device/forwarding_device.hpp"
#include "run/run_testing.hpp"

namespace tilewise {
namespace {

using namespace run_testing;

struct Fault {
    std::string what;
    std::string text, instead;  // in the templates; the text is there once
    std::string problem = "gemm:m=13,n=21,k=9,dtype=fp32,layout=rcr";
};

const std::string kFused = "gemm:m=13,n=21,k=9,dtype=fp32,layout=rcr,epilogue=bias+relu,d=mul";

const Fault kFaults[] = {
    {"the last k is left out", "k < units; ++k", "k < units - 1; ++k"},
    {"the product has fewer bits than fp32", "fma(as_float(a), as_float(b), acc)",
     "fma(as_float(a & 0xffff0000u), as_float(b), acc)"},
    {"alpha is ignored", "v.factor = args.alpha;", "v.factor = 1;"},
    {"C is taken off instead of added", "v += args.beta * read", "v -= args.beta * read",
     "gemm:m=13,n=21,k=9,dtype=fp32,layout=rcr,beta=1"},
    {"C is read although beta is zero", "if (args.beta != 0.0f) v +=", "if (args.beta == args.beta) v +="},
    {"the last column is not written", "j < cols; j += kLanesOf<V>) {\n            finish_vector",
     "j < cols - 1; j += kLanesOf<V>) {\n            finish_vector"},
    {"one column too many is written", "i, j, cols - j);\n        }\n    }\n}",
     "i, j, cols - j + 1);\n        }\n    }\n}"},
    {"relu keeps what it should drop", "select(v < 0, V{}, v)", "select(v > 0, V{}, v)", kFused},
    {"D is added instead of multiplied", "KernelDOp::add ? v + d : v * d", "KernelDOp::add ? v + d : v + d", kFused},
    {"the bias begins one column late", "view.bias_by_col + j * kBytes<Out>",
     "view.bias_by_col + (j + 1) * kBytes<Out>", kFused},
};

// The source with everything it includes in its place, as the preprocessor would leave it.
void append_flat(const std::string& path, std::string_view text, std::set<std::string>& seen, std::string& out) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
        const std::string_view line = text.substr(begin, end - begin);
        begin = end;
        constexpr std::string_view kInclude = "#include \"";
        if (line.starts_with("#pragma once")) continue;
        if (!line.starts_with(kInclude)) {
            out += line;
            continue;
        }
        const std::string name(line.substr(kInclude.size(), line.rfind('"') - kInclude.size()));
        for (const EmbeddedFile& file : embedded_files()) {
            const std::string from_root = "kernels/" + name;
            const std::string beside = (folder / name).lexically_normal().string();
            if (file.path != from_root && file.path != beside) continue;
            if (seen.insert(std::string(file.path)).second) append_flat(std::string(file.path), file.text, seen, out);
        }
    }
}

// Loads another kernel than it is given, as if the template had been written that way.
class OtherCode : public ForwardingDevice {
public:
    OtherCode(Device& device, const BuiltKernel& other) : ForwardingDevice(device), other_(other) {}
    Result<std::shared_ptr<const Code>> load(const BuiltKernel&) override { return ForwardingDevice::load(other_); }

private:
    const BuiltKernel& other_;
};

class BrokenKernelTest : public RunTest {
protected:
    BuildRequest flat_request() const {
        auto request = *build_request(small_kernel().config, *device_);
        std::string flat;
        std::set<std::string> seen;
        append_flat("", request.source, seen, flat);
        request.source = flat;
        return request;
    }
    VerifyReport run_on(const std::string& problem_text, const BuiltKernel& built, Builder& builder) {
        const Problem problem = *parse_problem(problem_text);
        OtherCode device(*device_, built);
        auto ready = Executable::prepare(problem, small_kernel(), device, builder);
        EXPECT_TRUE(ready.ok()) << ready.error().message;
        const auto report = checked_run(problem, std::move(*ready));
        EXPECT_TRUE(report.ok()) << report.error().message;
        return *report;
    }
};

TEST_F(BrokenKernelTest, EveryFaultIsCaught) {
    const BuildRequest right = flat_request();
    std::vector<BuildRequest> requests = {right};
    for (const Fault& fault : kFaults) {
        BuildRequest wrong = right;
        const std::size_t at = wrong.source.find(fault.text);
        ASSERT_NE(at, std::string::npos) << fault.what << ": the templates no longer have: " << fault.text;
        ASSERT_EQ(wrong.source.find(fault.text, at + 1), std::string::npos)
            << fault.what << ": the text is there twice";
        wrong.source.replace(at, fault.text.size(), fault.instead);
        requests.push_back(std::move(wrong));
    }
    Builder builder(settings_);
    const auto built = builder.build_all(requests, 2);
    for (const auto& kernel : built) ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    for (std::size_t i = 0; i < std::size(kFaults); ++i) {
        const VerifyReport as_it_is = run_on(kFaults[i].problem, *built[0], builder);
        EXPECT_TRUE(as_it_is.ok) << kFaults[i].problem << ": " << describe(as_it_is);
        const VerifyReport report = run_on(kFaults[i].problem, *built[i + 1], builder);
        EXPECT_FALSE(report.ok) << kFaults[i].what << " on " << kFaults[i].problem << ": " << describe(report);
    }
}

}  // namespace
}  // namespace tilewise
