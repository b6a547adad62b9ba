/* SPDX-License-Identifier: MIT
 *
 * The C interface of tilewise. Functions return a status; on failure tilewise_last_error() says why, in the calling
 * thread. Texts that a function hands out through char** are freed with tilewise_free(). The library never prints,
 * exits or installs signal handlers, and every function may be called from any thread.
 */
#ifndef TILEWISE_H
#define TILEWISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(modernize-use-using): this is C as well */

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

/* ---- Running kernels --------------------------------------------------------------------------------------------
 * context -> prepare -> run. The first field of every struct is its size, so that a struct may grow; zero everything
 * else and set what is wanted. Handles may be used by many threads at once. A context may be destroyed before its
 * executables: what they need lives as long as they do.
 */

/* A device with what was built, loaded and chosen for it. */
typedef struct tilewise_context tilewise_context;

/* A problem made ready on a context: kernel chosen, built and loaded. */
typedef struct tilewise_executable tilewise_executable;

typedef struct tilewise_context_options {
    size_t size;       /* sizeof(tilewise_context_options) */
    const char* arch;  /* NULL: that of the device */
    const char* packs; /* packs of built kernels besides those of the environment, separated by ':'; NULL for none */
    int32_t threads;   /* CPU: how many to use; 0: every CPU this process may use */
} tilewise_context_options;

typedef struct tilewise_select_options {
    size_t size;          /* sizeof(tilewise_select_options) */
    const char* strategy; /* "auto", "rules", "first-fit" or "measure"; NULL: auto */
    const char* rule_set; /* NULL: default */
    const char* kernel;   /* a kernel name or a config in JSON: this one and no other; NULL: by the strategy */
    int32_t top;          /* strategy measure: how many kernels to time; 0: the library's choice */
    void* stream;         /* the stream the runs will be on: while it is being captured, nothing is measured */
} tilewise_select_options;

/* The operands of one run, where and as the problem says. What the problem does not have stays NULL.
 *   c            read as well where the problem says beta=1
 *   bias, d      of the output's type; d has C's shape and strides
 *   scale_a, _b  fp32, 1 value each, or m and n of them, in memory of the device
 *   workspace    of tilewise_executable_workspace_bytes(), where that is not 0; 16-byte aligned; in use until the run
 *                is done
 */
typedef struct tilewise_operands {
    size_t size; /* sizeof(tilewise_operands) */
    const void* a;
    const void* b;
    void* c;
    const void* bias;
    const void* d[4];
    const float* scale_a;
    const float* scale_b;
    void* workspace;
    float alpha;
    float beta;
} tilewise_operands;
#define TILEWISE_OPERANDS_INIT \
    { sizeof(tilewise_operands), 0, 0, 0, 0, {0, 0, 0, 0}, 0, 0, 0, 1.0f, 0.0f }

/* Opens a device: "cpu". `options` may be NULL. */
TILEWISE_API tilewise_status tilewise_context_create(const char* device, const tilewise_context_options* options,
                                                     tilewise_context** context);
TILEWISE_API void tilewise_context_destroy(tilewise_context* context);

/* Chooses a kernel for the problem (text or JSON), builds it unless it is cached, and loads it. A problem prepared
 * before costs a look-up. `options` may be NULL. */
TILEWISE_API tilewise_status tilewise_prepare(tilewise_context* context, const char* problem,
                                              const tilewise_select_options* options, tilewise_executable** executable);
TILEWISE_API void tilewise_executable_destroy(tilewise_executable* executable);

/* Of a prepared executable; the texts are valid until it is destroyed. Source is what made the choice ("rules",
 * "tuned", "measured", "named", ...), why is its reason in words. */
TILEWISE_API const char* tilewise_executable_kernel(const tilewise_executable* executable);
TILEWISE_API const char* tilewise_executable_source(const tilewise_executable* executable);
TILEWISE_API const char* tilewise_executable_why(const tilewise_executable* executable);
TILEWISE_API int64_t tilewise_executable_workspace_bytes(const tilewise_executable* executable);
TILEWISE_API int64_t tilewise_executable_packed_b_bytes(const tilewise_executable* executable);

/* All of that and more: {"problem", "kernel", "plan": {"kernel", "source", "why", "notes", "available"}, "origin",
 * "threads", "align", "workspace_bytes", "packed_b_bytes", "operands": [{"name", "dtype", "shape", "strides"}]}; notes,
 * each {"kind", "message"}, say what is not as it should be about the choice or the kernel. */
TILEWISE_API tilewise_status tilewise_executable_describe(const tilewise_executable* executable, char** json);

/* Launches once: on a CPU it returns when the result is there, on a GPU when the launch is in the stream (NULL: the
 * default stream). Allocates nothing, waits for nothing else. */
TILEWISE_API tilewise_status tilewise_run(const tilewise_executable* executable, const tilewise_operands* operands,
                                          void* stream);

/* For a problem with packed_b=1: writes B in the form that runs of this executable read it, packed_b_bytes of it. */
TILEWISE_API tilewise_status tilewise_pack_b(const tilewise_executable* executable, const void* b, void* packed,
                                             void* stream);

/* Times the kernel that is chosen, or with all != 0 every candidate, on tensors of its own.
 *   json  {"device", "results": [{"problem", "kernel", "us", "spread", "tflops", "gbps", "roof"}], "failures": [...]}
 */
TILEWISE_API tilewise_status tilewise_bench(tilewise_context* context, const char* problem,
                                            const tilewise_select_options* options, int all, char** json);

/* ---- Building ahead ---------------------------------------------------------------------------------------------- */

/* Builds kernels unless they are cached, with `jobs` compilers at a time (0: one for each CPU), for archs that need not be
 * here. Touches no device.
 *   configs_json  a list of kernel names and configs
 *   json          {"kernels": [{"kernel", "path", "digest", "origin", "note"} or {"kernel", "error": {"code", "message"}}]},
 *                 in the order of the list; the message of a compiler that failed has its command and log
 */
TILEWISE_API tilewise_status tilewise_build(const char* configs_json, int32_t jobs, char** json);

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif /* TILEWISE_H */
