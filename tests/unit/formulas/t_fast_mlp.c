/* SPDX-License-Identifier: MIT */
/* The fast evaluator against double precision, on every instruction set. */
#include "costmodel/formulas/fast_mlp.h"

#include "base/rng.h"
#include "tests/tap.h"

#define MAX_ROWS 37

struct net_case {
    const char *name;
    uint32_t n_layers;
    uint32_t widths[FAST_MLP_MAX_LAYERS + 1];
    bool exp2;
};

static const struct net_case cases[] = {
    {"table net 20-128-32", 2, {20, 128, 32}, false},
    {"head 32-64-1", 2, {32, 64, 1}, false},
    {"comm net 16-128-64-32-16-8", 5, {16, 128, 64, 32, 16, 8}, false},
    {"one by one", 1, {1, 1}, false},
    {"odd widths 7-33-5-3", 3, {7, 33, 5, 3}, false},
    {"most inputs", 2, {1024, 33, 2}, false},
    {"widest", 2, {9, 1024, 2}, false},
    {"powers of 2", 2, {48, 64, 1}, true},
    {"sums of powers", 1, {31, 32}, true},
};

static float *random_floats(struct rng *rng, size_t n, double scale,
                            double shift, struct arena *arena)
{
    float *x = ARENA_NEW(arena, float, n);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(shift + scale * (2 * rng_uniform(rng) - 1));
    return x;
}

/* Evaluates the same net in double precision. */
static void eval_double(const struct net_case *c,
                        const struct mlp_layer *layers, const float *in,
                        double *out)
{
    static double x[FAST_MLP_MAX_WIDTH], y[FAST_MLP_MAX_WIDTH];

    for (uint32_t i = 0; i < c->widths[0]; i++)
        x[i] = (double)in[i];
    for (uint32_t k = 0; k < c->n_layers; k++) {
        for (uint32_t o = 0; o < layers[k].n_out; o++) {
            y[o] = (double)layers[k].bias[o];
            for (uint32_t i = 0; i < layers[k].n_in; i++)
                y[o] += (double)layers[k].weight[o * layers[k].n_in + i] * x[i];
            if (layers[k].relu && y[o] < 0)
                y[o] = 0;
            if (layers[k].exp2)
                y[o] = exp2(y[o]);
        }
        memcpy(x, y, sizeof(x));
    }
    memcpy(out, x, c->widths[c->n_layers] * sizeof(*out));
}

static double worst_error(const struct net_case *c,
                          const struct mlp_layer *layers, const float *in,
                          const float *got)
{
    static double want[FAST_MLP_MAX_WIDTH];
    const uint32_t n_out = c->widths[c->n_layers];
    double worst = 0;

    for (size_t r = 0; r < MAX_ROWS; r++) {
        eval_double(c, layers, in + r * c->widths[0], want);
        for (uint32_t o = 0; o < n_out; o++) {
            double error = fabs((double)got[r * n_out + o] - want[o]);

            worst = tap_worst(worst, error / (1 + fabs(want[o])));
        }
    }
    return worst;
}

/* Splitting the rows into batches of any size gives the same bits. */
static int batches_agree(const struct fast_mlp *mlp, const float *in,
                         const float *want, float *out)
{
    for (size_t step = 1; step <= 9; step++) {
        for (size_t begin = 0; begin < MAX_ROWS; begin += step) {
            size_t n = begin + step > MAX_ROWS ? MAX_ROWS - begin : step;

            mlp->eval(mlp, in + begin * mlp->n_in, n, out + begin * mlp->n_out);
        }
        if (memcmp(out, want, sizeof(*out) * MAX_ROWS * mlp->n_out))
            return 0;
    }
    return 1;
}

static void test_case(const struct net_case *c, uint64_t seed)
{
    struct mlp_layer layers[FAST_MLP_MAX_LAYERS];
    struct arena arena = {0};
    struct fast_mlp mlp;
    struct rng rng;
    const float *in;
    float *portable, *got;
    size_t out_size;

    rng_init(&rng, seed, 0);
    for (uint32_t k = 0; k < c->n_layers; k++) {
        layers[k].n_in = c->widths[k];
        layers[k].n_out = c->widths[k + 1];
        layers[k].weight =
            random_floats(&rng, (size_t)layers[k].n_in * layers[k].n_out,
                          1 / sqrt(c->widths[k]), 0, &arena);
        layers[k].bias = random_floats(&rng, layers[k].n_out, 0.5, 0, &arena);
        layers[k].relu = k + 1 < c->n_layers && !c->exp2;
        layers[k].exp2 = c->exp2 && layers[k].n_out > FAST_MLP_NARROW;
    }
    in = random_floats(&rng, (size_t)MAX_ROWS * c->widths[0], 4, 0, &arena);
    out_size = sizeof(float) * MAX_ROWS * c->widths[c->n_layers];
    portable = arena_alloc(&arena, out_size, 1);
    got = arena_alloc(&arena, out_size, 1);

    fast_mlp_init(&mlp, layers, c->n_layers, CPU_PORTABLE, &arena);
    mlp.eval(&mlp, in, MAX_ROWS, portable);
    ok(worst_error(c, layers, in, portable) < 1e-5, "%s: near double precision",
       c->name);
    for (int isa = CPU_PORTABLE; isa <= (int)cpu_isa_best(); isa++) {
        fast_mlp_init(&mlp, layers, c->n_layers, (enum cpu_isa)isa, &arena);
        mlp.eval(&mlp, in, MAX_ROWS, got);
        ok(!memcmp(got, portable, out_size), "%s: %s gives the portable bits",
           c->name, cpu_isa_name((enum cpu_isa)isa));
        ok(batches_agree(&mlp, in, portable, got),
           "%s: %s is blind to the batch size", c->name,
           cpu_isa_name((enum cpu_isa)isa));
    }
    arena_release(&arena);
}

static void test_nan(void)
{
    static float weight[2] = {1, 1}, bias[1] = {0};
    const struct mlp_layer layer = {2, 1, weight, bias, .relu = true};
    const float in[4] = {NAN, 1, 1, 2};
    struct fast_mlp mlp;
    struct arena arena = {0};
    float out[2];

    fast_mlp_init(&mlp, &layer, 1, cpu_isa_best(), &arena);
    mlp.eval(&mlp, in, 2, out);
    ok(isnan(out[0]), "NaN passes a ReLU");
    is_near((double)out[1], 3, 0, "and does not reach the next row");
    arena_release(&arena);
}

/* Logarithm of the last inputs, from 0 to more than any device holds. Each
 * instruction set gives the same bits. */
static void test_logs(void)
{
    enum { N = 40, N_INPUTS = 3 };
    static float weight[N_INPUTS * 8] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0,
                                         0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0};
    static float bias[8] = {0};
    const struct mlp_layer layer = {N_INPUTS, 8, weight, bias, .relu = false};
    float in[N * N_INPUTS], out[N * 8], portable[N * 8] = {0};
    struct fast_mlp mlp;
    struct arena arena = {0};

    for (size_t i = 0; i < N; i++) {
        in[i * N_INPUTS] = (float)i;
        in[i * N_INPUTS + 1] = i ? (float)pow(10, (double)i * 0.45 - 3) : 0;
        in[i * N_INPUTS + 2] = (float)i * 0.05F;
    }
    for (int isa = CPU_PORTABLE; isa <= (int)cpu_isa_best(); isa++) {
        double worst = 0;

        fast_mlp_init(&mlp, &layer, 1, (enum cpu_isa)isa, &arena);
        mlp.n_logs = 2;
        mlp.eval(&mlp, in, N, out);
        for (size_t i = 0; i < N; i++) {
            worst =
                tap_worst(worst, fabs((double)(out[i * 8] - in[i * N_INPUTS])));
            for (size_t k = 1; k < N_INPUTS; k++) {
                const double x = 1 + (double)in[i * N_INPUTS + k];

                worst =
                    tap_worst(worst, fabs((double)out[i * 8 + k] - log2(x)) /
                                         (1 + log2(x)));
            }
        }
        ok(worst < 1e-6, "%s: log2(1 + x) is off by %.1e",
           cpu_isa_name((enum cpu_isa)isa), worst);
        if (isa == CPU_PORTABLE)
            memcpy(portable, out, sizeof(out));
        ok(!memcmp(portable, out, sizeof(out)), "%s: the portable bits",
           cpu_isa_name((enum cpu_isa)isa));
    }
    in[N_INPUTS - 1] = NAN;
    mlp.eval(&mlp, in, 1, out);
    ok(isnan(out[2]), "NaN has no logarithm");
    arena_release(&arena);
}

static void test_warning(void)
{
    const char *warning = fast_mlp_warning(CPU_PORTABLE);

    ok(!fast_mlp_warning(CPU_AVX2) && !fast_mlp_warning(CPU_AVX512),
       "no warning for instruction sets with fused multiply-add");
#ifdef __x86_64__
    is_str(warning,
           "cost models that are nets take some 20 times as long without AVX2, "
           "which this machine lacks or may not use",
           "the portable body is slow");
#else
    (void)warning;
#endif
}

/* Checks for fused multiply-add: if the product were rounded before the
 * addition, the result would be 0. */
static void test_fused(void)
{
    const float x = 1 + 0x1p-12F, weight = x, bias = -(1 + 0x1p-11F);
    float wide[FAST_MLP_NARROW + 1];
    float weights[FAST_MLP_NARROW + 1], biases[FAST_MLP_NARROW + 1];
    struct fast_mlp mlp;
    struct arena arena = {0};

    for (size_t o = 0; o <= FAST_MLP_NARROW; o++) {
        weights[o] = weight;
        biases[o] = bias;
    }
    for (int isa = CPU_PORTABLE; isa <= (int)cpu_isa_best(); isa++) {
        const struct mlp_layer layer = {1, FAST_MLP_NARROW + 1, weights, biases,
                                        .relu = false};

        fast_mlp_init(&mlp, &layer, 1, (enum cpu_isa)isa, &arena);
        mlp.eval(&mlp, &x, 1, wide);
        ok(wide[0] == 0x1p-24F && wide[FAST_MLP_NARROW] == 0x1p-24F,
           "%s: products are not rounded", cpu_isa_name((enum cpu_isa)isa));
    }
    arena_release(&arena);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        test_case(&cases[i], 100 + i);
    test_nan();
    test_logs();
    test_warning();
    test_fused();
    return tap_done();
}
