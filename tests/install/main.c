/* SPDX-License-Identifier: MIT
 * Shows that the installed header is C, that the installed library links, and that a call answers. */
#include <stdio.h>
#include <tilewise/tilewise.h>

int main(void) {
    char* json = NULL;
    int status = tilewise_kernels("{\"op\": \"gemm\", \"arch\": \"gfx942\", \"rule_set\": \"tiny\"}", &json);
    if (status != 0) {
        fprintf(stderr, "consumer: %s\n", tilewise_last_error());
        return 1;
    }
    tilewise_free(json);
    printf("consumer: tilewise %s works\n", tilewise_version());
    return 0;
}
