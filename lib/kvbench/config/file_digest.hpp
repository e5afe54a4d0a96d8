// SPDX-License-Identifier: Apache-2.0
// Methods that a file defines have the first digits of its SHA-256 among their parameters, so that rows and keys of an
// edited file are others.
#pragma once

#include <string>
#include <vector>

#include <kvbench/methods/contract/params.hpp>

namespace kvbench::config {

/// The parameter `sha256` of a method whose file has this digest.
methods::ParamSpec digest_param(const std::string& digest);

/// Removes the parameter from `settings`, and returns its canonical text. Throws Error where it names another digest.
std::string take_digest(const std::string& method, const std::string& digest,
                        std::vector<methods::Assignment>& settings);

}  // namespace kvbench::config
