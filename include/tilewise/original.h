/* SPDX-License-Identifier: MIT
 *
 * The C functions of the CK Tile Dispatcher, under their names and with their meaning, for programs that were written for
 * it. They are in libdispatcher_gemm_lib.so, libdispatcher_conv_lib.so and libdispatcher_conv_bwdw_lib.so, thin libraries
 * over libtilewise.so; each loaded copy has its own state. New programs use tilewise.h.
 *
 * Matrices and images are of type fp16; GEMM has layout rcr, convolutions are channels-last (NHWGC, GKYXC, NHWGK). Change
 * that before the init function by environment variables, or at any time by the configure function:
 *
 *   variable                  setting    values
 *   TILEWISE_COMPAT_DTYPE     dtype      fp16 (default), bf16, fp32, fp8, bf8, int8
 *   TILEWISE_COMPAT_LAYOUT    layout     GEMM: rcr (default), rrr, ...; convolution: channels_last (default), channels_first
 *   TILEWISE_COMPAT_DEVICE    device     auto (default: the first GPU, where there is none the CPU), cpu, cuda:0, emulated:sm_90a, ...
 *   TILEWISE_COMPAT_RULE_SET  rule_set   default, and the other rule sets
 *   TILEWISE_COMPAT_KERNEL    kernel     the name of the one kernel to use; empty (default): the one that is chosen
 *   TILEWISE_COMPAT_WARMUP    warmup     runs before the timed ones: 0 (default) or more
 *   TILEWISE_COMPAT_REPEAT    repeat     timed runs, of which the average is given: 1 (default) or more
 *
 * GEMM takes host pointers. Convolution takes pointers of the device: on the CPU, and on an emulated GPU, that is any
 * memory.
 * A text that does not fit a buffer with its end is an error (-1); it is never cut.
 */
#ifndef TILEWISE_ORIGINAL_H
#define TILEWISE_ORIGINAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(modernize-use-using): this is C as well */

#ifndef TILEWISE_API
#define TILEWISE_API __attribute__((visibility("default")))
#endif

/* ---- GEMM: libdispatcher_gemm_lib.so ------------------------------------------------------------------------------ */

/* Opens the device and lists its kernels. 0, or -1 on failure; a second call does nothing. */
TILEWISE_API int dispatcher_initialize(void);

/* The same. */
TILEWISE_API int dispatcher_init(void);

/* Changes a setting of the table above: 0, or -1 for an unknown one or a value that is none. */
TILEWISE_API int dispatcher_configure(const char* setting, const char* value);

/* Why the last call of this thread failed. */
TILEWISE_API const char* dispatcher_last_error(void);

/* The shapes of the kernel that dispatcher_get_kernel_name names: tile, what one instruction computes, and how many waves
 * share the tile. 0, or -1. */
TILEWISE_API int dispatcher_get_kernel_config(int* tile_m, int* tile_n, int* tile_k, int* warp_tile_m, int* warp_tile_n,
                                              int* warp_tile_k, int* warp_m, int* warp_n, int* warp_k);

/* The name of the kernel for a problem: 0, -1 for a bad argument or a buffer that is too small, -2 when there is none. */
TILEWISE_API int dispatcher_select_kernel(int64_t M, int64_t N, int64_t K, char* name_buffer, int buffer_size);

/* 1 when there is a kernel for the problem, else 0. */
TILEWISE_API int dispatcher_is_supported(int64_t M, int64_t N, int64_t K);

/* C = A * B, on host memory. 0, -1 for a bad argument or a failure, -2 when there is no kernel. `time_ms` may be NULL. */
TILEWISE_API int dispatcher_run_gemm(const void* A, const void* B, void* C, int64_t M, int64_t N, int64_t K,
                                     float* time_ms);

/* The kernel that was selected or run last in this library, before that the one for 1024 x 1024 x 1024; "" before init.
 * Valid until the next call in this thread. */
TILEWISE_API const char* dispatcher_get_kernel_name(void);

/* The name of one of the kernels: 0, or -1. */
TILEWISE_API int dispatcher_get_kernel_name_at(int index, char* buffer, int buffer_size);

/* How many kernels there are to choose from. */
TILEWISE_API int dispatcher_get_kernel_count(void);

/* They as JSON: {"metadata", "statistics", "kernels"}; "" before init. Valid until the next call in this thread. */
TILEWISE_API const char* dispatcher_export_registry_json(void);

/* Closes the device. */
TILEWISE_API void dispatcher_cleanup(void);

/* ---- Convolution: libdispatcher_conv_lib.so ----------------------------------------------------------------------- */

/* A convolution: C and K are totals over the G groups. It is 2-D where the depth is nothing but 1. */
typedef struct ConvProblemC {
    int N, G, C, K;
    int input_d, input_h, input_w;
    int filter_z, filter_y, filter_x;
    int stride_d, stride_h, stride_w;
    int pad_d, pad_h, pad_w;
    int dilation_d, dilation_h, dilation_w;
    int direction; /* 0 forward, 1 backward data, 2 backward weight */
    int split_k; /* backward weight: parts the reduction is cut into, where kernels can; 0 or 1: as the kernel has it */
} ConvProblemC;

/* Opens the device and lists its kernels. 0, or -1 on failure; a second call does nothing. */
TILEWISE_API int conv_dispatcher_init(void);

/* Closes the device. Always 0. */
TILEWISE_API int conv_dispatcher_cleanup(void);

/* "2.0.0" */
TILEWISE_API const char* conv_dispatcher_version(void);

/* As dispatcher_configure. */
TILEWISE_API int conv_dispatcher_configure(const char* setting, const char* value);

/* As dispatcher_last_error. */
TILEWISE_API const char* conv_dispatcher_last_error(void);

/* Whether there are forward kernels: 1 or 0. */
TILEWISE_API int conv_dispatcher_has_kernels(void);

/* Whether there are kernels for backward data. */
TILEWISE_API int conv_dispatcher_has_bwd_data(void);

/* Whether there are kernels for backward weight. */
TILEWISE_API int conv_dispatcher_has_bwd_weight(void);

/* How many kernels there are, of all directions. */
TILEWISE_API int conv_dispatcher_get_kernel_count(void);

/* The name of one of them: 0, or -1. */
TILEWISE_API int conv_dispatcher_get_kernel_name(int index, char* buffer, int buffer_size);

/* 1 when there is a kernel for the problem, else 0. */
TILEWISE_API int conv_dispatcher_is_supported(const ConvProblemC* prob);

/* The name of the kernel for a problem: 0, -1 for a bad argument or a buffer that is too small, -2 when there is none. */
TILEWISE_API int conv_dispatcher_select_kernel(const ConvProblemC* prob, char* buffer, int buffer_size);

/* Forward (X, W, Y), backward data (dY, W, dX) or backward weight (X, dY, dW), and waits for the result. Milliseconds, above
 * 0; -1 for a bad argument, -2 when there is no kernel, -3 when it failed. */
TILEWISE_API float conv_dispatcher_run(const void* a_ptr, const void* b_ptr, void* c_ptr, const ConvProblemC* prob,
                                       void* stream);

/* ---- Backward weight alone: libdispatcher_conv_bwdw_lib.so --------------------------------------------------------- */

/* A ConvProblemC without the direction. */
typedef struct ConvBwdwProblemC {
    int N, G, C, K;
    int input_d, input_h, input_w;
    int filter_z, filter_y, filter_x;
    int stride_d, stride_h, stride_w;
    int pad_d, pad_h, pad_w;
    int dilation_d, dilation_h, dilation_w;
    int split_k;
} ConvBwdwProblemC;

/* As conv_dispatcher_init. */
TILEWISE_API int conv_bwdw_init(void);

/* Closes the device. */
TILEWISE_API void conv_bwdw_cleanup(void);

/* "1.0.0" */
TILEWISE_API const char* conv_bwdw_version(void);

/* As dispatcher_configure. */
TILEWISE_API int conv_bwdw_configure(const char* setting, const char* value);

/* As dispatcher_last_error. */
TILEWISE_API const char* conv_bwdw_last_error(void);

/* Whether there are kernels: 1 or 0. */
TILEWISE_API int conv_bwdw_has_kernels(void);

/* How many there are. */
TILEWISE_API int conv_bwdw_get_kernel_count(void);

/* The name of one of them: 0, or -1. */
TILEWISE_API int conv_bwdw_get_kernel_name(int index, char* buffer, int buffer_size);

/* As conv_dispatcher_run. */
TILEWISE_API float conv_bwdw_run(const void* input_ptr, const void* grad_output_ptr, void* grad_weight_ptr,
                                 const ConvBwdwProblemC* prob, void* stream);

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif /* TILEWISE_ORIGINAL_H */
