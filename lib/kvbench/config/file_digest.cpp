// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/file_digest.hpp>

#include <algorithm>

namespace kvbench::config {
namespace {

constexpr std::size_t digits_shown = 12;

}  // namespace

methods::ParamSpec digest_param(const std::string& digest) {
  return {"sha256", "text", digest.substr(0, digits_shown), "", "first digits of the SHA-256 of the file"};
}

std::string take_digest(const std::string& method, const std::string& digest,
                        std::vector<methods::Assignment>& settings) {
  const auto given = std::ranges::find(settings, "sha256", &methods::Assignment::name);
  if (given != settings.end()) {
    if (given->value.empty() || !digest.starts_with(given->value))
      throw Error("{} has the SHA-256 {}, not {}: the file has changed", method, digest, given->value);
    settings.erase(given);
  }
  return "sha256=" + digest.substr(0, digits_shown);
}

}  // namespace kvbench::config
