// SPDX-License-Identifier: MIT
// Rules about pipelines: which the arch has for the operation, with which scheduler, buffers and stages.
#include <algorithm>

#include "config/geometry.hpp"
#include "config/rule_groups.hpp"

namespace tilewise {
namespace {

bool has_pipeline(const ArchSpec& arch, Pipeline pipeline, Op op) {
    const PipelineSpec& spec = arch.pipeline(pipeline);
    return spec.supported && spec.ops[static_cast<std::size_t>(op)];
}

std::string pipelines_of(const ArchSpec& arch, Op op) {
    std::string text;
    for (std::size_t i = 0; i < kPipelineCount; ++i) {
        const auto pipeline = static_cast<Pipeline>(i);
        if (has_pipeline(arch, pipeline, op)) text += (text.empty() ? "" : ", ") + std::string(name_of(pipeline));
    }
    return text;
}

bool no_pipeline(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return !has_pipeline(arch, c.pipeline, c.op) &&
           refuse(out, TILEWISE_TEXT("{} for {}", name_of(c.pipeline), name_of(c.op)),
                  TILEWISE_TEXT("one of {}", pipelines_of(arch, c.op)));
}

void correct_pipeline(KernelConfig& c, const ArchSpec& arch) {
    // compv3 is the plain compute pipeline that almost every arch has; failing that, the first there is.
    if (has_pipeline(arch, Pipeline::compv3, c.op)) {
        c.pipeline = Pipeline::compv3;
        return;
    }
    for (std::size_t i = 0; i < kPipelineCount; ++i) {
        if (has_pipeline(arch, static_cast<Pipeline>(i), c.op)) {
            c.pipeline = static_cast<Pipeline>(i);
            return;
        }
    }
}

// Whether any pipeline of the arch orders waves against each other.
bool has_interwave(const ArchSpec& arch) {
    for (std::size_t i = 0; i < kPipelineCount; ++i) {
        const PipelineSpec& spec = arch.pipeline(static_cast<Pipeline>(i));
        if (spec.supported && spec.schedulers[static_cast<std::size_t>(Scheduler::interwave)]) return true;
    }
    return false;
}

bool needless_interwave(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return c.scheduler == Scheduler::interwave && !has_interwave(arch) &&
           refuse(out, TILEWISE_TEXT("interwave on {}", arch.name),
                  TILEWISE_TEXT("intrawave: {}",
                                arch.is_gpu()
                                    ? "in every cycle the hardware issues from a warp that is ready, so warps "
                                      "take turns by themselves, and barriers that order them only make them wait"
                                    : "one thread computes all the waves of a tile, so none waits for another"));
}

void correct_interwave_away(KernelConfig& c, const ArchSpec&) { c.scheduler = Scheduler::intrawave; }

bool no_scheduler(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const PipelineSpec& spec = arch.pipeline(c.pipeline);
    if (!spec.supported) return false;                       // rule pipeline says so
    if (needless_interwave(c, arch, nullptr)) return false;  // rule interwave does
    return !spec.schedulers[static_cast<std::size_t>(c.scheduler)] &&
           refuse(out, TILEWISE_TEXT("{} with {}", name_of(c.scheduler), name_of(c.pipeline)), [&] {
               std::string text = "one of ";
               for (std::size_t i = 0; i < kSchedulerCount; ++i) {
                   if (spec.schedulers[i]) text += std::string(name_of(static_cast<Scheduler>(i))) + " ";
               }
               text.pop_back();
               return text;
           });
}

void correct_scheduler(KernelConfig& c, const ArchSpec& arch) {
    for (std::size_t i = 0; i < kSchedulerCount; ++i) {
        if (arch.pipeline(c.pipeline).schedulers[i]) {
            c.scheduler = static_cast<Scheduler>(i);
            return;
        }
    }
}

bool wrong_buffers(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const Buffering buffering = arch.pipeline(c.pipeline).buffering;
    if (buffering == Buffering::either) return false;
    const bool need = buffering == Buffering::twofold;
    return c.double_smem_buffer != need &&
           refuse(out, TILEWISE_TEXT("{} with double_smem_buffer={}", name_of(c.pipeline), c.double_smem_buffer),
                  TILEWISE_TEXT("double_smem_buffer={}", need));
}

void correct_buffers(KernelConfig& c, const ArchSpec& arch) {
    c.double_smem_buffer = arch.pipeline(c.pipeline).buffering == Buffering::twofold;
}

bool wrong_stages(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const PipelineSpec& spec = arch.pipeline(c.pipeline);
    if (!spec.supported) return false;
    return (c.stages < spec.min_stages || c.stages > spec.max_stages) &&
           refuse(out, TILEWISE_TEXT("{} stages of {}", c.stages, name_of(c.pipeline)),
                  TILEWISE_TEXT("{} to {}", spec.min_stages, spec.max_stages));
}

void correct_stages(KernelConfig& c, const ArchSpec& arch) {
    const PipelineSpec& spec = arch.pipeline(c.pipeline);
    c.stages = std::clamp(c.stages, spec.min_stages, spec.max_stages);
}

bool wrong_producers(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const bool need = arch.pipeline(c.pipeline).producers;
    const bool right = need ? c.producer_waves >= 1 : c.producer_waves == 0;
    return !right && refuse(out, TILEWISE_TEXT("{} producer waves in {}", c.producer_waves, name_of(c.pipeline)),
                            TILEWISE_TEXT("{}", need ? "1 or more" : "0"));
}

void correct_producers(KernelConfig& c, const ArchSpec& arch) {
    c.producer_waves = arch.pipeline(c.pipeline).producers ? 1 : 0;
}

bool preshuffle_layout(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.pipeline == Pipeline::preshuffle && c.layout != Layout::rcr && c.layout != Layout::any &&
           refuse(out, TILEWISE_TEXT("layout {}", name_of(c.layout)), TILEWISE_TEXT("rcr or any"));
}

bool no_epilogue(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return !arch.epilogues[static_cast<std::size_t>(c.epilogue)] &&
           refuse(out, TILEWISE_TEXT("epilogue {}", name_of(c.epilogue)), TILEWISE_TEXT("one that {} has", arch.name));
}

void correct_epilogue(KernelConfig& c, const ArchSpec& arch) {
    c.epilogue = arch.epilogues[0] ? Epilogue::direct : Epilogue::cshuffle;
}

bool copies_asynchronously(Pipeline pipeline) {
    return pipeline == Pipeline::mem || pipeline == Pipeline::comp_async || pipeline == Pipeline::basic_async_v1;
}

// Where threads gather: what reads a patch at a time, or leaves it to the copy engine, is another matter.
Gather gather_of(const KernelConfig& c) { return copies_asynchronously(c.pipeline) ? Gather::async : Gather::plain; }

bool wrong_gather(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const bool by_threads = c.gather == Gather::plain || c.gather == Gather::async;
    const bool applies = is_conv(c.op) && by_threads && !has_wide_waves(c, arch) &&
                         c.specialization != Specialization::depthwise && arch.has_option("gather", c.op);
    return applies && c.gather != gather_of(c) &&
           refuse(out, TILEWISE_TEXT("gather {} with {}", name_of(c.gather), name_of(c.pipeline)),
                  TILEWISE_TEXT("{}", name_of(gather_of(c))));
}

void correct_gather(KernelConfig& c, const ArchSpec&) { c.gather = gather_of(c); }

constexpr ConfigRule kPipelineRules[] = {
    {"pipeline", "the arch file lists the pipelines it has for each operation", no_pipeline, correct_pipeline},
    {"interwave",
     "waves are ordered against each other only where neither the hardware nor a single thread does it already",
     needless_interwave, correct_interwave_away},
    {"scheduler", "a pipeline works with the schedulers the arch file gives it", no_scheduler, correct_scheduler},
    {"double_buffer", "some pipelines fill one buffer while they read the other, some have only one", wrong_buffers,
     correct_buffers},
    {"stages", "only a ring of asynchronous copies has stages, within its bounds", wrong_stages, correct_stages},
    {"producers", "warp-specialised pipelines have waves that only load; the others have none", wrong_producers,
     correct_producers},
    {"gather", "threads gather as their pipeline copies: asynchronously or through registers", wrong_gather,
     correct_gather},
    {"preshuffle_layout", "B is shuffled from its K-contiguous form", preshuffle_layout},
    {"epilogue", "the arch file lists the epilogues it has", no_epilogue, correct_epilogue},
};

}  // namespace

std::span<const ConfigRule> pipeline_rules() { return kPipelineRules; }

}  // namespace tilewise
