// SPDX-License-Identifier: MIT
#include "family/cuda/patch_fit.hpp"

#include "config/geometry.hpp"
#include "config/rule_groups.hpp"
#include "family/cuda/patch_tile.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {

bool refuses_patch(const Problem& p, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const KernelConv conv = kernel_conv(p);
    if (refuses_patch_reach(conv, out)) return true;
    const PatchConvKernel kernel = patch_conv_kernel(c);
    const std::int64_t chunks =
        (kernel.backward_data ? conv.k : conv.c) * kernel.merge * kernel.element_bytes / kPatchChunkBytes;
    if (chunks > kPatchMostChunks) {
        return refuse(out, TILEWISE_TEXT("{} chunks of channels", chunks),
                      TILEWISE_TEXT("at most {}: merge fewer groups", kPatchMostChunks));
    }
    const int groups = patch_product_groups(conv, kernel);
    if (groups > kernel.merge) {
        return refuse(out, TILEWISE_TEXT("{} groups of {} to {} channels", kernel.merge, conv.c, conv.k),
                      TILEWISE_TEXT("whole chunks of {} bytes: merge more groups", kPatchChunkBytes));
    }
    const bool is_wide = access_bytes(c, 1) == kPatchChunkBytes;
    if (is_wide && groups > 1) {
        return refuse(out,
                      TILEWISE_TEXT("weights in chunks of {} bytes for {} groups at once", kPatchChunkBytes, groups),
                      TILEWISE_TEXT("a narrower vector_b"));
    }
    const std::int64_t columns = (kernel.backward_data ? conv.c : conv.k) * groups;
    if (!is_wide && columns > kernel.columns) {
        return refuse(out, TILEWISE_TEXT("{} columns of {} groups at once", columns, groups),
                      TILEWISE_TEXT("at most {} for each of the tile's waves", kernel.columns));
    }
    if (shares_patch_rows(c) && (conv.stride[1] != 1 || conv.stride[2] != 1 || conv.dilation[1] != 1)) {
        return refuse(out, TILEWISE_TEXT("rows of pixels shared by taps, with a stride or dilation"),
                      TILEWISE_TEXT("stride 1 and dilation 1, or specialization none"));
    }
    const PatchAxes axes = patch_axes(conv, kernel.backward_data);
    const std::int64_t classes = std::int64_t{axes.axis[0].classes} * axes.axis[1].classes * axes.axis[2].classes;
    if (classes > kPatchMostClasses) {
        return refuse(out, TILEWISE_TEXT("strides of {} positions", classes),
                      TILEWISE_TEXT("at most {}", kPatchMostClasses));
    }
    if (kernel.boxes && (!is_patch_box_line(to_int(chunks)) || axes.axis[2].in_step > kPatchMostBoxStep)) {
        return refuse(
            out,
            TILEWISE_TEXT("patches by the copy engine: {} chunks of channels, stride {}", chunks, axes.axis[2].in_step),
            TILEWISE_TEXT("2, 4, 8 or an odd number of chunks, and a stride of at most {}", kPatchMostBoxStep));
    }
    // Every column has all taps of all channels.
    const std::int64_t weights = product(p.conv.filter) * chunks * kPatchMatrix * kernel.element_bytes,
                       shared = block_room_bytes(c, arch);
    return weights * kernel.columns > shared &&
           refuse(out, TILEWISE_TEXT("weights of {} bytes for each of {} columns", weights, kernel.columns),
                  TILEWISE_TEXT("at most {} bytes of shared memory", shared));
}

}  // namespace tilewise
