// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/key.hpp>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/store/method_files.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::store {

std::string key_of_bytes(std::string_view bytes) {
  return trace::Sha256().add(fmt::format("{} {} {}", version(), commit(), bytes)).hex();
}

RequestInputs inputs_of(const replay::ReplayRequest& request) {
  // All members of a request, so that a new one is considered here. Methods, budgets and seeds are inputs of their own;
  // protocol, window and protected tokens are resolved by plans; the others select what is computed.
  const auto& [methods, budgets, excluded, seeds, protocol, decoded, window, layers, kv_heads, prompts, protect_first,
               protect_last, protect_outside, dense_layers, recall_sinks, calibration, standalone, kv_element] =
      request;
  return {protect_outside, dense_layers, decoded, recall_sinks, standalone, kv_element};
}

MethodInputs inputs_of(const std::string& method, const std::string& params) {
  MethodInputs inputs{method, params, {}};
  for (const NamedFile& file : files_of_method(method, params)) inputs.files += " " + trace::sha256_of_file(file.path);
  return inputs;
}

}  // namespace kvbench::store
