// SPDX-License-Identifier: MIT
#include "config/arch_catalog.hpp"
#include "config/rule_set.hpp"
#include "config/workspace.hpp"
#include "family/may_run.hpp"
#include "fuzz.hpp"
#include "problem/empty_problem.hpp"
#include "problem/problem_text.hpp"

std::vector<std::string> fuzz_seeds() {
    return {
        "gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr",
        "gemm:m=1,n=7,k=3,dtype=fp8,b=bf8,out=fp32,layout=ccr,batch=8,lda=9,batch_stride_a=0,batch_stride_c=64,"
        "epilogue=bias+gelu,d=add+mul,beta=1,scale=row,math=fast,align=32,deterministic=1,workspace=64M",
        "conv_fwd:n=64,g=2,c=96,k=96,in=56x56,filter=3x3,stride=1x1,pad=1x1,dilation=1x1,dtype=bf16,layout=nhwgc",
        "conv_bwd_data:n=2,g=4,c=8,k=16,in=9x8x7,filter=3x2x1,stride=2,pad=1:0x2:1x0,dilation=2x1x1,dtype=fp32,math="
        "tf32x3",
        "conv_bwd_weight:n=1,c=4,k=4,in=100,filter=5,dtype=fp16,layout=ngcw,workspace=0",
        "conv_fwd:n=1,c=1,k=1,in=140737488355328,filter=16777216,dtype=int8",
        R"({"op": "gemm", "m": 64, "n": 64, "k": 64, "dtype": "fp32", "beta": true, "epilogue": "bias"})",
        R"({"op": "conv_fwd", "n": 1, "g": 1, "c": 8, "k": 8, "in": "8x8", "filter": 3, "dtype": "int8"})",
    };
}

namespace {

using namespace tilewise;

// One kernel of each operation, to ask whether it fits: whatever a problem says, the question has an answer.
const std::vector<KernelConfig>& some_kernels(const ArchSpec& arch) {
    static const std::vector<KernelConfig> kernels = [&] {
        std::vector<KernelConfig> list;
        for (const Op op : kAllOps) {
            const auto tiny = expand(arch, op, RuleSet::tiny);
            require(tiny.ok(), "rule sets expand");
            for (std::size_t i = 0; i < tiny->size(); i += 9) list.push_back((*tiny)[i]);
        }
        return list;
    }();
    return kernels;
}

void check(const Problem& problem) {
    require(!check_problem(problem), "what was parsed is possible");
    const auto again = parse_problem(print_problem(problem));
    require(again.ok() && *again == problem, "text reads back as the same problem");
    const auto from_json = problem_from_json(problem_to_json(problem));
    require(from_json.ok() && *from_json == problem, "JSON reads back as the same problem");
    require(is_empty(problem) || (flops(problem) > 0 && bytes_moved(problem) > 0), "there is something to do");
    static const auto archs = ArchCatalog::embedded();
    require(archs.ok(), "embedded archs read");
    const ArchSpec& arch = **archs->find("cpu-avx2");
    const ProblemView view(problem);
    for (const KernelConfig& config : some_kernels(arch)) {
        Rejected why;
        require(may_run(view, config, arch) == may_run(view, config, arch, &why), "one answer");
        require(workspace_bytes(view, config, arch) >= 0, "no negative memory");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = as_text(data, size);
    if (const auto problem = parse_problem(text)) check(*problem);
    if (const auto json = Json::parse(text)) {
        if (const auto problem = problem_from_json(*json)) check(*problem);
    }
    return 0;
}
