// SPDX-License-Identifier: MIT
#include "family/work_text.hpp"

#include <fmt/core.h>

#include <set>

#include "config/price_names.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kFormNames[] = {"count", "price",   "sum",      "product",  "quotient",
                                           "power", "longest", "shortest", "soft_max", "overlap"};
std::string_view form_name(WorkForm form) { return kFormNames[static_cast<std::size_t>(form)]; }

// How strongly a form holds its operands together: a weaker one within a stronger one needs parentheses.
int strength(WorkForm form) {
    switch (form) {
        case WorkForm::sum: return 1;
        case WorkForm::product:
        case WorkForm::quotient: return 2;
        case WorkForm::power: return 3;
        default: return 4;
    }
}

class WorkPrinter {
public:
    WorkPrinter(const Work& work, const ArchSpec& arch) : work_(work), arch_(arch) { evaluate(work, values_); }

    std::vector<WorkLine> lines() {
        std::vector<WorkLine> lines;
        if (!work_.nodes.empty()) add(lines, work_.nodes.size() - 1, "time", 0);
        return lines;
    }

    Json json(std::size_t at) const {
        const WorkNode& node = work_.nodes[at];
        if (node.form == WorkForm::price) {
            return Json::object({{"price", price_name(arch_, node.price)}, {"value", *node.price}});
        }
        Json json{Json::Object{}};
        if (!node.name.empty()) json.set("name", node.name);
        if (node.form == WorkForm::count) {
            json.set("count", node.count);
            return json;
        }
        json.set("form", form_name(node.form));
        json.set("value", values_[at]);
        Json::Array of;
        for (std::size_t i = 0; i < node.operand_count; ++i) of.push_back(this->json(node.operands[i]));
        json.set("of", Json(std::move(of)));
        return json;
    }

private:
    bool has_line(std::size_t at) const { return !work_.nodes[at].name.empty() && work_.nodes[at].operand_count > 0; }

    void add(std::vector<WorkLine>& lines, std::size_t at, std::string_view name, int depth) {
        lines.push_back({std::string(name), values_[at], inside(at), depth});
        add_parts(lines, at, depth + 1);
    }
    void add_parts(std::vector<WorkLine>& lines, std::size_t at, int depth) {
        const WorkNode& node = work_.nodes[at];
        for (std::size_t i = 0; i < node.operand_count; ++i) {
            const std::size_t operand = node.operands[i];
            if (values_[operand] == 0 || (has_line(operand) && !told_.insert(operand).second)) continue;
            if (has_line(operand)) {
                add(lines, operand, work_.nodes[operand].name, depth);
            } else {
                add_parts(lines, operand, depth);
            }
        }
    }

    bool is_plain(std::size_t at, double count) const {
        const WorkNode& node = work_.nodes[told_part(at)];
        return node.form == WorkForm::count && node.name.empty() && node.count == count;
    }
    // The operand that is all there is to a node: the others of a sum are 0, or the other of a product is 1. Else the node itself.
    std::size_t only_part(std::size_t at) const {
        const WorkNode& node = work_.nodes[at];
        const auto operand = [&](std::size_t i) { return std::size_t{node.operands[i]}; };
        if (node.form == WorkForm::product && is_plain(operand(0), 1)) return operand(1);
        const bool is_scaled = node.form == WorkForm::product || node.form == WorkForm::quotient;
        if (is_scaled && is_plain(operand(1), 1)) return operand(0);
        if (node.form != WorkForm::sum) return at;
        std::size_t part = at;
        for (std::size_t i = 0; i < node.operand_count; ++i) {
            if (values_[operand(i)] == 0) continue;
            if (part != at) return at;
            part = operand(i);
        }
        return part;
    }
    // A node as a formula shows it.
    std::size_t told_part(std::size_t at) const {
        while (!has_line(at) && only_part(at) != at) at = only_part(at);
        return at;
    }
    // -1 times something: what a difference takes away.
    bool is_negative(std::size_t at) const {
        const WorkNode& node = work_.nodes[at];
        return node.form == WorkForm::product && node.name.empty() && is_plain(node.operands[0], -1);
    }

    // A part within a formula: by its name, where it has a line of its own.
    std::string text(std::size_t at, int least_strength) const {
        at = told_part(at);
        const WorkNode& node = work_.nodes[at];
        if (has_line(at)) return std::string(node.name);
        if (node.form == WorkForm::price) return fmt::format("{} {:.4g}", price_name(arch_, node.price), *node.price);
        if (node.form == WorkForm::count) {
            return node.name.empty() ? fmt::format("{:.6g}", node.count)
                                     : fmt::format("{} {:.6g}", node.name, node.count);
        }
        return strength(node.form) < least_strength ? fmt::format("({})", inside(at)) : inside(at);
    }

    std::string inside(std::size_t at) const {
        const WorkNode& node = work_.nodes[at];
        if (node.operand_count == 0) return text(at, 0);
        if (only_part(at) != at) return text(only_part(at), 0);
        const int own = strength(node.form);
        switch (node.form) {
            case WorkForm::sum: return joined(node, 0, " + ", own);
            case WorkForm::product: return joined(node, 0, " * ", own);
            case WorkForm::quotient:
                return fmt::format("{} / {}", text(node.operands[0], own), text(node.operands[1], own + 1));
            case WorkForm::power: return fmt::format("{} ^ {}", text(node.operands[0], 4), text(node.operands[1], 4));
            case WorkForm::soft_max:
            case WorkForm::overlap:
                return fmt::format("{}({}; {})", form_name(node.form), text(node.operands[0], 0),
                                   joined(node, 1, ", ", 0));
            default: return fmt::format("{}({})", form_name(node.form), joined(node, 0, ", ", 0));
        }
    }
    // Parts of a sum that are 0 are not told.
    std::string joined(const WorkNode& node, std::size_t first, std::string_view between, int least_strength) const {
        std::string all;
        for (std::size_t i = first; i < node.operand_count; ++i) {
            const std::size_t operand = node.operands[i];
            if (node.form == WorkForm::sum && values_[operand] == 0) continue;
            if (node.form == WorkForm::sum && !all.empty() && is_negative(operand)) {
                all += fmt::format(" - {}", text(work_.nodes[operand].operands[1], strength(WorkForm::product)));
                continue;
            }
            all += fmt::format("{}{}", all.empty() ? "" : between, text(node.operands[i], least_strength));
        }
        return all.empty() ? "0" : all;
    }

    const Work& work_;
    const ArchSpec& arch_;
    std::vector<double> values_;
    std::set<std::size_t> told_;  // nodes that have their line
};

}  // namespace

std::vector<WorkLine> work_lines(const Work& work, const ArchSpec& arch) { return WorkPrinter(work, arch).lines(); }

Json work_to_json(const Work& work, const ArchSpec& arch) {
    return work.nodes.empty() ? Json() : WorkPrinter(work, arch).json(work.nodes.size() - 1);
}

}  // namespace tilewise
