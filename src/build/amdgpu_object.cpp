// SPDX-License-Identifier: MIT
#include "build/amdgpu_object.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "build/message_pack.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {
namespace {

// EF_AMDGPU_MACH: the lowest byte of the flags. LLVM's AMDGPU usage guide lists the numbers.
struct AmdChip {
    std::string_view arch;
    unsigned number;
};
constexpr AmdChip kAmdChips[] = {{"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx950", 0x4f}};
constexpr unsigned kChipMask = 0xff;
constexpr std::string_view kDescriptor = "tilewise_kernel.kd";
constexpr Elf64_Word kMetadataNote = 32;  // NT_AMDGPU_METADATA
constexpr std::string_view kNoteOwner("AMDGPU\0", 7);

std::string chip_name(unsigned number) {
    for (const AmdChip& chip : kAmdChips) {
        if (chip.number == number) return std::string(chip.arch);
    }
    return fmt::format("another chip (number {:#x} in its flags)", number);
}

// A part of the file; nothing where it does not lie inside.
std::optional<std::string_view> part_of(std::string_view file, std::size_t at, std::size_t size) {
    if (at > file.size() || size > file.size() - at) return std::nullopt;
    return file.substr(at, size);
}

template <class T>
std::optional<T> read_at(std::string_view file, std::size_t at) {
    const auto bytes = part_of(file, at, sizeof(T));
    if (!bytes) return std::nullopt;
    T value;
    std::memcpy(&value, bytes->data(), sizeof value);
    return value;
}

std::optional<Elf64_Ehdr> header_of(std::string_view file) {
    auto header = read_at<Elf64_Ehdr>(file, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != kAmdGpuMachine ||
        header->e_shentsize != sizeof(Elf64_Shdr) ||
        !part_of(file, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr))) {
        return std::nullopt;
    }
    return header;
}

// Calls f with every section of a type, until it says that it is done.
template <class F>
void each_section(std::string_view file, const Elf64_Ehdr& header, Elf64_Word type, F&& f) {
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
        const auto section = read_at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
        if (!section) return;
        if (section->sh_type == type && f(*section)) return;
    }
}

bool has_symbol(std::string_view file, const Elf64_Ehdr& header, std::string_view name) {
    bool found = false;
    each_section(file, header, SHT_DYNSYM, [&](const Elf64_Shdr& symbols) {
        const auto strings =
            read_at<Elf64_Shdr>(file, header.e_shoff + std::size_t{symbols.sh_link} * sizeof(Elf64_Shdr));
        const auto text = strings ? part_of(file, strings->sh_offset, strings->sh_size) : std::nullopt;
        for (std::size_t at = 0; text && at < symbols.sh_size && !found; at += sizeof(Elf64_Sym)) {
            const auto symbol = read_at<Elf64_Sym>(file, symbols.sh_offset + at);
            if (!symbol) break;
            const auto word = part_of(*text, symbol->st_name, name.size() + 1);
            found = word && word->starts_with(name) && word->back() == '\0';
        }
        return found;
    });
    return found;
}

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

std::optional<std::string_view> metadata_of(std::string_view file) {
    const auto header = header_of(file);
    std::optional<std::string_view> found;
    if (!header) return found;
    each_section(file, *header, SHT_NOTE, [&](const Elf64_Shdr& section) {
        const auto notes = part_of(file, section.sh_offset, section.sh_size);
        std::size_t at = 0;
        while (notes && !found) {
            const auto note = read_at<Elf64_Nhdr>(*notes, at);
            if (!note) break;
            const std::size_t name = at + sizeof(Elf64_Nhdr), text = name + padded(note->n_namesz);
            const auto owner = part_of(*notes, name, note->n_namesz), body = part_of(*notes, text, note->n_descsz);
            if (!owner || !body) break;
            if (note->n_type == kMetadataNote && *owner == kNoteOwner) found = body;
            at = text + padded(note->n_descsz);
        }
        return found.has_value();
    });
    return found;
}

std::int64_t number_of(const Json& kernel, std::string_view key) {
    const Json* value = kernel.find(key);
    return value && value->integer() ? *value->integer() : 0;
}

}  // namespace

Status check_amdgpu_object(std::string_view file, std::string_view arch) {
    const auto header = header_of(file);
    if (!header) return toolchain_error("it is no code object of an AMD GPU");
    const std::string chip = chip_name(header->e_flags & kChipMask);
    if (chip != arch) return toolchain_error(fmt::format("it is a code object for {}, not for {}", chip, arch));
    if (!has_symbol(file, *header, kDescriptor)) {
        return toolchain_error(fmt::format("it has no symbol {}", kDescriptor));
    }
    return {};
}

Result<Json> amdgpu_kernels(std::string_view file) {
    const auto metadata = metadata_of(file);
    if (!metadata) return toolchain_error("the code object has no metadata");
    const auto json = read_message_pack(*metadata);
    if (!json) return json.error();
    const Json* const kernels = json->find("amdhsa.kernels");
    if (!kernels || !kernels->array() || kernels->array()->empty()) {
        return toolchain_error("the metadata of the code object names no kernel");
    }
    return *kernels;
}

Result<KernelResources> amdgpu_resources(std::string_view file) {
    const auto kernels = amdgpu_kernels(file);
    if (!kernels) return kernels.error();
    KernelResources most;
    for (const Json& kernel : *kernels->array()) {
        const auto at_least = [&](std::int64_t& value, std::int64_t other) { value = std::max(value, other); };
        at_least(most.registers, number_of(kernel, ".vgpr_count"));  // those of accumulators among them
        at_least(most.shared_bytes, number_of(kernel, ".group_segment_fixed_size"));
        at_least(most.local_bytes, number_of(kernel, ".private_segment_fixed_size"));
        at_least(most.spilled_registers,
                 number_of(kernel, ".vgpr_spill_count") + number_of(kernel, ".sgpr_spill_count"));
    }
    return most;
}

}  // namespace tilewise
