// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/convert.hpp>

#include <cerrno>
#include <filesystem>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>

#include <apps/common/model_cache.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/llama/model.hpp>

namespace kvbench::llama {
namespace {

/// llama.cpp reports no cause where it cannot write.
bool is_full(const std::string& path) {
  std::error_code error;
  const auto space = std::filesystem::space(std::filesystem::path(path).parent_path(), error);
  return !error && space.available < (std::uintmax_t{64} << 20);
}

void convert(const Model& model, const std::string& path, int threads) {
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = threads;
  params.ftype = LLAMA_FTYPE_ALL_F32;
  params.allow_requantize = true;
  const auto status = llama_model_quantize(model.path().c_str(), path.c_str(), &params);
  app::stop_if_requested();
  if (status == 0) return;
  if (is_full(path)) throw_write_error(path, "the fp32 copy of the model cannot be written", ENOSPC);
  throw Error("{}: cannot be converted to fp32{}", model.path(), last_llama_error());
}

}  // namespace

std::string converted_to_f32(const Model& model, int threads) {
  return app::ModelCache().copy_of(model.path(), 4 * model.num_parameters(),
                                   [&](const std::string& path) { convert(model, path, threads); });
}

}  // namespace kvbench::llama
