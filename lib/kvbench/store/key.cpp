// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/key.hpp>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/methods/python_name.hpp>
#include <kvbench/store/method_files.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::store {

std::string key_of_bytes(std::string_view bytes) {
  return trace::Sha256().add(fmt::format("{} {} {}", version(), commit(), bytes)).hex();
}

MethodInputs inputs_of(const methods::MethodInfo& method, const std::string& params) {
  MethodInputs inputs{method.name, params, {}};
  for (const NamedFile& file : files_of_method(method, params)) {
    const std::string ran = methods::source_sha256(file.path);
    inputs.files += " " + (ran.empty() ? trace::sha256_of_file(file.path) : ran);
  }
  return inputs;
}

}  // namespace kvbench::store
