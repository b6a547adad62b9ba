// SPDX-License-Identifier: MIT
#include "select/dispatcher.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/forwarding_device.hpp"
#include "device/null/null_device.hpp"
#include "measure/record_csv.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

class DispatcherTest : public testing::Test {
protected:
    DispatcherTest()
        : folder_(std::filesystem::temp_directory_path() / ("tilewise-dispatch-" + std::to_string(getpid()))) {
        auto settings = build_settings();
        BuildSettings mine = settings ? *settings : BuildSettings{};
        mine.cache_dir = folder_;
        builder_ = std::make_unique<Builder>(mine);
        device_ = std::move(*make_cpu_device(**host_cpu_arch(embedded_archs()), 1));
        tuning_ = std::make_unique<TuningDatabase>(folder_ + "/tuning.jsonl");
        dispatcher_ = std::make_unique<Dispatcher>(*device_, *builder_, tuning_.get());
    }
    ~DispatcherTest() override { std::filesystem::remove_all(folder_); }

    static Problem problem(std::string_view text) { return *parse_problem(text); }
    // Without that about the spread of times, which a loaded machine adds.
    static std::vector<Note> notes_but_noise(const Plan& plan) {
        std::vector<Note> notes = plan.notes;
        std::erase_if(notes, [](const Note& note) { return note.kind == "noise"; });
        return notes;
    }

    std::string folder_;
    std::unique_ptr<Builder> builder_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<TuningDatabase> tuning_;
    std::unique_ptr<Dispatcher> dispatcher_;
};

constexpr std::int64_t kAmpleBytes = std::int64_t{1} << 20;  // of records
const char* const kSmall = "gemm:m=33,n=65,k=17,dtype=fp32,layout=rcr";

TEST_F(DispatcherTest, TheModelChoosesAndThePlanIsKept) {
    const Problem p = problem(kSmall);
    const auto first = dispatcher_->plan(p);
    ASSERT_TRUE(first.ok()) << first.error().message;
    EXPECT_EQ((*first)->source, PlanSource::rules);
    const auto again = dispatcher_->plan(p);
    EXPECT_EQ(first->get(), again->get());
}

TEST_F(DispatcherTest, MeasuringIsRememberedAndUsedByAuto) {
    const Problem p = problem(kSmall);
    SelectOptions options;
    options.strategy = Strategy::measure;
    options.measure_top = 2;
    const auto measured = dispatcher_->plan(p, options);
    ASSERT_TRUE(measured.ok()) << measured.error().message;
    EXPECT_EQ((*measured)->source, PlanSource::measured);
    // Another process: the file is all it has.
    TuningDatabase reread(tuning_->path());
    Dispatcher other(*device_, *builder_, &reread);
    const auto tuned = other.plan(p);
    ASSERT_TRUE(tuned.ok());
    EXPECT_EQ((*tuned)->source, PlanSource::tuned);
    EXPECT_EQ((*tuned)->kernel->name, (*measured)->kernel->name);
}

TEST_F(DispatcherTest, WhatIsRememberedIsNotMeasuredAgain) {
    const Problem p = problem(kSmall);
    SelectOptions options;
    options.strategy = Strategy::measure;
    options.measure_top = 1;
    ASSERT_TRUE(dispatcher_->plan(p, options).ok());
    TuningRecord record = *tuning_->find(device_->identity(), print_problem(p));
    record.spread = 0.01;
    ASSERT_TRUE(tuning_->add(record).ok());
    TuningDatabase reread(tuning_->path());
    Dispatcher other(*device_, *builder_, &reread);
    EXPECT_EQ((*other.plan(p, options))->source, PlanSource::tuned);
    options.again = true;
    EXPECT_EQ((*other.plan(p, options))->source, PlanSource::measured);
}

TEST_F(DispatcherTest, OnlySoManyProblemsAreKeptReady) {
    constexpr std::size_t kMost = 4;
    Dispatcher small(*device_, *builder_, nullptr, nullptr, kMost);
    const Problem first = problem(kSmall);
    const auto plan = small.plan(first);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    auto held = small.executable(first, **plan);
    ASSERT_TRUE(held.ok()) << held.error().message;
    std::vector<std::weak_ptr<const Executable>> seen;
    for (int m = 40; m < 52; ++m) {
        const Problem other = problem("gemm:m=" + std::to_string(m) + ",n=65,k=17,dtype=fp32,layout=rcr");
        seen.push_back(*small.executable(other, Plan{(*plan)->kernel, PlanSource::named, ""}));
    }
    const auto kept = std::count_if(seen.begin(), seen.end(), [](const auto& one) { return !one.expired(); });
    EXPECT_GE(kept, 1);
    EXPECT_LE(kept, static_cast<std::ptrdiff_t>(kMost));
    // Who holds one may go on running it, though it was forgotten.
    EXPECT_NE(small.executable(first, **plan)->get(), held->get());
    std::vector<float> a(33 * 17, 1), b(65 * 17, 1), c(33 * 65, -1);
    Operands operands;
    operands.a = a.data(), operands.b = b.data(), operands.c = c.data();
    std::vector<float> scratch(static_cast<std::size_t>((*held)->workspace_bytes()) / sizeof(float) + 64);
    operands.workspace = scratch.data();
    ASSERT_TRUE((*held)->launch(operands).ok());
    EXPECT_EQ(c, std::vector<float>(33 * 65, 17));
}

TEST_F(DispatcherTest, WhoWantsNoPaddingGetsAKernelThatNeedsNone) {
    NullDevice gpu(**embedded_archs().find("sm_90a"));
    Dispatcher dispatcher(gpu, *builder_, nullptr);
    const Problem odd = problem("conv_fwd:n=16,g=1,c=142,k=17,in=56x56,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc");
    const auto fastest = dispatcher.plan(odd);
    ASSERT_TRUE(fastest.ok()) << fastest.error().message;
    const auto is_padding = [](const Note& note) { return note.kind == "padding"; };
    EXPECT_EQ(std::ranges::count_if((*fastest)->notes, is_padding), 1);
    SelectOptions strict;
    strict.as_given = true;
    const auto plain = dispatcher.plan(odd, strict);
    ASSERT_TRUE(plain.ok()) << plain.error().message;
    EXPECT_EQ(std::ranges::count_if((*plain)->notes, is_padding), 0);
    EXPECT_NE((*plain)->kernel->name, (*fastest)->kernel->name);
    EXPECT_EQ(dispatcher.plan(odd)->get(), fastest->get()) << "the plan that is kept is the usual one";
}

// Says that a stream is being captured, as a GPU would.
class CapturingDevice final : public ForwardingDevice {
public:
    using ForwardingDevice::ForwardingDevice;
    bool is_capturing(Stream stream) const override { return stream && stream == captured; }
    Stream captured = nullptr;
};

TEST_F(DispatcherTest, NothingIsMeasuredDuringACapture) {
    CapturingDevice device(*device_);
    Dispatcher dispatcher(device, *builder_, tuning_.get());
    const Problem p = problem(kSmall);
    int stream = 0;
    SelectOptions options;
    options.strategy = Strategy::measure;
    options.measure_top = 2;
    options.stream = device.captured = &stream;
    for (int time = 0; time < 2; ++time) {
        const auto ranked = dispatcher.plan(p, options);
        ASSERT_TRUE(ranked.ok()) << ranked.error().message;
        EXPECT_EQ((*ranked)->source, PlanSource::rules);
        EXPECT_EQ((*ranked)->kernel->name, (*dispatcher.plan(p))->kernel->name);
        ASSERT_EQ((*ranked)->notes.size(), 1u);
        EXPECT_EQ((*ranked)->notes[0].kind, "capture");
    }
    EXPECT_TRUE((*dispatcher.plan(p))->notes.empty()) << "who asked for no measuring need not be told";
    device.captured = nullptr;
    EXPECT_EQ((*dispatcher.plan(p, options))->source, PlanSource::measured) << "after the capture it is";
    device.captured = &stream;
    EXPECT_EQ((*dispatcher.plan(p, options))->source, PlanSource::measured)
        << "what was measured before serves the capture";
}

TEST_F(DispatcherTest, ARecordOfOtherCodeOrAnotherDeviceDoesNotCount) {
    const Problem p = problem(kSmall);
    const std::string kernel = (*dispatcher_->plan(p))->kernel->name;
    ASSERT_TRUE(tuning_->add({device_->identity(), print_problem(p), kernel, std::string(64, '0'), 1.0}).ok());
    ASSERT_TRUE(tuning_->add({"another device", print_problem(p), kernel, std::string(64, '0'), 1.0}).ok());
    TuningDatabase reread(tuning_->path());
    Dispatcher other(*device_, *builder_, &reread);
    const auto plan = *other.plan(p);
    EXPECT_EQ(plan->source, PlanSource::rules);
    ASSERT_EQ(plan->notes.size(), 1u);
    EXPECT_EQ(plan->notes[0].kind, "tuning");
}

TEST_F(DispatcherTest, WhatMeasuringCouldNotDoIsNoted) {
    SelectOptions options;
    options.strategy = Strategy::measure;
    options.measure_top = 2;
    TuningDatabase nowhere("/proc/nowhere/tuning.jsonl");
    RecordStore unwritable("/proc/nowhere/records.csv", kAmpleBytes);
    const auto plan = Dispatcher(*device_, *builder_, &nowhere, &unwritable).plan(problem(kSmall), options);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ((*plan)->source, PlanSource::measured);
    const auto notes = notes_but_noise(**plan);
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_EQ(notes[0].kind, "tuning");
    EXPECT_EQ(notes[1].kind, "records");
    for (const Note& note : notes) {
        EXPECT_NE(note.message.find("/proc/nowhere"), std::string::npos) << note.message;
    }

    // The first kernel fails to load.
    class Choosy : public ForwardingDevice {
    public:
        using ForwardingDevice::ForwardingDevice;
        Result<std::shared_ptr<const Code>> load(const BuiltKernel& kernel) override {
            if (loads_++ == 0) return Error{ErrorCode::device, "not this one"};
            return ForwardingDevice::load(kernel);
        }

    private:
        int loads_ = 0;
    };
    Choosy choosy(*device_);
    RecordStore records(folder_ + "/records.csv", kAmpleBytes);
    const auto rest = Dispatcher(choosy, *builder_, nullptr, &records).plan(problem(kSmall), options);
    ASSERT_TRUE(rest.ok()) << rest.error().message;
    const auto failures = notes_but_noise(**rest);
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].kind, "measure");
    EXPECT_NE(failures[0].message.find("not this one"), std::string::npos);

    const auto kept = read_records(records.path());
    ASSERT_TRUE(kept.ok()) << kept.error().message;
    ASSERT_EQ(kept->size(), 2u) << "the failure is a record as well";
    const Record &fastest = kept->front(), &failed = kept->back();
    EXPECT_EQ(fastest.status, RecordStatus::ok);
    EXPECT_EQ(fastest.kernel_name, (*rest)->kernel->name);
    EXPECT_EQ(fastest.problem, kSmall);
    EXPECT_EQ(fastest.device, device_->identity());
    EXPECT_GT(fastest.time_us, 0);
    EXPECT_GT(fastest.samples, 0);
    EXPECT_GT(fastest.tflops, 0);
    EXPECT_EQ(failed.status, RecordStatus::crash);
    EXPECT_EQ(failed.reason, "not this one");
    EXPECT_EQ(failed.samples, 0);
    for (const Record& record : *kept) EXPECT_TRUE(is_digest(record.code_digest)) << record.code_digest;
}

TEST_F(DispatcherTest, KernelsThatCannotBeBuiltAreRecorded) {
    BuildSettings settings = builder_->settings();
    settings.compiler = "/nonexistent/c++";
    Builder without(settings);
    RecordStore records(folder_ + "/records.csv", kAmpleBytes);
    SelectOptions options;
    options.strategy = Strategy::measure;
    options.measure_top = 2;
    EXPECT_FALSE(Dispatcher(*device_, without, nullptr, &records).plan(problem(kSmall), options).ok());
    const auto kept = read_records(records.path());
    ASSERT_TRUE(kept.ok()) << kept.error().message;
    ASSERT_EQ(kept->size(), 2u);
    for (const Record& record : *kept) {
        EXPECT_EQ(record.status, RecordStatus::build_failed);
        EXPECT_NE(record.reason.find("TILEWISE_CXX"), std::string::npos) << record.reason;
        EXPECT_NE(record.repro.find(" --kernel " + record.kernel_name), std::string::npos) << record.repro;
    }
}

TEST_F(DispatcherTest, ATuningFileThatIsNotTrustedIsNoted) {
    ASSERT_TRUE(tuning_->add({"d", "p", "k", "c", 2.0}).ok());
    std::filesystem::permissions(tuning_->path(), std::filesystem::perms(0666));
    TuningDatabase reread(tuning_->path());
    const auto plan = *Dispatcher(*device_, *builder_, &reread).plan(problem(kSmall));
    EXPECT_EQ(plan->source, PlanSource::rules);
    ASSERT_EQ(plan->notes.size(), 1u);
    EXPECT_EQ(plan->notes[0].kind, "tuning");
    EXPECT_NE(plan->notes[0].message.find("chmod go-w"), std::string::npos) << plan->notes[0].message;
}

TEST_F(DispatcherTest, ADamagedTuningFileLosesOnlyItsDamagedLines) {
    ASSERT_TRUE(tuning_->add({"d", "p", "k", "c", 2.0}).ok());
    std::ofstream(tuning_->path(), std::ios::app) << "{\"schema\": 1, \"device\"";
    TuningDatabase second(tuning_->path());
    ASSERT_TRUE(second.add({"d", "q", "k", "c", 3.0}).ok());
    TuningDatabase reread(tuning_->path());
    EXPECT_EQ(reread.size(), 2u);
    EXPECT_EQ(reread.unreadable(), 1u);
    EXPECT_EQ(reread.find("d", "q")->us, 3.0);
}

TEST_F(DispatcherTest, ACallersRankingDecides) {
    const Problem p = problem(kSmall);
    SelectOptions options;
    std::string wanted;
    options.rank = [&](const Problem&, const std::vector<Candidate>& candidates) {
        wanted = candidates.back().kernel->name;
        return std::vector<std::string>{"no such kernel", wanted};
    };
    const auto plan = dispatcher_->plan(p, options);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ((*plan)->kernel->name, wanted);
    EXPECT_EQ((*plan)->source, PlanSource::callback);
}

TEST_F(DispatcherTest, ANamedKernelRunsOrFails) {
    const Problem p = problem(kSmall);
    KernelConfig config = (*dispatcher_->plan(p))->kernel->config;
    EXPECT_TRUE(dispatcher_->named_plan(p, config).ok());
    config.dtype_out = DType::bf16;
    const auto misfit = dispatcher_->named_plan(p, config);
    ASSERT_FALSE(misfit.ok());
    EXPECT_NE(misfit.error().message.find("fit_dtype"), std::string::npos) << misfit.error().message;
    config.tile.m = 0;
    const auto invalid = dispatcher_->named_plan(p, config);
    ASSERT_FALSE(invalid.ok());
    EXPECT_NE(invalid.error().message.find("positive"), std::string::npos) << invalid.error().message;
}

TEST_F(DispatcherTest, ANamedKernelThatNeedsAlignedSizesGetsThemPadded) {
    const Problem p = problem(kSmall);
    KernelConfig config = (*dispatcher_->plan(p))->kernel->config;
    config.pad = {false, false, false};
    const auto plan = dispatcher_->named_plan(p, config);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(plan->source, PlanSource::named);
    ASSERT_EQ(plan->notes.size(), 1u);
    EXPECT_EQ(plan->notes[0].kind, "padding");
    EXPECT_EQ(forbid(plan->notes).error().code, ErrorCode::unsupported);
    const auto executable = dispatcher_->executable(p, *plan);
    ASSERT_TRUE(executable.ok()) << executable.error().message;
    EXPECT_EQ(joined(plan->notes, (*executable)->notes()), plan->notes) << "the plan has foreseen it";

    Problem packed = p;
    packed.packed_b = true;
    EXPECT_FALSE(dispatcher_->named_plan(packed, config).ok());
}

// What there is a compiler for is cached; then there is none.
TEST_F(DispatcherTest, WithoutACompilerAKernelThatCanBeHadIsChosen) {
    const Problem p = problem(kSmall);
    const auto selection = dispatcher_->select(p);
    ASSERT_TRUE(selection.ok());
    const std::size_t count = selection->candidates.size();
    ASSERT_GT(count, 10u);
    const KernelPtr had = selection->candidates[count / 2].kernel;
    ASSERT_TRUE(dispatcher_->executable(p, Plan{had, PlanSource::named, ""}).ok());

    BuildSettings settings = builder_->settings();
    settings.compiler = "/nonexistent/c++";
    Builder without(settings);
    Dispatcher dispatcher(*device_, without, nullptr);
    SelectOptions measure, first_fit;
    measure.strategy = Strategy::measure;
    first_fit.strategy = Strategy::first_fit;
    const auto code_of = [&](const Kernel& kernel) { return code_id(kernel.config); };
    for (const SelectOptions& options : {SelectOptions{}, measure, first_fit}) {
        const auto chosen = dispatcher.select(p, options);
        ASSERT_TRUE(chosen.ok()) << chosen.error().message;
        EXPECT_EQ(code_of(*chosen->plan->kernel), code_of(*had));
        EXPECT_EQ(chosen->candidates.size() + chosen->rejected.size(), count + selection->rejected.size());
        EXPECT_EQ(chosen->rejected.back().why.rule, "obtainable");
        const auto notes = notes_but_noise(*chosen->plan);
        ASSERT_EQ(notes.size(), 1u);
        EXPECT_EQ(notes[0].kind, "compiler");
        EXPECT_TRUE(dispatcher.executable(p, *chosen->plan).ok());
    }
}

TEST_F(DispatcherTest, WithoutACompilerAndKernelsTheBuildSaysWhatToDo) {
    BuildSettings settings = builder_->settings();
    settings.compiler = "/nonexistent/c++";
    settings.cache_dir = folder_ + "/empty";
    Builder without(settings);
    Dispatcher dispatcher(*device_, without, nullptr);
    const Problem p = problem(kSmall);
    const auto plan = dispatcher.plan(p);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ((*plan)->kernel->name, (*dispatcher_->plan(p))->kernel->name);
    const auto executable = dispatcher.executable(p, **plan);
    ASSERT_FALSE(executable.ok());
    EXPECT_EQ(executable.error().code, ErrorCode::toolchain);
    EXPECT_NE(executable.error().message.find("TILEWISE_CXX"), std::string::npos) << executable.error().message;
}

TEST_F(DispatcherTest, ARegistryOfTheCallersIsChosenFromAndItsPlanIsNotKept) {
    const Problem p = problem(kSmall);
    const auto usual = *dispatcher_->plan(p);
    const auto all = *dispatcher_->select(p);
    Registry mine("mine");
    mine.add(*all.candidates.back().kernel);
    SelectOptions options;
    options.registry = &mine;
    const auto plan = dispatcher_->plan(p, options);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ((*plan)->kernel->name, all.candidates.back().kernel->name);
    EXPECT_EQ((*dispatcher_->plan(p))->kernel->name, usual->kernel->name);
    mine.clear();
    const auto none = dispatcher_->plan(p, options);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::unsupported);
}

TEST_F(DispatcherTest, RecordsThatAreLoadedLaterCount) {
    const Problem p = problem(kSmall);
    ASSERT_EQ((*dispatcher_->plan(p))->source, PlanSource::rules);
    const KernelPtr other = dispatcher_->select(p)->candidates.back().kernel;
    const auto digest = digest_of(*build_request(other->config, *device_));
    TuningDatabase elsewhere(folder_ + "/elsewhere.jsonl");
    ASSERT_TRUE(elsewhere.add({device_->identity(), print_problem(p), other->name, *digest, 1.0}).ok());
    const auto loaded = tuning_->load(elsewhere.path());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(*loaded, 1u);
    dispatcher_->forget_plans();
    const auto plan = *dispatcher_->plan(p);
    EXPECT_EQ(plan->source, PlanSource::tuned);
    EXPECT_EQ(plan->kernel->name, other->name);
    EXPECT_FALSE(std::filesystem::exists(tuning_->path())) << "for this process only";

    std::ofstream(elsewhere.path(), std::ios::app) << "nonsense\n";
    const auto damaged = tuning_->load(elsewhere.path());
    ASSERT_FALSE(damaged.ok());
    EXPECT_NE(damaged.error().message.find("line"), std::string::npos) << damaged.error().message;
    EXPECT_FALSE(tuning_->load(folder_ + "/none.jsonl").ok());
}

TEST_F(DispatcherTest, AConvolutionIsPlannedLikeAProduct) {
    const auto plan = dispatcher_->plan(problem("conv_fwd:n=1,c=8,k=8,in=8x8,filter=3x3,dtype=fp32"));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_TRUE((*plan)->kernel->name.starts_with("grouped_conv_fwd_fp32_")) << (*plan)->kernel->name;
}

}  // namespace
}  // namespace tilewise
