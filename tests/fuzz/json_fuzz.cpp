// SPDX-License-Identifier: MIT
#include "base/json.hpp"
#include "fuzz.hpp"

std::vector<std::string> fuzz_seeds() {
    return {R"({"a": [1, -2.5e3, "x\u00e9\ud83d\ude00\n"], "b": {"c": null, "d": true}, "e": []})",
            R"([[[[{"deep": [false, 0.1, 1e-300, -0.0, 9223372036854775807, 12345678901234567890]}]]]])",
            "{\n \"k\" : \"\\\"\\\\\\/\\b\\f\\n\\r\\t\"\n}\n",
            "\"text\"",
            "-0.5E+3",
            "null"};
}

// What reads prints, and reads back as the same value in every layout. (Bytes that are no UTF-8 are replaced when they
// are printed, so it is the printed values that are compared.)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using tilewise::Json;
    const auto parsed = Json::parse(as_text(data, size));
    if (!parsed) {
        require(parsed.error().message.find("line ") != std::string::npos, "a JSON error names its place");
        return 0;
    }
    for (const int indent : {-1, 2}) {
        const auto again = Json::parse(parsed->dump(indent));
        require(again.ok(), "what was printed reads");
        require(again->dump() == parsed->dump(), "and is the same value");
    }
    return 0;
}
