/* SPDX-License-Identifier: MIT
 * A client of the original's convolution functions, in fp32 on the CPU: forward through conv_dispatcher_*, the gradient of
 * the weights through both libraries.
 *
 *   03_original_conv [--device cpu] [--arch any] [--help]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilewise/original.h>

enum { kN = 2, kG = 2, kC = 8, kK = 6, kSize = 9, kFilter = 3 };
enum { kX = kN * kSize * kSize * kC, kW = kK * kFilter * kFilter * (kC / kG), kY = kN * kSize * kSize * kK };

static float x[kX], w[kW], y[kY], dw[kW], dw2[kW];
static double y_expected[kY], dw_expected[kW];

/* Every product of the convolution, with padding 1: y += x * w and dw += x * y. */
static void expect(void) {
    const int c_per_group = kC / kG, k_per_group = kK / kG;
    for (int n = 0; n < kN; ++n)
        for (int oh = 0; oh < kSize; ++oh)
            for (int ow = 0; ow < kSize; ++ow)
                for (int fy = 0; fy < kFilter; ++fy)
                    for (int fx = 0; fx < kFilter; ++fx) {
                        const int h = oh - 1 + fy, v = ow - 1 + fx;
                        if (h < 0 || h >= kSize || v < 0 || v >= kSize) continue;
                        for (int k = 0; k < kK; ++k)
                            for (int c = 0; c < c_per_group; ++c) {
                                const int at_x = ((n * kSize + h) * kSize + v) * kC + k / k_per_group * c_per_group + c;
                                const int at_w = ((k * kFilter + fy) * kFilter + fx) * c_per_group + c;
                                const int at_y = ((n * kSize + oh) * kSize + ow) * kK + k;
                                y_expected[at_y] += (double)x[at_x] * (double)w[at_w];
                                dw_expected[at_w] += (double)x[at_x] * (double)y[at_y];
                            }
                    }
}

static int differs(const char* what, const float* got, const double* expected, int count) {
    double worst = 0;
    for (int i = 0; i < count; ++i) {
        const double error = fabs(expected[i] - (double)got[i]);
        if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
    }
    printf("%s %s: worst error %.1e\n", worst < 1e-4 ? "valid" : "WRONG", what, worst);
    return worst < 1e-4 ? 0 : 1;
}

int main(int argc, char** argv) {
    const char* device = "cpu"; /* the operands here are in the memory of the host */
    static float result[kY];
    char name[256];
    int wrong = 0;
    ConvProblemC problem = {kN, kG, kC, kK, 1, kSize, kSize, 1, kFilter, kFilter, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1};
    const ConvBwdwProblemC weight = {kN, kG, kC, kK, 1, kSize, kSize, 1, kFilter, kFilter,
                                     1,  1,  1,  0,  1, 1,     1,     1, 1,       2};
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
            device = argv[++i];
        } else if (strcmp(argv[i], "--arch") == 0 && i + 1 < argc) {
            ++i; /* the arch is that of the device: the original had one arch per library */
        } else {
            printf("usage: 03_original_conv [--device cpu] [--arch any] [--help]\n");
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    if (conv_dispatcher_configure("device", device) != 0 || conv_dispatcher_configure("dtype", "fp32") != 0 ||
        conv_dispatcher_init() != 0 || conv_bwdw_configure("device", device) != 0 ||
        conv_bwdw_configure("dtype", "fp32") != 0 || conv_bwdw_init() != 0) {
        fprintf(stderr, "init: %s%s\n", conv_dispatcher_last_error(), conv_bwdw_last_error());
        return 1;
    }
    for (int i = 0; i < kX; ++i) x[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    for (int i = 0; i < kW; ++i) w[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    for (int i = 0; i < kY; ++i) y[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    for (int i = 0; i < kY; ++i) result[i] = NAN;
    for (int i = 0; i < kW; ++i) dw[i] = dw2[i] = NAN;
    expect();

    if (conv_dispatcher_select_kernel(&problem, name, sizeof name) != 0) return 1;
    printf("%s, one of %d; version %s\n", name, conv_dispatcher_get_kernel_count(), conv_dispatcher_version());
    if (conv_dispatcher_run(x, w, result, &problem, NULL) <= 0) {
        fprintf(stderr, "run: %s\n", conv_dispatcher_last_error());
        return 1;
    }
    wrong += differs("forward", result, y_expected, kY);
    problem.direction = 2;
    if (conv_dispatcher_run(x, y, dw, &problem, NULL) <= 0 || conv_bwdw_run(x, y, dw2, &weight, NULL) <= 0) {
        fprintf(stderr, "run: %s%s\n", conv_dispatcher_last_error(), conv_bwdw_last_error());
        return 1;
    }
    wrong += differs("backward weight", dw, dw_expected, kW);
    wrong += differs("backward weight, its own library, split in 2", dw2, dw_expected, kW);
    conv_bwdw_cleanup();
    conv_dispatcher_cleanup();
    return wrong;
}
