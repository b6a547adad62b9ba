/* SPDX-License-Identifier: MIT
 * A client of the original's GEMM functions, in fp32: what was written for the CK Tile Dispatcher goes on working.
 *
 *   02_original_gemm [--device auto] [--arch any] [--help]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilewise/original.h>

enum { kM = 50, kN = 40, kK = 30 };

int main(int argc, char** argv) {
    static float a[kM * kK], b[kN * kK], c[kM * kN];
    char name[256];
    float ms = 0;
    double worst = 0;
    int shape[9];
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
            if (dispatcher_configure("device", argv[++i]) != 0) return 2;
        } else if (strcmp(argv[i], "--arch") == 0 && i + 1 < argc) {
            ++i; /* the arch is that of the device: the original had one arch per library */
        } else {
            printf("usage: 02_original_gemm [--device auto] [--arch any] [--help]\n");
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    if (dispatcher_configure("dtype", "fp32") != 0 || dispatcher_init() != 0) {
        fprintf(stderr, "init: %s\n", dispatcher_last_error());
        return 1;
    }
    for (int i = 0; i < kM * kK; ++i) a[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    for (int i = 0; i < kN * kK; ++i) b[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    for (int i = 0; i < kM * kN; ++i) c[i] = NAN;
    if (!dispatcher_is_supported(kM, kN, kK) || dispatcher_select_kernel(kM, kN, kK, name, sizeof name) != 0 ||
        dispatcher_run_gemm(a, b, c, kM, kN, kK, &ms) != 0) {
        fprintf(stderr, "run: %s\n", dispatcher_last_error());
        return 1;
    }
    for (int i = 0; i < kM; ++i) {
        for (int j = 0; j < kN; ++j) {
            double sum = 0, error;
            for (int p = 0; p < kK; ++p) sum += (double)a[i * kK + p] * (double)b[j * kK + p];
            error = fabs(sum - (double)c[i * kN + j]);
            if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
        }
    }
    if (dispatcher_get_kernel_config(&shape[0], &shape[1], &shape[2], &shape[3], &shape[4], &shape[5], &shape[6],
                                     &shape[7], &shape[8]) != 0) {
        return 1;
    }
    printf("%s, one of %d\ntile %dx%dx%d, %.4f ms, worst error %.1e: %s\n", name, dispatcher_get_kernel_count(),
           shape[0], shape[1], shape[2], (double)ms, worst, worst < 1e-5 ? "valid" : "WRONG");
    dispatcher_cleanup();
    return worst < 1e-5 ? 0 : 1;
}
