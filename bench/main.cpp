// SPDX-License-Identifier: Apache-2.0
// kvbench_bench [--isa scalar|avx2|avx512] [--device cpu|cuda|ref] [--only PART-OF-NAME] [--repeats N] [--serve]
//   [--keys FILE --columns D]
// Host kernels are timed by the CPU time of their thread, so that neighbours on a shared machine do not count; CUDA by
// the clock, over kQueued calls that wait for each other on the device alone. Prints one row per operation; an
// operation whose result differs from the reference is not timed. --serve: the one selected operation runs once for
// each line read, and its milliseconds are printed (used by torch/compare.py). --keys: the searches among the keys of a
// file of fp32 rows.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "cases.hpp"
#include "probes.hpp"

namespace {

using namespace kvbench;
using namespace kvbench::bench;

struct Options {
  Isa isa = best_isa();
  std::string device = "cpu";
  std::string only;
  int repeats = 7;
  std::string keys;
  int columns = 0;
  bool serve = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--serve") {
      options.serve = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--only") {
      options.only = value;
    } else if (flag == "--keys") {
      options.keys = value;
    } else if (flag == "--columns" && std::atoi(value.c_str()) > 0) {
      options.columns = std::atoi(value.c_str());
    } else if (flag == "--repeats" && std::atoi(value.c_str()) > 0) {
      options.repeats = std::atoi(value.c_str());
    } else if (flag == "--device" && (value == "cpu" || value == "cuda" || value == "ref")) {
      options.device = value;
    } else if (flag == "--isa" && (value == "scalar" || value == "avx2" || value == "avx512")) {
      options.isa = value == "scalar" ? Isa::scalar : value == "avx2" ? Isa::avx2 : Isa::avx512;
    } else {
      std::fprintf(stderr, "kvbench_bench: cannot use %s %s\n", flag.c_str(), value.c_str());
      std::exit(2);
    }
  }
  return options;
}

std::unique_ptr<Backend> make_backend(const Options& options) {
  if (options.device == "cuda") return make_cuda_backend();
  return options.device == "ref" ? make_ref_backend() : make_cpu_backend(options.isa);
}

std::vector<Case> cases_of(const Options& options) {
  if (options.keys.empty()) return all_cases();
  std::ifstream file(options.keys, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<float> keys(bytes.size() / sizeof(float));
  if (!keys.empty()) std::memcpy(keys.data(), bytes.data(), keys.size() * sizeof(float));
  if (options.columns > 0 && !keys.empty()) return key_cases(keys, options.columns);
  throw std::runtime_error("--keys needs a file with rows of fp32 numbers, and --columns");
}

constexpr int kQueued = 16;  // calls per measurement on a device: a launch can take longer than the kernel

bool on_host(const Backend& backend) { return backend.device() != "cuda"; }

/// Of one call.
double milliseconds(Backend& backend, const Bound& bound, const Buffer<float>& token) {
  const bool host = on_host(backend);
  const int calls = host ? 1 : kQueued;
  const double start = host ? thread_seconds() : wall_seconds();
  for (int i = 0; i < calls; ++i) bound.run();
  backend.read(token);  // waits for asynchronous devices
  return 1e3 * ((host ? thread_seconds() : wall_seconds()) - start) / calls;
}

/// Largest difference relative to the larger of 1 and the reference.
double difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  double worst = actual.size() == expected.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < actual.size() && i < expected.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    const double d = std::fabs(static_cast<double>(actual[i]) - expected[i]) / std::fmax(1, std::fabs(expected[i]));
    worst = std::isnan(d) ? INFINITY : std::fmax(worst, d);
  }
  return worst;
}

bool correct(const Case& c, const Bound& bound) {
  constexpr double tolerance = 1e-4;
  const auto ref = make_ref_backend();
  const Bound expected = c.bind(*ref);
  expected.run();
  bound.run();
  const double worst = difference(bound.results(), expected.results());
  if (worst > tolerance) std::printf("%-30s differs from the reference by %.1e: not timed\n", c.name.c_str(), worst);
  return worst <= tolerance;
}

/// Measured beside each row, because clock rates drift.
double multiply_add_rate(const Backend& backend, Isa isa) {
  return on_host(backend) ? probe_flops(isa) : probe_device().flops;
}

void print_row(const Case& c, Backend& backend, const Options& options, double peak_bytes) {
  const Bound bound = c.bind(backend);
  if (!correct(c, bound)) return;
  const auto token = backend.allocate<float>(1);
  const Cost before = backend.cost();
  bound.run();
  const double flops = c.flops > 0 ? c.flops : backend.cost().flops - before.flops;
  const double bytes = backend.cost().bytes - before.bytes;
  double best = milliseconds(backend, bound, token);
  for (int i = 1; i < options.repeats; ++i) best = std::min(best, milliseconds(backend, bound, token));
  const double peak_flops = multiply_add_rate(backend, options.isa);
  const double seconds = best / 1e3;
  std::printf("%-30s %9.3f ms %8.1f GF/s %5.1f %% %8.2f GB/s %5.1f %%\n", c.name.c_str(), best, flops / seconds / 1e9,
              100 * flops / seconds / peak_flops, bytes / seconds / 1e9, 100 * bytes / seconds / peak_bytes);
  std::fflush(stdout);
}

int serve(const Case& c, Backend& backend, Isa isa) {
  const Bound bound = c.bind(backend);
  if (!correct(c, bound)) return 1;
  const auto token = backend.allocate<float>(1);
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "probe")
      std::printf("%.6g\n", multiply_add_rate(backend, isa) / 1e9);
    else
      std::printf("%.6f\n", milliseconds(backend, bound, token));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  const auto backend = make_backend(options);
  std::vector<Case> cases = cases_of(options);
  std::erase_if(cases, [&](const Case& c) { return c.name.find(options.only) == std::string::npos; });
  if (options.serve) return cases.empty() ? 2 : serve(cases.front(), *backend, options.isa);

  const double peak_bytes = on_host(*backend) ? probe_bandwidth() : probe_device().bytes;
  std::printf("%s %s%s; %.1f GB/s read; %% of the FMA rate probed beside each row and of that bandwidth\n",
              backend->name().c_str(), std::string(backend->isa()).c_str(), on_host(*backend) ? ", 1 thread" : "",
              peak_bytes / 1e9);
  for (const Case& c : cases) print_row(c, *backend, options, peak_bytes);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "kvbench_bench: %s\n", e.what());
  return 3;
}
