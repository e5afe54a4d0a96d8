// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/run/head_memory.hpp>

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/exact/exact_pass.hpp>
#include <kvbench/replay/run/devices.hpp>

namespace kvbench::replay {
namespace {

/// Peak size of a method's copies relative to the keys and values of the head: a merge round copies five eighths
/// (chelsea), walks and clusterings one half. State that budgets share is at most one half.
constexpr double method_share = 0.625;
/// Rows of a configuration that stores tokens in fewer bits, relative to the keys and values of the head: decoded ones,
/// a copy of them with those that wait (KIVI, QJL), and the array that is being encoded. Where tokens are appended, it
/// also copies the exact ones, and the storage of both doubles as it grows.
constexpr double rounded_share = 2.5, growing_rounded_share = 4;
/// Bytes of the program itself, HDF5, the back end, and tables of ids and labels.
constexpr double fixed_bytes = 64e6;

double in_gib(double bytes) { return bytes / (1 << 30); }

/// The smallest memory.max of this process's control group and its parents; `none` where no limit is set.
double control_group_limit(double none) {
  std::ifstream groups("/proc/self/cgroup");
  double least = none;
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;  // version 2
    for (std::string path = line.substr(3); !path.empty(); path.resize(path.rfind('/'))) {
      std::ifstream file("/sys/fs/cgroup" + path + "/memory.max");
      if (double limit = 0; file >> limit) least = std::min(least, limit);  // "max" is not parsed: no limit
    }
  }
  return least;
}

/// Bytes of a compressed chunk and of what it inflates to. One chunk is read at a time, whatever the number of threads.
double chunk_bytes(const trace::TraceInfo& trace, const ReplayPlan& plan) {
  const std::uint64_t other = plan.calibration ? plan.calibration->trace->info().largest_chunk : 0;
  return 2 * static_cast<double>(std::max(trace.largest_chunk, other));
}

/// Bytes of the work item's heads of the calibration text.
double calibration_bytes(const trace::TraceInfo& trace, const ReplayPlan& plan, const WorkItem& item) {
  if (!plan.calibration) return 0;
  const trace::TraceInfo& other = plan.calibration->trace->info();
  const auto& layers = other.prompts[plan.calibration->prompt].layers;
  const int layer = trace.prompts[item.prompt.prompt].layers[item.layer].layer;
  const auto found = std::ranges::find(layers, layer, &trace::LayerInfo::layer);
  if (found == layers.end()) return 0;
  const HeadPlace place{plan.calibration->prompt, static_cast<std::size_t>(found - layers.begin()), 0};
  return static_cast<double>(item.kv_heads.size() * slab_bytes(other, place));
}

}  // namespace

double work_item_bytes(const trace::TraceInfo& trace, const WorkItem& item) {
  const trace::PromptInfo& prompt = trace.prompts[item.prompt.prompt];
  const trace::LayerInfo& layer = prompt.layers[item.layer];
  const auto number = [](auto count) { return static_cast<double>(count); };
  const double n = number(prompt.num_tokens), d = number(trace.head_dim), group = number(trace.group());
  const double slabs = n * (d + number(trace.value_dim));
  const double queries = group * number(layer.query_positions.size()) * d * (layer.speculated_queries ? 2 : 1);
  const double columns = layer.column_sums_end ? group * n : 0;
  const double masses = 2 * sizeof(double) * group * n;  // ContextMass
  const double unrotated = layer.keys_pre_rope ? n * d : 0;
  const double rounded = number(item.rounding) * (item.prompt.appends() ? growing_rounded_share : rounded_share);
  const double head =
      sizeof(float) * (slabs * (1 + method_share + rounded) + unrotated + columns + 2 * queries) + masses;
  // Four arrays have the size of a block's scores: scores, softmax rows, the scores of a run of queries, and the scores
  // in the token ids of a method. A block has at least one query.
  const double heads = number(item.kv_heads.size());
  const double scores = 4 * std::max(score_bytes, heads * group * n * sizeof(float));
  return fixed_bytes + scores + heads * head;
}

double default_memory() {
  const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return 0.75 * control_group_limit(machine);
}

ThreadPlan plan_threads(const trace::TraceInfo& trace, const ReplayPlan& plan, const RunOptions& options) {
  const auto wanted = static_cast<int>(thread_count(options));
  if (options.backend == "cuda") return {.threads = wanted};  // heads are kept in device memory (explained())
  const double allowed = options.memory > 0 ? options.memory : default_memory(), chunk = chunk_bytes(trace, plan);
  const double memory = allowed - chunk;
  const WorkItem* largest = nullptr;
  double need = 0;
  for (const WorkItem& item : plan.work_items) {
    const double bytes = work_item_bytes(trace, item) + calibration_bytes(trace, plan, item);
    if (bytes > need) largest = &item, need = bytes;
  }
  if (largest == nullptr || need * wanted <= memory) return {.threads = wanted, .spare = memory - need * wanted};
  const auto fitting = static_cast<int>(std::max(0.0, memory / need));
  if (fitting > 0) {
    return {.threads = std::min(wanted, fitting),
            .note = fmt::format("{} of {} threads run: a head needs up to {:.1f} GiB, and `memory` allows {:.1f} GiB",
                                std::min(wanted, fitting), wanted, in_gib(need), in_gib(allowed)),
            .spare = memory - need * fitting};
  }
  if (largest->kv_heads.size() > 1) {
    throw Error(
        "all {} kv heads of a layer, which some methods need together (infinigen, chelsea with outlier heads), need up "
        "to {:.2f} GiB, and `memory` allows {:.2f} GiB; raise `memory`, select fewer `kv_heads`, or leave these "
        "methods out",
        largest->kv_heads.size(), in_gib(need + chunk), in_gib(allowed));
  }
  throw Error(
      "a head of {} tokens needs up to {:.2f} GiB{}, and `memory` allows {:.2f} GiB; raise `memory`, or use a shorter "
      "trace",
      trace.prompts[largest->prompt.prompt].num_tokens, in_gib(need + chunk),
      chunk > need ? fmt::format(" ({:.2f} GiB for a compressed chunk; h5repack makes smaller ones)", in_gib(chunk))
                   : "",
      in_gib(allowed));
}

namespace {

/// The number of tokens at which the memory held and requested would have fitted: both grow in proportion to the
/// tokens.
Index fitting_tokens(const OutOfDeviceMemory& fault, Index tokens) {
  const DeviceMemory& memory = fault.memory();
  const double wanted = static_cast<double>(memory.held) + static_cast<double>(fault.asked());
  return static_cast<Index>(static_cast<double>(tokens) * static_cast<double>(memory.limit) / wanted);
}

}  // namespace

OutOfDeviceMemory explained(const OutOfDeviceMemory& fault, const WorkItemSize& item) {
  std::string advice;
  if (item.threads > 1) {
    advice = fmt::format("{} work items are computed at the same time; set `threads` to 1.", item.threads);
  } else if (item.heads > 1) {
    advice = fmt::format(
        "Methods that see the whole layer need all {} kv heads of it at once; leave these methods out, or set "
        "`backend` to cpu.",
        item.heads);
  } else {
    advice = "Use a trace of fewer tokens (kvdump --ctx), leave methods out, or set `backend` to cpu.";
  }
  return {fault.asked(), fault.memory(),
          fmt::format(
              "{} The current work item has {} tokens and {} kv head{}; up to about {} tokens would have fitted. {}",
              fault.what(), item.tokens, item.heads, item.heads == 1 ? "" : "s", fitting_tokens(fault, item.tokens),
              advice)};
}

}  // namespace kvbench::replay
