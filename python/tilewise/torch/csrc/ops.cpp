// SPDX-License-Identifier: MIT
// The C++ ops of tilewise.torch: the kernels of the ops that _schema.py defines, for tensors of the CPU and of CUDA, and their
// gradients. _cpp.py compiles this file once for each torch, loads it and calls tilewise_torch_start.
#include <torch/library.h>

#include <exception>
#include <string>

#include "autograd.hpp"
#include "conv.hpp"
#include "gemm.hpp"
#include "quick.hpp"

namespace tilewise_torch {
namespace {

void add_kernels(torch::Library& to) {
    to.impl("gemm", TORCH_FN(gemm));
    to.impl("linear", TORCH_FN(linear));
    to.impl("conv", TORCH_FN(conv));
    to.impl("conv_backward_data", TORCH_FN(conv_backward_data));
    to.impl("conv_backward_weight", TORCH_FN(conv_backward_weight));
}

void add_gradients(torch::Library& to) {
    to.impl("gemm", TORCH_FN(gemm_with_gradient));
    to.impl("linear", TORCH_FN(linear_with_gradient));
    to.impl("conv", TORCH_FN(conv_with_gradient));
    to.impl("conv_backward_data", TORCH_FN(data_with_gradient));
    to.impl("conv_backward_weight", TORCH_FN(weight_with_gradient));
}

void add_quick_ways(torch::Library& to) {
    to.def("_linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor", TORCH_FN(quick_linear));
    to.def("_conv(Tensor x, Tensor w, Tensor? bias, int geometry) -> Tensor", TORCH_FN(KeptGeometries::conv));
}

// They stay as long as the process: graphs and other threads may hold on to them.
torch::Library& kernels_for(c10::DispatchKey key) {
    return *new torch::Library(torch::Library::IMPL, "tilewise", key, __FILE__, __LINE__);
}

}  // namespace
}  // namespace tilewise_torch

extern "C" {

// Registers the ops. `libtilewise` is the handle of the loaded library. NULL, or what went wrong, valid until the next call.
__attribute__((visibility("default"))) const char* tilewise_torch_start(void* libtilewise,
                                                                        tilewise_torch::ContextOf context_of) {
    static std::string failure;
    try {
        tilewise_torch::load_library(libtilewise, context_of);
        tilewise_torch::PlanTable::start_anew_after_fork();
        for (const auto key : {c10::DispatchKey::CPU, c10::DispatchKey::CUDA}) {
            tilewise_torch::add_kernels(tilewise_torch::kernels_for(key));
        }
        for (const auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutogradCUDA}) {
            tilewise_torch::add_gradients(tilewise_torch::kernels_for(key));
        }
        tilewise_torch::add_quick_ways(
            *new torch::Library(torch::Library::FRAGMENT, "tilewise", std::nullopt, __FILE__, __LINE__));
        return nullptr;
    } catch (const std::exception& error) {
        failure = error.what();
        return failure.c_str();
    }
}

// A number for tilewise::_conv: stride, padding before and after and dilation of `dims` numbers each. -1: there is none left.
__attribute__((visibility("default"))) int64_t tilewise_torch_geometry(std::size_t dims, const int64_t* numbers,
                                                                       int64_t groups) {
    return tilewise_torch::KeptGeometries::add(dims, numbers, groups);
}

// How many prepared problems this process keeps.
__attribute__((visibility("default"))) std::size_t tilewise_torch_plans() {
    return tilewise_torch::PlanTable::here().size();
}

// Has kernels chosen anew, after some were measured.
__attribute__((visibility("default"))) void tilewise_torch_forget_plans() { tilewise_torch::PlanTable::here().clear(); }

}  // extern "C"
