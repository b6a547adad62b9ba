// SPDX-License-Identifier: MIT
// Records of measurements as CSV: a text is read whole or refused with its place, and what was read is printed as it is read.
#include "measure/record_csv.hpp"
#include "scratch_folder.hpp"
#include "select/record_store.hpp"

std::vector<std::string> fuzz_seeds() {
    tilewise::Record record;
    record.device = "H200; sm_90a";
    record.reason = "one \"line\",\nand another";
    record.time_us = 12.5;
    record.samples = 11;
    const std::string header = tilewise::record_header() + '\n', line = tilewise::record_to_csv(record) + '\n';
    return {header, header + line, header + line + line.substr(0, 40), "more," + header + "1," + line, "\"\"\n,"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tilewise;
    static const ScratchFolder folder;
    const auto text = as_text(data, size);
    if (const auto records = records_from_csv(text, "fuzz.csv")) {
        for (const Record& record : *records) {
            const auto again = record_from_csv(record_to_csv(record));
            require(again && *again == record, "a record comes back as it was");
        }
    } else {
        require(records.error().message.starts_with("'fuzz.csv', line "), "bad input is named with its place");
    }
    // Whatever a file holds, a record that can be added is the last one, and counted.
    constexpr std::int64_t kLimit = 1 << 16;
    const RecordStore store(folder.write("records.csv", text), kLimit);
    const Record added{};
    const auto before = store.size();
    require(before.ok(), "a file of our own is counted");
    if (store.append({&added, 1})) require(store.size()->bytes <= kLimit, "the limit holds");
    return 0;
}
