// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/key.hpp>

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::store {
namespace {

std::string digests_of_files(const std::string& params) {
  std::string digests;
  std::istringstream settings(params);
  for (std::string setting; std::getline(settings, setting, ';');) {
    const std::string value = setting.substr(setting.find('=') + 1);
    std::error_code none;
    if (std::filesystem::is_regular_file(value, none)) digests += " " + trace::sha256_of_file(value);
  }
  return digests;
}

}  // namespace

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
  return {method, params, digests_of_files(params)};
}

}  // namespace kvbench::store
