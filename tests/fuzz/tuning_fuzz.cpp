// SPDX-License-Identifier: MIT
// Tuning records, one to a line: what cannot be read is passed over, or refused where a file was named.
#include "scratch_folder.hpp"
#include "select/tuning_database.hpp"

namespace {

constexpr const char* kRecord =
    R"({"schema":1,"device":"H200; sm_90a","problem":"gemm:m=64,n=64,k=64,dtype=bf16,layout=rcr",)"
    R"("kernel":"gemm_bf16@sm_90a","code_digest":"0123456789abcdef","us":12.5})";
constexpr const char* kOther =
    R"({"schema":1,"device":"","problem":"\u0000\n","kernel":"x","code_digest":"","us":1e-300})";

}  // namespace

std::vector<std::string> fuzz_seeds() {
    const std::string record(kRecord), other(kOther);
    return {record, record + "\n" + other + "\n", "\n" + record + "\n\n" + record.substr(0, 60) + "\n" + other,
            "{}\n[]\n1"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tilewise;
    static const ScratchFolder folder;
    const std::string path = folder.write("tuning.jsonl", as_text(data, size));
    TuningDatabase database(path), loaded(folder.path() + "/none.jsonl");
    const std::size_t records = database.size();
    const auto taken = loaded.load(path);
    require(taken.ok() == (database.unreadable() == 0), "a file that was named is read whole or refused");
    require(loaded.size() == (taken ? records : 0), "with the same records");
    // The next process finds a record that is added behind it, whatever the file ends with.
    const TuningRecord added{"a \"device\"", "a\nproblem", "kernel", "digest", 2.5};
    require(database.add(added).ok(), "a record can be added");
    TuningDatabase next(path);
    require(next.find(added.device, added.problem) == added, "and is found");
    return 0;
}
