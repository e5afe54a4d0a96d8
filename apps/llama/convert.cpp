// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/convert.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/read_files.hpp>

#include <apps/common/stop_signals.hpp>
#include <apps/llama/model.hpp>

namespace kvbench::llama {
namespace {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (xdg != nullptr && *xdg != '\0') return fs::path(xdg) / "kvbench";
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache" / "kvbench";
  throw Error(
      "--f32 stores the converted model in a cache folder, but neither XDG_CACHE_HOME nor HOME is set: set one");
}

/// 64-bit FNV-1a: distinguishes files, but is not collision-resistant.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const unsigned char byte : text) value = (value ^ byte) * 0x100000001b3u;
  return value;
}

fs::path cached_name(const fs::path& model) {
  const auto size = fs::file_size(model);
  const auto time = fs::last_write_time(model).time_since_epoch().count();
  const auto key = fmt::format("{}:{}:{}", fs::canonical(model).string(), size, time);
  return cache_folder() / fmt::format("{}-{:016x}-f32.gguf", model.stem().string(), hash(key));
}

}  // namespace

std::string converted_to_f32(const std::string& model, int threads) {
  std::error_code error;
  if (!fs::is_regular_file(model, error)) {
    throw Error(
        "{}: there is no such model file; give the path of a GGUF file (scripts/fetch-model downloads a small one)",
        model);
  }
  remember_read(model);
  const fs::path target = cached_name(model);
  if (fs::exists(target)) return target.string();
  fs::create_directories(target.parent_path(), error);
  if (error)
    throw IoError("{}: the cache folder cannot be created: {}", target.parent_path().string(), error.message());

  AtomicFile file(target.string());
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = threads;
  params.ftype = LLAMA_FTYPE_ALL_F32;
  params.allow_requantize = true;
  const auto status = llama_model_quantize(model.c_str(), file.temporary().c_str(), &params);
  app::stop_if_requested();
  if (status != 0) {
    throw Error(
        "{}: cannot be converted to fp32 in {} (is it a GGUF model, and is there space for 4 bytes per weight?){}",
        model, target.parent_path().string(), last_llama_error());
  }
  file.publish();
  return target.string();
}

}  // namespace kvbench::llama
