// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include <fmt/chrono.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>

#include <apps/common/model_cache.hpp>
#include <apps/kvbench/commands.hpp>

namespace kvbench::app {
namespace {

struct CacheFlags {
  std::vector<std::string> remove;
  bool clear = false;
};

double in_gib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

/// Whether a copy is what the user calls `name`: the file that was converted, or the copy itself.
bool is_called(const ModelCopy& copy, const std::string& name) {
  return copy.model == name || copy.path.filename() == name || copy.path == name;
}

std::string list(const ModelCache& cache, const std::vector<ModelCopy>& copies) {
  std::string out;
  std::uint64_t bytes = 0;
  for (const ModelCopy& copy : copies) {
    const auto used = std::chrono::system_clock::to_time_t(std::chrono::file_clock::to_sys(copy.used));
    out += fmt::format("{:8.2f} GiB  last used {:%Y-%m-%d}  {}  {}\n", in_gib(copy.bytes), fmt::localtime(used),
                       copy.model.empty() ? "(unknown model)" : copy.model, copy.path.string());
    bytes += copy.bytes;
  }
  return out + fmt::format("{} fp32 cop{} of models, {:.2f} of {:.0f} GiB, in {}\n", copies.size(),
                           copies.size() == 1 ? "y" : "ies", in_gib(bytes), in_gib(cache.limit()),
                           cache.folder().string());
}

int run(const CacheFlags& flags) {
  const ModelCache cache;
  std::vector<ModelCopy> copies = cache.copies();
  for (const std::string& name : flags.remove) {
    if (std::ranges::none_of(copies, [&](const ModelCopy& copy) { return is_called(copy, name); }))
      throw Error("--remove {}: the cache has no such copy; `kvbench cache` lists them", name);
  }
  const auto unwanted = std::stable_partition(copies.begin(), copies.end(), [&](const ModelCopy& copy) {
    return !flags.clear &&
           std::ranges::none_of(flags.remove, [&](const std::string& name) { return is_called(copy, name); });
  });
  std::for_each(unwanted, copies.end(), ModelCache::remove);
  copies.erase(unwanted, copies.end());
  print(printable(list(cache, copies), "\n"));
  return done;
}

}  // namespace

Command add_cache(CLI::App& app) {
  auto flags = std::make_shared<CacheFlags>();
  CLI::App* command =
      app.add_subcommand("cache", "List or remove the fp32 copies of models that kveval and kvdump --f32 have made");
  command->add_option("--remove", flags->remove, "Remove the copy of the model, or the copy, of this name");
  command->add_flag("--clear", flags->clear, "Remove all copies")->excludes("--remove");
  command->footer("The environment variable KVBENCH_CACHE_GIB limits the size of all copies (default: 50).");
  return {command, [flags] { return run(*flags); }};
}

}  // namespace kvbench::app
