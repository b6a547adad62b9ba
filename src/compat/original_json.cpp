// SPDX-License-Identifier: MIT
#include "compat/original_json.hpp"

#include <ctime>
#include <map>
#include <utility>

#include "tilewise/tilewise.h"

namespace tilewise::compat {
namespace {

// Names, words and numbers of the library have no character that JSON would want escaped.
std::string quoted(const std::string& text) { return '"' + text + '"'; }

std::string pair(const char* key, const std::string& json) { return quoted(key) + ": " + json; }

std::string object(const std::vector<std::string>& members) {
    std::string text = "{";
    for (const std::string& member : members) text += (text.size() > 1 ? ", " : "") + member;
    return text + "}";
}

// "128x64x32" as {"m": 128, "n": 64, "k": 32}
std::string shape(const std::string& text) {
    std::vector<std::string> members;
    std::size_t begin = 0;
    for (const char* key : {"m", "n", "k"}) {
        const std::size_t end = text.find('x', begin);
        members.push_back(pair(key, text.substr(begin, end - begin)));
        begin = end == std::string::npos ? text.size() : end + 1;
    }
    return object(members);
}

// The original says of each operand of a GEMM whether it is stored by rows; other layouts are said as they are.
std::string layout(const std::string& text, std::size_t operand) {
    const bool is_gemm = text.size() == 3 && text.find_first_not_of("rc") == std::string::npos;
    if (!is_gemm) return quoted(text);
    return quoted(text[operand] == 'r' ? "row_major" : "col_major");
}

std::string truth(bool value) { return value ? "true" : "false"; }

std::string kernel_json(const std::string& name) {
    const auto field = [&](const char* key) { return field_of(name, key); };
    const auto word = [&](const char* key, const char* from) { return pair(key, quoted(field(from))); };
    const std::string layouts = field("layout"), split_k = field("split_k");
    const bool grouped = field("op") != "gemm";
    std::vector<std::string> signature = {word("dtype_a", "dtype"),
                                          word("dtype_b", "dtype_b"),
                                          word("dtype_c", "dtype_out"),
                                          word("dtype_acc", "dtype_acc"),
                                          pair("layout_a", layout(layouts, 0)),
                                          pair("layout_b", layout(layouts, 1)),
                                          pair("layout_c", layout(layouts, 2)),
                                          pair("transpose_a", "false"),
                                          pair("transpose_b", "false"),
                                          pair("grouped", truth(grouped)),
                                          pair("split_k", split_k),
                                          pair("elementwise_op", quoted("PassThrough")),
                                          pair("num_d_tensors", "0"),
                                          pair("structured_sparsity", "false")};
    if (grouped) signature.push_back(word("op", "op"));
    const std::vector<std::string> algorithm = {pair("tile_shape", shape(field("tile"))),
                                                pair("wave_shape", shape(field("wave"))),
                                                pair("warp_tile_shape", shape(field("warp_tile"))),
                                                word("pipeline", "pipeline"),
                                                word("scheduler", "scheduler"),
                                                word("epilogue", "epilogue"),
                                                pair("double_buffer", truth(field("double_smem_buffer") == "true")),
                                                pair("persistent", truth(field("persistent") == "true")),
                                                pair("preshuffle", truth(field("pipeline") == "preshuffle")),
                                                pair("transpose_c", truth(field("swap_ab") == "true"))};
    return object({pair("name", quoted(name)), pair("identifier", quoted(name)), pair("signature", object(signature)),
                   pair("algorithm", object(algorithm)), word("gfx_arch", "arch")});
}

std::string statistics(const std::vector<std::string>& kernels) {
    constexpr std::pair<const char*, const char*> kKinds[] = {{"by_datatype", "dtype"},
                                                              {"by_pipeline", "pipeline"},
                                                              {"by_scheduler", "scheduler"},
                                                              {"by_layout", "layout"},
                                                              {"by_gfx_arch", "arch"}};
    std::vector<std::string> members;
    for (const auto& [key, field] : kKinds) {
        std::map<std::string, int> counts;
        for (const std::string& kernel : kernels) ++counts[field_of(kernel, field)];
        std::vector<std::string> values;
        values.reserve(counts.size());
        for (const auto& [value, count] : counts) values.push_back(pair(value.c_str(), std::to_string(count)));
        members.push_back(pair(key, object(values)));
    }
    return object(members);
}

std::string timestamp() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text, length};
}

}  // namespace

std::string field_of(const std::string& kernel, const char* field) {
    char* value = nullptr;
    if (tilewise_config_get(kernel.c_str(), field, &value) != TILEWISE_OK) return {};
    std::string text = value;
    tilewise_free(value);
    return text;
}

std::string original_json(const std::string& registry_name, const std::vector<std::string>& kernels) {
    const std::string metadata =
        object({pair("timestamp", quoted(timestamp())), pair("registry_name", quoted(registry_name)),
                pair("total_kernels", std::to_string(kernels.size())), pair("export_version", quoted("1.0.0"))});
    std::string list;
    for (const std::string& kernel : kernels) list += (list.empty() ? "\n" : ",\n") + kernel_json(kernel);
    return object(
        {pair("metadata", metadata), pair("statistics", statistics(kernels)), pair("kernels", "[" + list + "]")});
}

}  // namespace tilewise::compat
