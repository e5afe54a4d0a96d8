// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/convert.hpp>

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>

#include <apps/common/model_cache.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/llama/model.hpp>

namespace kvbench::llama {
namespace {

/// llama.cpp reports no cause where it cannot write. The errno of writing so many bytes; 0 where that is possible.
int write_fault(const std::string& path, std::uint64_t bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int fault = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  ::close(fd);
  return fault;
}

void convert(const Model& model, const std::string& path, std::uint64_t bytes, int threads) {
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = threads;
  params.ftype = LLAMA_FTYPE_ALL_F32;
  params.allow_requantize = true;
  const auto status = llama_model_quantize(model.path().c_str(), path.c_str(), &params);
  app::stop_if_requested();
  if (status == 0) return;
  if (const int fault = write_fault(path, bytes)) throw_write_error(path, "cannot be written", fault);
  throw Error("{}: cannot be converted to fp32{}", model.path(), first_llama_error());
}

}  // namespace

std::string converted_to_f32(const Model& model, const std::string& sha256, int threads) {
  const std::uint64_t bytes = 4 * model.num_parameters();
  return app::ModelCache().copy_of(model.path(), sha256, bytes,
                                   [&](const std::string& path) { convert(model, path, bytes, threads); });
}

}  // namespace kvbench::llama
