/* SPDX-License-Identifier: MIT
 *
 * The C interface of tilewise. Functions return a status; on failure tilewise_last_error() says why, in the calling
 * thread. Texts that a function hands out through char** are freed with tilewise_free(). The library never prints,
 * exits or installs signal handlers, and every function may be called from any thread.
 */
#ifndef TILEWISE_H
#define TILEWISE_H

#ifdef __cplusplus
extern "C" {
#endif

#define TILEWISE_API __attribute__((visibility("default")))

/* Raised when a function changes its meaning; a client compares it with tilewise_abi_version(). */
#define TILEWISE_ABI_VERSION 1

typedef enum tilewise_status {
    TILEWISE_OK = 0,
    TILEWISE_CHECK_FAILED = 1,
    TILEWISE_USAGE = 2,       /* malformed or unknown input */
    TILEWISE_UNSUPPORTED = 3, /* impossible problem */
    TILEWISE_TOOLCHAIN = 4,
    TILEWISE_DEVICE = 5,
    TILEWISE_INTERNAL = 6 /* out of memory, or a fault of the library */
} tilewise_status;

TILEWISE_API const char* tilewise_version(void);
TILEWISE_API int tilewise_abi_version(void);

/* The message of the last failure in this thread; valid until the next call in this thread. */
TILEWISE_API const char* tilewise_last_error(void);

/* The kernels of a rule set.
 *   query_json  {"arch", "op", "dtype", "rule_set"}, all optional: the host's CPU, every operation, every type, default
 *   json        {"count", "kernels": [{"name", "id", "available", "config", ...}]}
 */
TILEWISE_API tilewise_status tilewise_kernels(const char* query_json, char** json);

/* Which kernels may run a problem, and which is chosen.
 *   problem       the one-line text, such as gemm:m=64,n=64,k=64,dtype=fp32,layout=rcr, or its JSON form
 *   options_json  {"arch", "rule_set"}, both optional; NULL for none
 *   json          {"plan": {"kernel", "source", "why", ...} or null, "candidates": [...], "rejected": [...]}
 * A problem that no kernel may run is not a failure: the plan is null.
 */
TILEWISE_API tilewise_status tilewise_select(const char* problem, const char* options_json, char** json);

/* Whether a config is valid, every rule it breaks, and with fix != 0 what would make it valid.
 *   config  a kernel name, or a config in JSON
 *   json    {"valid", "violations": [{"rule", "have", "need"}], and with fix: "corrected", "changes", "remaining"}
 */
TILEWISE_API tilewise_status tilewise_check(const char* config, int fix, char** json);

TILEWISE_API void tilewise_free(char* text);

#ifdef __cplusplus
}
#endif

#endif /* TILEWISE_H */
