/* SPDX-License-Identifier: MIT
 * Shows that the installed header is C, that the installed library links, and that it multiplies. */
#include <stdio.h>
#include <tilewise/tilewise.h>

static int fail(void) {
    fprintf(stderr, "consumer: %s\n", tilewise_last_error());
    return 1;
}

int main(void) {
    const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    float c[4] = {0, 0, 0, 0};
    tilewise_operands operands = TILEWISE_OPERANDS_INIT;
    tilewise_context* context = NULL;
    tilewise_executable* executable = NULL;
    operands.a = a;
    operands.b = b;
    operands.c = c;
    if (tilewise_context_create("cpu", NULL, &context) != TILEWISE_OK) return fail();
    if (tilewise_prepare(context, "gemm:m=2,n=2,k=2,dtype=fp32,layout=rrr,align=4", NULL, &executable) != TILEWISE_OK)
        return fail();
    if (tilewise_run(executable, &operands, NULL) != TILEWISE_OK) return fail();
    tilewise_executable_destroy(executable);
    tilewise_context_destroy(context);
    if (c[0] != 19 || c[1] != 22 || c[2] != 43 || c[3] != 50) {
        fprintf(stderr, "consumer: wrong: %g %g %g %g\n", c[0], c[1], c[2], c[3]);
        return 1;
    }
    printf("consumer: tilewise %s works\n", tilewise_version());
    return 0;
}
