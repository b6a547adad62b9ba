/* SPDX-License-Identifier: MIT
 * A tour of tilewise.h that uses every function of it: what there is to choose from, why a kernel is chosen, running it on
 * random data, checking the result against a reference of its own, and what failures look like.
 *
 *   01_tour [--device cpu] [--arch cpu-generic] [--help]
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilewise/tilewise.h>

static void stop(const char* what) {
    fprintf(stderr, "%s: %s\n", what, tilewise_last_error());
    exit(1);
}

/* Ends the program when a call fails, or a fact is not as it should be. */
#define NEED(call)                              \
    do {                                        \
        if ((call) != TILEWISE_OK) stop(#call); \
    } while (0)
#define EXPECT(fact)                                                           \
    do {                                                                       \
        if (!(fact)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #fact); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

static float draw(void) { return (float)rand() / (float)RAND_MAX * 2 - 1; }

/* The start of a long text, for showing. */
static void show(const char* what, const char* text) {
    printf("%s: %.160s%s\n", what, text, strlen(text) > 160 ? " ..." : "");
}

/* ---- Versions and failures --------------------------------------------------------------------------------------- */

static void versions(void) {
    NEED(tilewise_check_abi(TILEWISE_ABI_VERSION));
    printf("tilewise %s, ABI %d\n", tilewise_version(), tilewise_abi_version());
    EXPECT(tilewise_check_abi(TILEWISE_ABI_VERSION + 1) == TILEWISE_USAGE);
    printf("another ABI is %s: %s\n", tilewise_status_name(TILEWISE_USAGE), tilewise_last_error());
    NEED(tilewise_set_verbose(0)); /* 1: a line for each choice, build, load and run */
}

/* ---- Problems ---------------------------------------------------------------------------------------------------- */

static char* gemm_problem(void) {
    tilewise_gemm gemm = {0};
    char* text = NULL;
    gemm.size = sizeof gemm;
    gemm.m = 33, gemm.n = 47, gemm.k = 65;
    gemm.dtype = "fp32";
    gemm.options = "epilogue=bias";
    NEED(tilewise_gemm_text(&gemm, &text));
    return text;
}

static char* conv_problem(void) {
    tilewise_conv conv = {0};
    char* text = NULL;
    conv.size = sizeof conv;
    conv.n = 2, conv.g = 2, conv.c = 8, conv.k = 6;
    conv.dims = 1;
    conv.in[0] = 20, conv.filter[0] = 3, conv.pad_before[0] = 1, conv.pad_after[0] = 1;
    conv.dtype = "fp32";
    NEED(tilewise_conv_text(&conv, &text));
    return text;
}

static void problems(const char* problem) {
    char *json = NULL, *again = NULL;
    double flops = 0, bytes = 0;
    tilewise_tensor tensor = {0};
    NEED(tilewise_problem_work(problem, &flops, &bytes));
    printf("%s: %.0f operations, %.0f bytes\n", problem, flops, bytes);
    NEED(tilewise_problem_describe(problem, &json));
    show("described", json);
    NEED(tilewise_problem_text(problem, &again));
    EXPECT(strcmp(again, problem) == 0);
    tensor.size = sizeof tensor;
    NEED(tilewise_problem_operand(problem, "c", &tensor));
    printf("c: %s, %d dimensions, %lld bytes\n", tensor.dtype, (int)tensor.rank, (long long)tensor.bytes);
    tilewise_free(json);
    tilewise_free(again);
}

/* ---- Kernels and registries -------------------------------------------------------------------------------------- */

static void kernels(const char* problem, const char* arch) {
    char query[128], list[256], *text = NULL, *name = NULL, *changed = NULL;
    tilewise_registry *registry = NULL, *other = NULL;
    int64_t added = 0;
    snprintf(query, sizeof query, "{\"arch\": \"%s\", \"op\": \"gemm\", \"dtype\": \"fp32\"}", arch);
    NEED(tilewise_kernels(query, &text));
    show("kernels", text);
    tilewise_free(text);
    NEED(tilewise_select(problem, "{\"arch\": \"gfx942\"}", &text)); /* an arch that need not be here */
    show("on a gfx942", text);
    tilewise_free(text);
    NEED(tilewise_archs(NULL, &text));
    show("archs", text);
    tilewise_free(text);
    NEED(tilewise_config_fields(&text));
    show("fields of a config", text);
    tilewise_free(text);

    NEED(tilewise_registry_create("tour", &registry));
    NEED(tilewise_registry_create("other", &other));
    NEED(tilewise_registry_add_rule_set(registry, query, &added));
    EXPECT(added > 0 && added == tilewise_registry_size(registry));
    NEED(tilewise_registry_name_at(registry, 0, &name));
    NEED(tilewise_registry_find(registry, name, &text));
    tilewise_free(text);
    NEED(tilewise_find_kernel(name, NULL, &text));
    show("one kernel", text);
    tilewise_free(text);
    snprintf(list, sizeof list, "[\"%s\"]", name);
    NEED(tilewise_build(list, 0, &text)); /* into the cache; for an arch that need not be here, too */
    EXPECT(strstr(text, "\"path\""));
    show("built ahead", text);
    tilewise_free(text);

    NEED(tilewise_config_set(name, "warp_tile", "5x5x1", &changed)); /* no such instruction */
    NEED(tilewise_check(changed, 1, &text));
    EXPECT(strstr(text, "\"valid\":false"));
    show("checked", text);
    tilewise_free(text);
    EXPECT(tilewise_registry_add(other, changed, NULL, NULL) == TILEWISE_CHECK_FAILED);
    NEED(tilewise_correct(changed, &text));
    NEED(tilewise_registry_add(other, text, "high", &added));
    EXPECT(added == 1);
    tilewise_free(text);
    NEED(tilewise_config_get(name, "tile", &text));
    printf("the first kernel has a tile of %s\n", text);
    tilewise_free(text);

    NEED(tilewise_registry_merge(registry, other, NULL));
    NEED(tilewise_registry_export(registry, 1, &text));
    NEED(tilewise_registry_clear(other));
    NEED(tilewise_registry_import(other, text, &added));
    EXPECT(added == tilewise_registry_size(registry));
    tilewise_free(text);
    tilewise_free(name);
    tilewise_free(changed);
    tilewise_registry_destroy(other);
    tilewise_registry_destroy(registry);
}

/* ---- Plans ------------------------------------------------------------------------------------------------------- */

/* The last of the candidates instead of the first. */
static int32_t take_last(void* user, const char* problem, const char* const* names, const double* predicted_us,
                         int32_t count, int32_t* order) {
    (void)problem, (void)names, (void)predicted_us;
    ++*(int*)user;
    order[0] = count - 1;
    return 1;
}

static void plans(tilewise_context* context, const char* problem) {
    tilewise_plan* plan = NULL;
    tilewise_select_options options = {0};
    const char *name = NULL, *rule = NULL, *have = NULL, *need = NULL;
    char *json = NULL, last[256];
    double us = 0;
    int calls = 0;
    NEED(tilewise_plan_create(context, problem, NULL, &plan));
    printf("plan: %s, by %s: %s\n", tilewise_plan_kernel(plan), tilewise_plan_source(plan), tilewise_plan_why(plan));
    EXPECT(tilewise_plan_candidate_count(plan) > 1);
    NEED(tilewise_plan_candidate(plan, tilewise_plan_candidate_count(plan) - 1, &name, &us));
    snprintf(last, sizeof last, "%s", name);
    printf("%lld others, the last with %.1f us\n", (long long)tilewise_plan_candidate_count(plan) - 1, us);
    if (tilewise_plan_rejection_count(plan) > 0) {
        NEED(tilewise_plan_rejection(plan, 0, &name, &rule, &have, &need));
        printf("not %s: rule %s, have %s, need %s\n", name, rule, have, need);
    }
    NEED(tilewise_plan_describe(plan, &json));
    tilewise_free(json);
    tilewise_plan_destroy(plan);

    options.size = sizeof options;
    options.rank = take_last;
    options.rank_user = &calls;
    NEED(tilewise_plan_create(context, problem, &options, &plan));
    EXPECT(calls == 1 && strcmp(tilewise_plan_kernel(plan), last) == 0);
    tilewise_plan_destroy(plan);
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

typedef struct Product {
    const tilewise_executable* executable;
    tilewise_operands operands;
    tilewise_status status;
} Product;

static void* run_in_thread(void* given) {
    Product* product = given;
    product->status = tilewise_run(product->executable, &product->operands, NULL);
    return NULL;
}

/* Memory of the device with a copy of the values. */
static float* put(tilewise_context* context, const float* values, size_t count) {
    void* memory = NULL;
    NEED(tilewise_allocate(context, count * sizeof *values, &memory));
    NEED(tilewise_copy(context, memory, values, count * sizeof *values, NULL));
    return memory;
}

/* C = A * B + bias in fp32, layout rcr, against plain loops. */
static void run_gemm(tilewise_context* context, const char* problem, int m, int n, int k) {
    float *a = malloc(sizeof *a * (size_t)(m * k)), *b = malloc(sizeof *b * (size_t)(n * k));
    float *c = malloc(sizeof *c * (size_t)(m * n)), *bias = malloc(sizeof *bias * (size_t)n);
    tilewise_plan* plan = NULL;
    tilewise_executable *executable = NULL, *same = NULL;
    tilewise_operands operands = TILEWISE_OPERANDS_INIT;
    Product product;
    pthread_t thread;
    void* workspace = NULL;
    char* json = NULL;
    double worst = 0;
    EXPECT(a && b && c && bias);
    for (int i = 0; i < m * k; ++i) a[i] = draw();
    for (int i = 0; i < n * k; ++i) b[i] = draw();
    for (int i = 0; i < n; ++i) bias[i] = draw();
    for (int i = 0; i < m * n; ++i) c[i] = NAN;

    NEED(tilewise_plan_create(context, problem, NULL, &plan));
    NEED(tilewise_plan_prepare(plan, &executable));
    NEED(tilewise_prepare(context, problem, NULL, &same)); /* the short way */
    EXPECT(strcmp(tilewise_executable_kernel(executable), tilewise_executable_kernel(same)) == 0);
    printf("executable: %s, by %s: %s\n", tilewise_executable_kernel(executable),
           tilewise_executable_source(executable), tilewise_executable_why(executable));
    NEED(tilewise_executable_describe(executable, &json));
    show("described", json);
    tilewise_free(json);
    tilewise_executable_destroy(same);
    tilewise_plan_destroy(plan);

    NEED(tilewise_allocate(context, (size_t)tilewise_executable_workspace_bytes(executable), &workspace));
    operands.workspace = workspace;
    operands.a = put(context, a, (size_t)(m * k)), operands.b = put(context, b, (size_t)(n * k));
    operands.c = put(context, c, (size_t)(m * n)), operands.bias = put(context, bias, (size_t)n);
    product.executable = executable;
    product.operands = operands;
    EXPECT(pthread_create(&thread, NULL, run_in_thread, &product) == 0); /* any thread will do */
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(product.status == TILEWISE_OK);
    NEED(tilewise_synchronize(context, NULL));
    NEED(tilewise_copy(context, c, operands.c, sizeof *c * (size_t)(m * n), NULL));
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            double sum = bias[j], error;
            for (int p = 0; p < k; ++p) sum += (double)a[i * k + p] * (double)b[j * k + p];
            error = fabs(sum - (double)c[i * n + j]);
            if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
        }
    }
    printf("%s: worst error %.1e\n", worst < 1e-4 ? "valid" : "WRONG", worst);
    EXPECT(worst < 1e-4);
    NEED(tilewise_release(context, (void*)operands.a));
    NEED(tilewise_release(context, (void*)operands.b));
    NEED(tilewise_release(context, operands.c));
    NEED(tilewise_release(context, (void*)operands.bias));
    NEED(tilewise_release(context, workspace));
    tilewise_executable_destroy(executable);
    EXPECT(tilewise_run(executable, &operands, NULL) == TILEWISE_USAGE); /* a freed handle is told apart */
    printf("after destroying it: %s\n", tilewise_last_error());
    free(a), free(b), free(c), free(bias);
}

/* B packed ahead once, for a kernel that reads it so; where the arch has one. */
static void run_packed(tilewise_context* context) {
    const char* problem = "gemm:m=4,n=48,k=16,dtype=fp32,layout=rcr,packed_b=1";
    float a[4 * 16], b[48 * 16], c[4 * 48];
    tilewise_executable* executable = NULL;
    tilewise_operands operands = TILEWISE_OPERANDS_INIT;
    void *packed = NULL, *workspace = NULL;
    if (tilewise_prepare(context, problem, NULL, &executable) == TILEWISE_UNSUPPORTED) return;
    for (int i = 0; i < 4 * 16; ++i) a[i] = draw();
    for (int i = 0; i < 48 * 16; ++i) b[i] = draw();
    EXPECT(executable && tilewise_executable_packed_b_bytes(executable) > 0);
    NEED(tilewise_allocate(context, (size_t)tilewise_executable_packed_b_bytes(executable), &packed));
    NEED(tilewise_allocate(context, (size_t)tilewise_executable_workspace_bytes(executable), &workspace));
    operands.workspace = workspace;
    operands.a = put(context, a, 4 * 16), operands.b = put(context, b, 48 * 16), operands.c = put(context, c, 4 * 48);
    NEED(tilewise_pack_b(executable, operands.b, packed, NULL));
    NEED(tilewise_release(context, (void*)operands.b));
    operands.b = packed;
    NEED(tilewise_run(executable, &operands, NULL));
    NEED(tilewise_copy(context, c, operands.c, sizeof c, NULL));
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 48; ++j) {
            double sum = 0;
            for (int p = 0; p < 16; ++p) sum += (double)a[i * 16 + p] * (double)b[j * 16 + p];
            EXPECT(fabs(sum - (double)c[i * 48 + j]) < 1e-4);
        }
    }
    printf("valid: with B packed ahead\n");
    NEED(tilewise_release(context, (void*)operands.a));
    NEED(tilewise_release(context, operands.c));
    NEED(tilewise_release(context, packed));
    NEED(tilewise_release(context, workspace));
    tilewise_executable_destroy(executable);
}

/* ---- Measuring, packs, tuning records ------------------------------------------------------------------------------ */

static void measure(tilewise_context* context, const char* problem) {
    char* json = NULL;
    NEED(tilewise_build_problems(context, problem, NULL, 0, NULL, NULL, &json)); /* so that nothing below waits */
    EXPECT(strstr(json, "\"kernel\""));
    show("kernels for a list of problems", json);
    tilewise_free(json);
    NEED(tilewise_validate(context, problem, NULL, &json));
    EXPECT(strstr(json, "\"ok\":true"));
    show("validated", json);
    tilewise_free(json);
    NEED(tilewise_bench(context, problem, NULL, 0, &json));
    show("timed", json);
    tilewise_free(json);
}

static void load(tilewise_context* context) {
    int64_t added = -1;
    char path[] = "/tmp/tilewise-tour-XXXXXX";
    FILE* file = fdopen(mkstemp(path), "w");
    EXPECT(file);
    fputs(
        "{\"schema\": 1, \"device\": \"d\", \"problem\": \"p\", \"kernel\": \"k\", \"code_digest\": \"c\", \"us\": "
        "1.5}\n",
        file);
    EXPECT(fclose(file) == 0);
    NEED(tilewise_load_tuning(context, path, &added));
    EXPECT(added == 1);
    EXPECT(tilewise_load_pack(context, path) != TILEWISE_OK); /* this is no pack */
    printf("not a pack: %s\n", tilewise_last_error());
    EXPECT(tilewise_load_models(context, path) != TILEWISE_OK); /* nor a folder of models */
    printf("not a model: %s\n", tilewise_last_error());
    remove(path);
}

/* What a learned model is asked about a kernel, here one for a GPU that need not be there. */
static void learned(void) {
    static const char problem[] = "gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr", query[] = "{\"arch\": \"sm_90a\"}";
    static const char* const kernel[] = {
        "gemm_bf16_rcr_compv6_cshuffle_intrawave_256x128x64_2x1x1_64x128x16_va8_vb8_vc8_stages4_pers_pw1@sm_90a"};
    double features[64], us = 0, score = 0;
    char* text = NULL;
    NEED(tilewise_feature_schema("gemm", &text));
    show("features", text);
    tilewise_free(text);
    NEED(tilewise_features(problem, query, kernel, 1, features, &us));
    EXPECT(us > 0 && features[0] == features[0]);
    NEED(tilewise_kernel_kind(kernel[0], &text));
    printf("the analytic model gives %s %.1f us\n", text, us);
    tilewise_free(text);
    EXPECT(tilewise_predict("/nonexistent", features, 1, &score) != TILEWISE_OK);
    EXPECT(tilewise_predict_times("/nonexistent", problem, query, kernel, 1, &us, NULL, NULL) != TILEWISE_OK);
    printf("no model: %s\n", tilewise_last_error());
}

/* Code of one's own in the cache of kernels; where there is no compiler there is none. */
static void extension(void) {
    static const char request[] =
        "{\"name\": \"an answer\", \"source\": \"extern \\\"C\\\" int answer() { return 42; }\", \"flags\": [\"-O1\"]}";
    void* library = NULL;
    if (tilewise_build_extension(request) == TILEWISE_TOOLCHAIN) {
        printf("no extension: %s\n", tilewise_last_error());
        return;
    }
    NEED(tilewise_load_extension(request, &library));
    EXPECT(library);
    printf("an extension is compiled and loaded\n");
}

int main(int argc, char** argv) {
    const char* device = "cpu";
    tilewise_context_options options = {0};
    tilewise_context* context = NULL;
    char *gemm, *conv, *json = NULL;
    options.size = sizeof options;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
            device = argv[++i];
        } else if (strcmp(argv[i], "--arch") == 0 && i + 1 < argc) {
            options.arch = argv[++i];
        } else {
            printf("usage: 01_tour [--device cpu] [--arch cpu-generic] [--help]\nUses every function of tilewise.h.\n");
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    versions();
    gemm = gemm_problem();
    conv = conv_problem();
    problems(gemm);
    problems(conv);
    NEED(tilewise_context_create(device, &options, &context));
    NEED(tilewise_context_describe(context, &json));
    printf("%s\n", json);
    tilewise_free(json);
    kernels(gemm, tilewise_context_arch(context));
    plans(context, gemm);
    run_gemm(context, gemm, 33, 47, 65);
    run_packed(context);
    measure(context, gemm);
    measure(context, conv);
    load(context);
    learned();
    extension();
    tilewise_context_destroy(context);
    tilewise_free(gemm);
    tilewise_free(conv);
    return 0;
}
