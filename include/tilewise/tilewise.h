/* SPDX-License-Identifier: MIT
 *
 * The C interface of tilewise. Functions return a status; on failure tilewise_last_error() says why, in the calling
 * thread. Texts that a function hands out through char** are freed with tilewise_free(). The library never prints
 * unless it is asked to (tilewise_set_verbose), exits or installs signal handlers, and every function may be called from any thread. A NULL pointer where something is
 * needed, or a handle that was destroyed, is a failure with a message.
 *
 * A section begins with a comment of dashes, and the comment before a function or a struct is its documentation:
 * docs/reference-c.md is made from them.
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

/* ---- Versions, status and messages ------------------------------------------------------------------------------ */

/* Raised when a function changes its meaning or goes away; new functions and longer structs do not raise it. */
#define TILEWISE_ABI_VERSION 1

/* The result of a function. The codes are also the exit codes of the command line. */
typedef enum tilewise_status {
    TILEWISE_OK = 0,
    TILEWISE_CHECK_FAILED = 1, /* a check was made and did not hold */
    TILEWISE_USAGE = 2,        /* malformed or unknown input */
    TILEWISE_UNSUPPORTED = 3,  /* impossible problem, or one that no kernel may run */
    TILEWISE_TOOLCHAIN = 4,    /* a compiler is missing or failed */
    TILEWISE_DEVICE = 5,       /* a device is missing or failed */
    TILEWISE_INTERNAL = 6      /* out of memory, or a fault of the library */
} tilewise_status;

/* The version of the library, with the commit where that is known: "0.2.0+g0123456789ab". */
TILEWISE_API const char* tilewise_version(void);

/* The ABI version of the library. */
TILEWISE_API int tilewise_abi_version(void);

/* Whether a client that was compiled with this header may use the library that was loaded: call it first, with
 * TILEWISE_ABI_VERSION. TILEWISE_USAGE, and a message that names both versions, when it may not. */
TILEWISE_API tilewise_status tilewise_check_abi(int abi_version);

/* The word for a status: "ok", "check failed", "usage", "unsupported", "toolchain", "device", "internal". */
TILEWISE_API const char* tilewise_status_name(tilewise_status status);

/* The message of the last failure in this thread, "" after a success; valid until the next call in this thread. */
TILEWISE_API const char* tilewise_last_error(void);

/* How much the library says of what it does, on standard error: 0 nothing, 1 one line for each choice, build, load and run, with
 * its time and reason, 2 more about choices. Until this is called TILEWISE_VERBOSE counts, which is 0 unless set. */
TILEWISE_API tilewise_status tilewise_set_verbose(int level);

/* Frees a text that the library handed out. NULL is fine. */
TILEWISE_API void tilewise_free(char* text);

/* ---- Problems ----------------------------------------------------------------------------------------------------
 * A problem says what to compute. Every function takes it as its one-line text, such as
 * gemm:m=64,n=64,k=64,dtype=fp32,layout=rcr, or as JSON with the same keys (docs/problems.md). The structs below are
 * another way to write one. The first field of every struct is its size, so that a struct may grow: zero everything, set
 * the size and what is wanted. A text in a struct is the value of its field, whatever characters it has; only `options` is a
 * list of fields, none of which may be given twice or be one that the struct has set.
 */

/* A matrix product. */
typedef struct tilewise_gemm {
    size_t size; /* sizeof(tilewise_gemm) */
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t batch;       /* 0: 1 */
    const char* dtype;   /* of the inputs, such as "bf16" */
    const char* layout;  /* "rcr" and its kin; NULL: rcr */
    const char* options; /* further fields, such as "epilogue=bias+gelu,beta=1", or as JSON; NULL for none */
} tilewise_gemm;

/* A grouped convolution, in one of three directions. Of the arrays the first `dims` count, outermost first. */
typedef struct tilewise_conv {
    size_t size;         /* sizeof(tilewise_conv) */
    const char* op;      /* "conv_fwd", "conv_bwd_data" or "conv_bwd_weight"; NULL: conv_fwd */
    int64_t n;           /* images */
    int64_t g;           /* groups; 0: 1 */
    int64_t c;           /* input channels, all groups together */
    int64_t k;           /* output channels, all groups together */
    int32_t dims;        /* spatial dimensions, 1 to 3 */
    int64_t in[3];       /* extents of the input */
    int64_t filter[3];   /* extents of the filter */
    int64_t stride[3];   /* 0: 1 */
    int64_t dilation[3]; /* 0: 1 */
    int64_t pad_before[3];
    int64_t pad_after[3];
    const char* dtype;   /* of the inputs, such as "bf16" */
    const char* layout;  /* "nhwgc" and its kin; NULL: channels last */
    const char* options; /* further fields, as in tilewise_gemm; NULL for none */
} tilewise_conv;

/* An operand as a caller stores it. The library fills it in; only `size` is read. */
typedef struct tilewise_tensor {
    size_t size;        /* sizeof(tilewise_tensor) */
    char dtype[8];      /* "bf16" */
    int32_t rank;       /* dimensions */
    int64_t shape[6];   /* outermost first */
    int64_t strides[6]; /* in elements */
    int64_t bytes;      /* from the first element to the end of the last */
} tilewise_tensor;

/* The text of a problem given as text or JSON, in its one form: fields in order, those at their default left out. */
TILEWISE_API tilewise_status tilewise_problem_text(const char* problem, char** text);

/* The text of a problem given as a struct, checked. */
TILEWISE_API tilewise_status tilewise_gemm_text(const tilewise_gemm* gemm, char** text);

/* The text of a problem given as a struct, checked. */
TILEWISE_API tilewise_status tilewise_conv_text(const tilewise_conv* conv, char** text);

/* All about a problem:
 *   json  {"text", "problem": {its JSON form}, "flops", "bytes", "gemm": {"m", "n", "k", "batch"}: the product it amounts
 *         to, "output": [extents, of a convolution], "operands": [{"name", "dtype", "shape", "strides"}]}
 */
TILEWISE_API tilewise_status tilewise_problem_describe(const char* problem, char** json);

/* The work of a problem: arithmetic operations, and bytes when every operand moves once. Either may be NULL. */
TILEWISE_API tilewise_status tilewise_problem_work(const char* problem, double* flops, double* bytes);

/* One operand of a problem: "a", "b", "c", "bias", "d0" to "d3", "scale_a" or "scale_b". Of convolutions a, b, c are
 * forward x, w, y; backward data dy, w, dx; backward weight dy, x, dw. One that the problem does not have is
 * TILEWISE_USAGE. */
TILEWISE_API tilewise_status tilewise_problem_operand(const char* problem, const char* name, tilewise_tensor* tensor);

/* ---- Kernels and their configs -----------------------------------------------------------------------------------
 * A config says how to compute. Wherever one is asked for it may be a kernel's name, its id, or a config in JSON.
 */

/* The archs there are, sorted by name, or the one that is named.
 *   arch  a name; NULL: all of them
 *   json  {"count", "archs": [{"name", "backend", "waves", "warp_tiles", "pipelines", ...}]}, each as its arch file has it
 */
TILEWISE_API tilewise_status tilewise_archs(const char* arch, char** json);

/* The kernels of a rule set.
 *   query_json  {"arch", "op", "dtype", "rule_set", "available"}, all optional: the host's CPU, every operation, every
 *               type, default, and with "available": true only kernels that there is code for
 *   json        {"count", "kernels": [{"name", "id", "family", "available", "config", ...}]}
 */
TILEWISE_API tilewise_status tilewise_kernels(const char* query_json, char** json);

/* One kernel: by its name or config, which need not be in a rule set, or by its id, looked for in the rule set of the
 * query (as for tilewise_kernels).
 *   json  {"name", "id", "available", "config", ...}
 */
TILEWISE_API tilewise_status tilewise_find_kernel(const char* kernel, const char* query_json, char** json);

/* Whether a config is valid, every rule it breaks, and with fix != 0 what would make it valid.
 *   json    {"valid", "available", "name", "family", "violations": [{"rule", "have", "need"}], where there is no code "without_code":
 *           {"rule", "have", "need"}, and with fix: "corrected", "corrected_name", "changes", "remaining"}
 */
TILEWISE_API tilewise_status tilewise_check(const char* config, int fix, char** json);

/* The name of the valid config nearest to the given one; TILEWISE_CHECK_FAILED where no correction makes it valid. */
TILEWISE_API tilewise_status tilewise_correct(const char* config, char** name);

/* The value of one field of a config, as text: "tile" gives "128x128x64". */
TILEWISE_API tilewise_status tilewise_config_get(const char* config, const char* field, char** value);

/* The name of a config with one field changed. Nothing else changes, and nothing is checked: see tilewise_check. */
TILEWISE_API tilewise_status tilewise_config_set(const char* config, const char* field, const char* value, char** name);

/* The fields a config has:
 *   json  {"fields": [{"field", "type", "mark", "tag", "help"}]}
 */
TILEWISE_API tilewise_status tilewise_config_fields(char** json);

/* Which kernels may run a problem, and which is chosen, on an arch that need not be here.
 *   options_json  {"arch", "rule_set", "strategy", "model_dir", "threads"}, all optional: the host's CPU, default, auto, no folder of
 *                 learned models but the usual ones, the threads there are; NULL for none
 *   json          {"plan": {"kernel", "source", "why", ...} or null, "candidates": [...], "rejected": [...]}
 * A problem that no kernel may run is not a failure: the plan is null.
 */
TILEWISE_API tilewise_status tilewise_select(const char* problem, const char* options_json, char** json);

/* ---- Learned selection models ------------------------------------------------------------------------------------
 * A learned model corrects the analytic one: its trees give log(measured / analytic time) for a row of features of a kernel that may run a
 * problem. Nothing here needs a device.
 */

/* The features of an operation, in the order of a row. The convolutions have the same.
 *   op    "gemm", "conv_fwd", "conv_bwd_data" or "conv_bwd_weight"
 *   json  {"schema", "op", "hash", "names", "categorical", "words", "ranged"}: places of categories, whose values are places of words
 *         ({"NAME": [...]}), and places of sizes of the problem, which are in octaves
 */
TILEWISE_API tilewise_status tilewise_feature_schema(const char* op, char** json);

/* A row of features for each kernel of a list, and the time that the analytic model gives it.
 *   query_json   {"arch", "threads"}, both optional; NULL: the host's CPU, and as many threads as a launch takes
 *   rows         as many numbers for each kernel as there are names; may be NULL
 *   analytic_us  may be NULL
 * NaN throughout for a kernel of another arch, and for one that may not run the problem as it is.
 */
TILEWISE_API tilewise_status tilewise_features(const char* problem, const char* query_json, const char* const* kernels,
                                               int64_t count, double* rows, double* analytic_us);

/* The kind of a kernel, about which a model says how well it knows it: "wgmma_gemm m64 swap". */
TILEWISE_API tilewise_status tilewise_kernel_kind(const char* kernel, char** kind);

/* What the trees of a model's folder give for rows of features. */
TILEWISE_API tilewise_status tilewise_predict(const char* model_directory, const double* rows, int64_t count,
                                              double* scores);

/* The times that the model of a folder gives kernels, as a choice by it takes them: beyond the model's data the correction fades.
 *   us, analytic_us, error  each may be NULL; the usual relative error for the kernel's kind, NaN for a kind that the model has not seen
 * NaN throughout for a kernel that may not run the problem as it is.
 */
TILEWISE_API tilewise_status tilewise_predict_times(const char* model_directory, const char* problem,
                                                    const char* query_json, const char* const* kernels, int64_t count,
                                                    double* us, double* analytic_us, double* error);

/* ---- Registries --------------------------------------------------------------------------------------------------
 * A set of kernels to choose from, in the order of priority, then name. Registries are independent of each other.
 */

/* A set of kernels. */
typedef struct tilewise_registry tilewise_registry;

/* An empty registry. The name is for its export; NULL: "default". */
TILEWISE_API tilewise_status tilewise_registry_create(const char* name, tilewise_registry** registry);

/* Closes the handle. Plans and executables that were made with the registry go on. NULL is fine. */
TILEWISE_API void tilewise_registry_destroy(tilewise_registry* registry);

/* Adds the kernels of a rule set (the query is that of tilewise_kernels). `added` may be NULL; it gets how many were
 * taken: one that is there already is replaced only by one of higher priority. */
TILEWISE_API tilewise_status tilewise_registry_add_rule_set(tilewise_registry* registry, const char* query_json,
                                                            int64_t* added);

/* Adds one kernel. A config that breaks a rule of its arch is refused.
 *   priority  "low", "normal" or "high"; NULL: normal
 */
TILEWISE_API tilewise_status tilewise_registry_add(tilewise_registry* registry, const char* config,
                                                   const char* priority, int64_t* added);

/* Adds the kernels of another registry with their priorities. */
TILEWISE_API tilewise_status tilewise_registry_merge(tilewise_registry* registry, const tilewise_registry* other,
                                                     int64_t* added);

/* Adds what tilewise_registry_export wrote, all of it or, when anything is wrong, nothing. */
TILEWISE_API tilewise_status tilewise_registry_import(tilewise_registry* registry, const char* json, int64_t* added);

/* The whole registry:
 *   json  {"registry", "version", "count", with statistics != 0: "statistics", "kernels": [...]}
 */
TILEWISE_API tilewise_status tilewise_registry_export(const tilewise_registry* registry, int statistics, char** json);

/* Takes all kernels out. */
TILEWISE_API tilewise_status tilewise_registry_clear(tilewise_registry* registry);

/* How many kernels there are; 0 for a handle that is not open. */
TILEWISE_API int64_t tilewise_registry_size(const tilewise_registry* registry);

/* The name of a kernel by its place, 0 to size - 1. */
TILEWISE_API tilewise_status tilewise_registry_name_at(const tilewise_registry* registry, int64_t index, char** name);

/* A kernel of the registry by name or id: {"name", "id", "priority", "available", "config"}. One that is not there is
 * TILEWISE_UNSUPPORTED. */
TILEWISE_API tilewise_status tilewise_registry_find(const tilewise_registry* registry, const char* name_or_id,
                                                    char** json);

/* ---- Contexts ----------------------------------------------------------------------------------------------------
 * context -> prepare -> run. Handles may be used by many threads at once. A context may be destroyed before its plans
 * and executables: what they need lives as long as they do.
 */

/* A device with what was built, loaded and chosen for it. */
typedef struct tilewise_context tilewise_context;

/* How to open a device. */
typedef struct tilewise_context_options {
    size_t size;       /* sizeof(tilewise_context_options) */
    const char* arch;  /* NULL: that of the device */
    const char* packs; /* packs of built kernels besides those of the environment, separated by ':'; NULL for none */
    int32_t threads;   /* CPU: how many to use; 0: as the environment says, else every CPU of this process */
} tilewise_context_options;

/* Opens a device: "cpu", "cuda:0", "hip:0". `options` may be NULL. */
TILEWISE_API tilewise_status tilewise_context_create(const char* device, const tilewise_context_options* options,
                                                     tilewise_context** context);

/* Closes the handle. NULL is fine. */
TILEWISE_API void tilewise_context_destroy(tilewise_context* context);

/* The context as JSON: {"device", "identity", "arch", "backend", "threads", "cpus", "plan_cache", "shares_host_memory", "tuning"}: threads
 * that a launch takes, null on a GPU, of so many CPUs; problems that are kept ready (TILEWISE_PLAN_CACHE). */
TILEWISE_API tilewise_status tilewise_context_describe(const tilewise_context* context, char** json);

/* The arch that kernels of the context are for, such as "cpu-avx512"; "" for a handle that is not open. Valid until the
 * context is destroyed. */
TILEWISE_API const char* tilewise_context_arch(const tilewise_context* context);

/* Adds a pack of built kernels (tilewise build --pack), for what is prepared from now on. One that cannot be read is a
 * failure. */
TILEWISE_API tilewise_status tilewise_load_pack(tilewise_context* context, const char* path);

/* Adds the records of a file that tuning wrote (tuning.jsonl of a cache, of this machine or another one like it), for
 * what is prepared from now on. A line that cannot be read is a failure, and then nothing is added. `added` may be NULL.
 */
TILEWISE_API tilewise_status tilewise_load_tuning(tilewise_context* context, const char* path, int64_t* added);

/* Adds the learned selection models of a folder: a model's own, or one with folders of models. They are asked before all others, for what
 * is prepared from now on. A model that cannot be read, or was trained on other features, is a failure, and so is a folder without one for
 * the context's arch. */
TILEWISE_API tilewise_status tilewise_load_models(tilewise_context* context, const char* directory);

/* Memory that kernels of the context can use, 64-byte aligned or better. On a CPU any other memory does as well. */
TILEWISE_API tilewise_status tilewise_allocate(tilewise_context* context, size_t bytes, void** memory);

/* Gives back what tilewise_allocate gave. NULL is fine. */
TILEWISE_API tilewise_status tilewise_release(tilewise_context* context, void* memory);

/* Copies between the host and the device or within the device, in the order of the stream (NULL: the default stream).
 * Done when it returns where the host's memory takes part. The two places may not overlap. */
TILEWISE_API tilewise_status tilewise_copy(tilewise_context* context, void* to, const void* from, size_t bytes,
                                           void* stream);

/* Waits until everything in the stream is done. */
TILEWISE_API tilewise_status tilewise_synchronize(tilewise_context* context, void* stream);

/* ---- Plans -------------------------------------------------------------------------------------------------------
 * The outcome of a selection: which kernel, what made the choice and why, and why others were not taken.
 */

/* A ranking of the caller's own: gets the names of the candidates in the order of the library's model, with the times it
 * predicts (negative where it has none), and writes the places of those it wants, best first, to `order`, which has room
 * for `count`. Returns how many it wrote. The first of them is taken; none is TILEWISE_UNSUPPORTED. Called on the thread
 * that selects, without a lock. */
typedef int32_t (*tilewise_rank)(void* user, const char* problem, const char* const* kernels,
                                 const double* predicted_us, int32_t count, int32_t* order);

/* How to choose a kernel. */
typedef struct tilewise_select_options {
    size_t size;          /* sizeof(tilewise_select_options) */
    const char* strategy; /* "auto", "rules", "first-fit", "measure" or "model"; NULL: auto */
    const char* rule_set; /* NULL: default */
    const char* kernel;   /* a kernel's name or id, or a config in JSON: this one and no other; NULL: by the strategy */
    int32_t top;          /* strategy measure: how many kernels to time; 0: the library's choice */
    void* stream;         /* the stream the runs will be on: while it is being captured, nothing is measured */
    const tilewise_registry* registry; /* choose from these kernels and not from a rule set; NULL: the rule set */
    tilewise_rank rank;                /* choose by this function; NULL: by the strategy */
    void* rank_user;                   /* its first argument */
    const char* arch;                  /* a plan without a context: for this arch; NULL: the host's CPU */
} tilewise_select_options;

/* The outcome of a selection. */
typedef struct tilewise_plan tilewise_plan;

/* Chooses a kernel for the problem. `options` may be NULL, and so may the context: then the plan is for options->arch,
 * which need not be here, and cannot be prepared. A problem that no kernel may run is not a failure: the plan names none
 * and says why. */
TILEWISE_API tilewise_status tilewise_plan_create(tilewise_context* context, const char* problem,
                                                  const tilewise_select_options* options, tilewise_plan** plan);

/* Closes the handle. NULL is fine. */
TILEWISE_API void tilewise_plan_destroy(tilewise_plan* plan);

/* As tilewise_select: {"plan", "candidates", "rejected"}. */
TILEWISE_API tilewise_status tilewise_plan_describe(const tilewise_plan* plan, char** json);

/* The name of the chosen kernel, "" when there is none. This and the texts of the next functions are valid until the plan
 * is destroyed. */
TILEWISE_API const char* tilewise_plan_kernel(const tilewise_plan* plan);

/* What made the choice: "rules", "tuned", "measured", "first-fit", "callback", "named" or "model". */
TILEWISE_API const char* tilewise_plan_source(const tilewise_plan* plan);

/* Its reason in words; where no kernel may run the problem, why not. */
TILEWISE_API const char* tilewise_plan_why(const tilewise_plan* plan);

/* How many kernels may run the problem. */
TILEWISE_API int64_t tilewise_plan_candidate_count(const tilewise_plan* plan);

/* One of them, in the order of preference, and the time the model predicts (negative where it has none). Either pointer
 * may be NULL. */
TILEWISE_API tilewise_status tilewise_plan_candidate(const tilewise_plan* plan, int64_t index, const char** kernel,
                                                     double* predicted_us);

/* How many kernels may not run it. */
TILEWISE_API int64_t tilewise_plan_rejection_count(const tilewise_plan* plan);

/* One of them, with the first rule it breaks, what it has and what it would need. Any pointer may be NULL. */
TILEWISE_API tilewise_status tilewise_plan_rejection(const tilewise_plan* plan, int64_t index, const char** kernel,
                                                     const char** rule, const char** have, const char** need);

/* ---- Executables -------------------------------------------------------------------------------------------------- */

/* A problem made ready on a context: kernel chosen, built and loaded. */
typedef struct tilewise_executable tilewise_executable;

/* The operands of one run, where and as the problem says. What the problem does not have stays NULL.
 *   c            read as well where the problem says beta=1
 *   bias, d      of the output's type; d has C's shape and strides
 *   scale_a, _b  fp32, 1 value each, or m and n of them, in memory of the device
 *   workspace    of tilewise_executable_workspace_bytes(), where that is not 0; 16-byte aligned; in use until the run
 *                is done
 * c and the workspace share no byte with each other or with anything else (TILEWISE_USAGE), but that a d may be c itself:
 * then what was in c is combined with the result. Columns of one array may be different operands.
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

/* A tilewise_operands without operands: alpha is 1, beta is 0. */
#define TILEWISE_OPERANDS_INIT \
    { sizeof(tilewise_operands), 0, 0, 0, 0, {0, 0, 0, 0}, 0, 0, 0, 1.0f, 0.0f }

/* Chooses a kernel for the problem (text or JSON), builds it unless it is cached, and loads it. A problem prepared
 * before costs a look-up. `options` may be NULL. */
TILEWISE_API tilewise_status tilewise_prepare(tilewise_context* context, const char* problem,
                                              const tilewise_select_options* options, tilewise_executable** executable);

/* The same for a plan that was made on a context: its kernel, and no other, is built and loaded. */
TILEWISE_API tilewise_status tilewise_plan_prepare(const tilewise_plan* plan, tilewise_executable** executable);

/* Closes the handle; runs under way in other threads go on. NULL is fine. */
TILEWISE_API void tilewise_executable_destroy(tilewise_executable* executable);

/* The name of its kernel. This and the next two texts are valid until the executable is destroyed. */
TILEWISE_API const char* tilewise_executable_kernel(const tilewise_executable* executable);

/* What made the choice: "rules", "tuned", "measured", "first-fit", "callback", "named" or "model". */
TILEWISE_API const char* tilewise_executable_source(const tilewise_executable* executable);

/* Its reason in words. */
TILEWISE_API const char* tilewise_executable_why(const tilewise_executable* executable);

/* The scratch memory that each run under way needs; 0 for none. */
TILEWISE_API int64_t tilewise_executable_workspace_bytes(const tilewise_executable* executable);

/* The size of B packed ahead, of a problem with packed_b=1; 0 otherwise. */
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

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

/* Times the kernel that is chosen, or with all != 0 every candidate, on tensors of its own.
 *   json  {"device", "results": [{"problem", "kernel", "us", "spread", "tflops", "gbps", "roof", "predicted_us", "notes"}],
 *         "failures": [...], "notes": [...]}
 */
TILEWISE_API tilewise_status tilewise_bench(tilewise_context* context, const char* problem,
                                            const tilewise_select_options* options, int all, char** json);

/* Runs the kernel that is chosen once, on random tensors of its own, and judges every element of the result.
 *   json  {"problem", "kernel", "plan", "time_us", "tflops", "validation": {"ok", "max_error", "tolerance", ...}}
 * A wrong result is not a failure of the call: look at validation.ok.
 */
TILEWISE_API tilewise_status tilewise_validate(tilewise_context* context, const char* problem,
                                               const tilewise_select_options* options, char** json);

/* ---- Building ahead ---------------------------------------------------------------------------------------------- */

/* Builds kernels unless they are cached, with `jobs` compilers at a time (0: one for each CPU), for archs that need not be
 * here. Touches no device.
 *   configs_json  a list of kernel names and configs, or {"kernels": [...], "emulated": true} for an emulated GPU
 *   json          {"kernels": [{"kernel", "path", "digest", "origin", "note"} or {"kernel", "error": {"code", "message"}}]},
 *                 in the order of the list; the message of a compiler that failed has its command and log
 */
TILEWISE_API tilewise_status tilewise_build(const char* configs_json, int32_t jobs, char** json);

/* Told, on the calling thread, after each kernel that was compiled; another answer than 0 stops it. */
typedef int32_t (*tilewise_progress)(void* user, int64_t done, int64_t total, const char* kernel);

/* Compiles what a list of problems needs on the context's device and is not there yet, with `jobs` compilers at a time (0: one for
 * each CPU), so that preparing them waits for none. Loads and runs nothing.
 *   problems  one a line; # starts a comment
 *   options   how kernels are chosen; with the strategy measure all that would be measured are compiled
 *   progress  may be NULL
 *   json      {"problems": [{"problem", "kernel"} or {"problem", "error": {"code", "message"}}], "compiled",
 *             "failures": [{"kernel", "error"}]}
 */
TILEWISE_API tilewise_status tilewise_build_problems(tilewise_context* context, const char* problems,
                                                     const tilewise_select_options* options, int32_t jobs,
                                                     tilewise_progress progress, void* user, char** json);

/* ---- Extensions --------------------------------------------------------------------------------------------------
 * C++ of a client's own, such as the kernels of a framework's ops, compiled once by the same compiler, into the same cache and
 * under the same rules of trust as kernels. A request is
 *   request_json  {"name", "source", "flags"}: the name is for messages; the source is C++20; flags, such as -I and -l, come
 *                 after it. Source and flags are what the code is found by: what else decides it, such as the version of a
 *                 header, belongs into a comment of the source.
 */

/* Compiles it unless it is in the cache. TILEWISE_TOOLCHAIN where there is no compiler, or it failed: the message has its
 * command and log, and says where they are kept. */
TILEWISE_API tilewise_status tilewise_build_extension(const char* request_json);

/* Loads one that is in the cache, and compiles nothing. `library` gets the handle of dlopen, which stays open. One that is not
 * compiled yet is TILEWISE_CHECK_FAILED; it is TILEWISE_TOOLCHAIN where compiling it failed before, or there is no compiler.
 */
TILEWISE_API tilewise_status tilewise_load_extension(const char* request_json, void** library);

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif /* TILEWISE_H */
