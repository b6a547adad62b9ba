// SPDX-License-Identifier: MIT
// Tries configs, tiles and parts of backward weight by patches (kernels/cuda/halo_weight.hpp) on layers, beside a plain sum:
//   nvcc -std=c++20 -arch=sm_90a --expt-relaxed-constexpr -I. benchmarks/halo_weight_tuning.cu -o tuning && ./tuning
// Prints for each layer the time of another library and the floor it was given, and the best choices in us.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/halo_weight.hpp"
using namespace tilewise;
using namespace cuda;
using S = std::string;
typedef long long ll;
template <int TM, int TN, int WM, int WN, int WK, int ME, int ST, int BP, int VB = 8>
struct Cf {
    using A = Bf16;
    using B = A;
    using Out = A;
    static constexpr int tile_m = TM, tile_n = TN, wave_m = WM, wave_n = WN, wave_k = WK, merge = ME, stages = ST,
                         vector_b = VB, threads = 32 * WM * WN * WK, blocks_per_unit = BP,
                         shared_bytes = (233472 / BP - 1024) / 1024 * 1024;
};
template <class C>
__global__ void __launch_bounds__(C::threads, C::blocks_per_unit) kern(const __grid_constant__ KernelArgs a) {
    HaloWeight<C>(a).work();
}
__global__ void red(const __grid_constant__ KernelArgs a) { reduce_many_parts<Bf16>(a); }
__device__ float f(u16 x) { return Bf16::to_float(x); }
__global__ void refk(const u16* y, const u16* x, float* o, KernelConv v) {
    ll t = v.filter[0] * v.filter[1] * v.filter[2], id = blockIdx.x;
    int c = id % v.c;
    id /= v.c;
    int tap = id % t;
    id /= t;
    int k = id % v.k, g = id / v.k, tw = tap % v.filter[2], th = tap / v.filter[2] % v.filter[1],
        td = tap / v.filter[2] / v.filter[1];
    float s = 0, m = 0;
    ll P = v.out[0] * v.out[1] * v.out[2];
    for (ll i = threadIdx.x; i < v.images * P; i += 128) {
        ll n = i / P, p = i % P;
        int xw = p % v.out[2] * v.stride[2] + tw * v.dilation[2] - v.pad[2],
            xh = p / v.out[2] % v.out[1] * v.stride[1] + th * v.dilation[1] - v.pad[1],
            xd = p / v.out[2] / v.out[1] * v.stride[0] + td * v.dilation[0] - v.pad[0];
        if (xw < 0 || xh < 0 || xd < 0 || xw >= v.in[2] || xh >= v.in[1] || xd >= v.in[0]) continue;
        float q = f(y[n * v.y.image_stride + p * v.y.pixel_stride + g * v.k + k]) *
                  f(x[n * v.x.image_stride + ((xd * v.in[1] + xh) * v.in[2] + xw) * v.x.pixel_stride + g * v.c + c]);
        s += q;
        m += fabsf(q);
    }
    __shared__ float A[256];
    A[threadIdx.x] = s;
    A[threadIdx.x + 128] = m;
    __syncthreads();
    if (!threadIdx.x) {
        for (int i = 1; i < 128; ++i) s += A[i], m += A[128 + i];
        o[2 * blockIdx.x] = s;
        o[2 * blockIdx.x + 1] = m;
    }
}
__global__ void fill(u16* p, ll n, u32 e) {
    for (ll i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        u32 h = (u32)i * 2654435761u ^ e;
        h ^= h >> 15;
        h *= 2246822519u;
        h ^= h >> 13;
        p[i] = Bf16::from_float((h & 65535) / 32768.f - 1);
    }
}
struct L {
    const char* s;
    int n, g, c, k, d, h, w, a, b, e, t, p, l;
    float u, r;
};
struct E {
    S s;
    int tm, tn, wn, me, st, bp, th, sh, vb;
    void (*k)(const KernelArgs);
};
std::vector<E> es;
template <class C>
void add(const char* n) {
    auto f = kern<C>;
    cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, C::shared_bytes);
    es.push_back({n, C::tile_m, C::tile_n, C::wave_n, C::merge, C::stages, C::blocks_per_unit, C::threads,
                  C::shared_bytes, C::vector_b, f});
}
ll du(ll a, ll b) { return (a + b - 1) / b; }
#define Q(...) add<Cf<__VA_ARGS__>>(#__VA_ARGS__);
int main() {
    Q(144, 64, 1, 4, 1, 16, 2, 2)
    Q(144, 64, 1, 4, 1, 16, 2, 3)
    Q(144, 64, 1, 4, 1, 8, 2, 2)
    Q(144, 64, 1, 4, 1, 8, 2, 3)
    Q(144, 64, 1, 4, 1, 4, 2, 2)
    Q(144, 16, 1, 1, 4, 1, 2, 3)
    Q(224, 24, 2, 1, 2, 1, 2, 3)
    Q(224, 48, 2, 2, 1, 2, 2, 3)
    Q(288, 32, 2, 1, 2, 1, 2, 2)
    Q(288, 32, 6, 1, 1, 1, 2, 3)
    Q(384, 40, 4, 1, 1, 1, 2, 2)
    Q(512, 56, 8, 1, 1, 1, 2, 1)
    Q(288, 64, 6, 1, 1, 1, 2, 2)
    Q(576, 64, 9, 1, 1, 1, 2, 1)
    Q(240, 80, 5, 1, 1, 1, 2, 2)
    Q(384, 80, 8, 1, 1, 1, 2, 1)
    Q(384, 104, 8, 1, 1, 1, 2, 1)
    Q(224, 64, 7, 1, 1, 1, 2, 2, 1) u16 *X, *Y, *D;
    float *W, *R;
    cudaMalloc(&X, 300 << 20);
    cudaMalloc(&Y, 300 << 20);
    cudaMalloc(&D, 64 << 20);
    cudaMalloc(&W, 1 << 30);
    cudaMalloc(&R, 64 << 20);
    fill<<<1024, 256>>>(X, 150 << 20, 1);
    fill<<<1024, 256>>>(Y, 150 << 20, 2);
    cudaEvent_t e0, e1;
    cudaEventCreate(&e0);
    cudaEventCreate(&e1);
    for (L l : {L{"2d", 3, 8, 8, 8, 1, 13, 17, 1, 3, 3, 1, 1, 1, 0},
                {"s2", 2, 16, 4, 4, 1, 19, 14, 1, 3, 3, 2, 1, 1, 0},
                {"dil", 2, 16, 4, 4, 1, 12, 12, 1, 3, 3, 1, 2, 2, 0},
                {"1d", 2, 2, 24, 24, 1, 1, 100, 1, 1, 5, 1, 2, 1, 0},
                {"3ds2", 1, 4, 32, 32, 7, 6, 9, 3, 2, 3, 2, 1, 1, 0},
                {"ck", 3, 8, 8, 16, 1, 9, 9, 1, 3, 3, 1, 1, 1, 0},
                {"c104", 2, 2, 104, 80, 1, 14, 10, 1, 3, 3, 2, 1, 1, 0},
                {"few", 3, 1, 3, 64, 1, 30, 31, 1, 7, 7, 2, 3, 1, 0},
                {"rx56 4", 64, 32, 4, 4, 1, 56, 56, 1, 3, 3, 1, 1, 1, 134, 24},
                {"rx56s2 8", 64, 32, 8, 8, 1, 56, 56, 1, 3, 3, 2, 1, 1, 46, 30},
                {"rx28 8", 64, 32, 8, 8, 1, 28, 28, 1, 3, 3, 1, 1, 1, 41.5, 12},
                {"rx14 16", 64, 32, 16, 16, 1, 14, 14, 1, 3, 3, 1, 1, 1, 26, 6},
                {"rx7 32", 64, 32, 32, 32, 1, 7, 7, 1, 3, 3, 1, 1, 1, 15.8, 3.1},
                {"g28 16", 32, 16, 16, 16, 1, 28, 28, 1, 3, 3, 1, 1, 1, 30.8, 6},
                {"g56 64", 32, 4, 64, 64, 1, 56, 56, 1, 3, 3, 1, 1, 1, 72.5, 37},
                {"g14 64", 32, 8, 64, 64, 1, 14, 14, 1, 3, 3, 1, 1, 1, 15.4, 4.6},
                {"u56 24", 64, 6, 24, 24, 1, 56, 56, 1, 3, 3, 1, 1, 1, 343, 27},
                {"u28 40", 64, 8, 40, 40, 1, 28, 28, 1, 3, 3, 1, 1, 1, 248, 15},
                {"u28s2 56", 64, 5, 56, 56, 1, 28, 28, 1, 3, 3, 2, 1, 1, 97, 8.2},
                {"u14 80", 64, 10, 80, 80, 1, 14, 14, 1, 3, 3, 1, 1, 1, 146, 18},
                {"u14s2 104", 64, 7, 104, 104, 1, 14, 14, 1, 3, 3, 2, 1, 1, 27, 5.6},
                {"u28 24", 64, 14, 24, 24, 1, 28, 28, 1, 3, 3, 1, 1, 1, 394, 15.7},
                {"audio", 8, 8, 64, 64, 1, 1, 1000, 1, 1, 31, 1, 15, 1, 49.6, 20.3},
                {"rn1", 64, 1, 3, 64, 1, 224, 224, 1, 7, 7, 2, 3, 1, 293, 28.4}}) {
        KernelArgs a{};
        auto& v = a.conv;
        v.images = l.n;
        v.groups = l.g;
        v.c = l.c;
        v.k = l.k;
        int in[] = {l.d, l.h, l.w}, q[] = {l.a, l.b, l.e};
        ll ip = 1, op = 1;
        for (int i = 0; i < 3; ++i) {
            v.in[i] = in[i];
            v.filter[i] = q[i];
            v.stride[i] = in[i] == 1 ? 1 : l.t;
            v.dilation[i] = l.l;
            v.pad[i] = q[i] == 1 ? 0 : l.p;
            v.out[i] = (in[i] + 2 * v.pad[i] - (q[i] - 1) * l.l - 1) / v.stride[i] + 1;
            ip *= in[i];
            op *= v.out[i];
        }
        v.x = {ip * l.g * l.c, l.g * l.c, l.c, 1};
        v.y = {op * l.g * l.k, l.g * l.k, l.k, 1};
        a.m = l.k;
        a.n = q[0] * q[1] * q[2] * l.c;
        a.k = l.n * op;
        a.batch = l.g;
        a.c = {D, a.n, 1, a.m * a.n};
        a.alpha = 1;
        a.workspace = W;
        ll N = a.m * a.n * a.batch;
        refk<<<N, 128>>>(Y, X, R, v);
        std::vector<float> r(2 * N);
        cudaMemcpy(r.data(), R, 8 * N, cudaMemcpyDeviceToHost);
        std::vector<std::pair<float, S>> z;
        for (auto& e : es) {
            int gw = e.me > 1 ? e.me / e.wn : 1;
            if (l.g % e.me || (e.vb == 1 && (l.c > 4 || l.t % 2)) || (e.vb > 1 && gw * l.c % 8) || gw * l.k % 8 ||
                (e.me > 1 && gw * l.k > e.tn / e.wn))
                continue;
            if (l.u && (e.me > 1 ? gw * l.k * 2 <= e.tn / e.wn : (du(l.k, e.tn) * e.tn - l.k) * 3 > l.k)) continue;
            ll pr = du(halo_weight_rows(v, gw, e.vb == 1), e.tm) * (l.g / e.me) * (e.me > 1 ? 1 : du(l.k, e.tn));
            int xc = e.vb == 1 ? 0 : e.me * l.c / 8, yc = (e.me > 1 ? e.me * l.k : std::min(l.k, e.tn)) / 8;
            struct T {
                double c;
                HaloTile t;
                ll p;
            };
            std::vector<T> ts;
            for (int px : {128, 256, 512})
                for (int w = 1; w <= v.out[2]; ++w)
                    if (du(v.out[2], du(v.out[2], w)) == w)
                        for (int h = 1; h <= v.out[1] && w * h <= px; ++h)
                            if (du(v.out[1], du(v.out[1], h)) == h)
                                for (int d = 1; d <= v.out[0] && w * h * d <= px; ++d)
                                    for (int m = 1;
                                         m <= (d == v.out[0] && h == v.out[1] && w == v.out[2] ? std::min(16, l.n)
                                                                                               : 1) &&
                                         m * w * h * d <= px;
                                         ++m) {
                                        HaloTile t{m, {d, h, w}};
                                        auto s = halo_weight_shape(v, t, xc, yc);
                                        if (s.bytes(e.st, e.tm) > e.sh ||
                                            !fits_halo_fields(m, s.x.depth, s.x.height, s.x.columns))
                                            continue;
                                        ll p = du(l.n, m) * du(v.out[0], d) * du(v.out[1], h) * du(v.out[2], w);
                                        ts.push_back(
                                            {p * (std::max(
                                                      s.steps() * (e.tm / 16) * (e.tn / 8) * 1.6,
                                                      (s.x.pixels() * std::max(.5, 1. * xc) + s.rows() * yc) * .67) +
                                                  300. / e.bp),
                                             t, p});
                                    }
            std::sort(ts.begin(), ts.end(), [](auto& a, auto& b) { return a.c < b.c; });
            std::vector<T> pk;
            for (auto& t : ts) {
                bool u = 0;
                for (auto& o : pk) u |= abs(o.t.rows() - t.t.rows()) < o.t.rows() / 4 + 8;
                if (!u) pk.push_back(t);
                if (pk.size() > 2) break;
            }
            for (auto& t : pk)
                for (int hp : {1, 2, 4}) {
                    int P = std::min<ll>(t.p, std::max(1., 66. * e.bp * hp / pr));
                    const auto sh = halo_weight_shape(v, t.t, xc, yc);
                    memcpy(a.geometry, &sh, sizeof sh);
                    a.split_k = P;
                    a.patch[0] = t.t.images;
                    for (int i = 0; i < 3; ++i) a.patch[i + 1] = t.t.extent[i];
                    auto go = [&](int i, bool b) {
                        ll xs = v.x.image_stride * l.n, ys = v.y.image_stride * l.n,
                           n = std::max(1ll, std::min((150ll << 20) / xs, (150ll << 20) / ys));
                        a.b.data = X + i % n * xs;
                        a.a.data = Y + i % n * ys;
                        e.k<<<pr * P, e.th, e.sh>>>(a);
                        if (b) red<<<du(N, 128), 256>>>(a);
                    };
                    cudaMemset(W, 255, P * N * 4);
                    go(0, 1);
                    std::vector<u16> o(N);
                    cudaMemcpy(o.data(), D, 2 * N, cudaMemcpyDeviceToHost);
                    ll bad = 0, at = -1;
                    for (ll i = 0; i < N; ++i) {
                        float x = __builtin_bit_cast(float, u32(o[i]) << 16);
                        if (!(fabsf(x - r[2 * i]) <= fabsf(r[2 * i]) / 128 + r[2 * i + 1] * 2e-5f + 1e-3f))
                            bad++, at = at < 0 ? i : at;
                    }
                    char b[200];
                    if (bad)
                        printf("WRONG %s %s %dx%dx%dx%d P%d %lld/%lld at %lld %s\n", l.s, e.s.c_str(), t.t.images,
                               t.t.extent[0], t.t.extent[1], t.t.extent[2], P, bad, N, at,
                               cudaGetErrorString(cudaGetLastError()));
                    if (!l.u) continue;
                    float ms[2];
                    for (int k = 1; k >= 0; --k) {
                        cudaEventRecord(e0);
                        for (int i = 0; i < 10; ++i) go(i, k);
                        cudaEventRecord(e1);
                        cudaEventSynchronize(e1);
                        cudaEventElapsedTime(ms + k, e0, e1);
                    }
                    snprintf(b, 200, "%s %dx%dx%dx%d P%d (%.1f)", e.s.c_str(), t.t.images, t.t.extent[0], t.t.extent[1],
                             t.t.extent[2], P, ms[0] * 100);
                    z.push_back({ms[1] * 100, b});
                }
        }
        std::sort(z.begin(), z.end());
        printf("== %s %.1f %.1f", l.s, l.u, l.r);
        if (z.size()) printf(" best %.1f x%.2f %.0f%%", z[0].first, l.u / z[0].first, 100 * l.r / z[0].first);
        puts("");
        for (size_t i = 0; i < z.size() && i < 5; ++i) printf("  %.1f %s\n", z[i].first, z[i].second.c_str());
        fflush(stdout);
    }
}
