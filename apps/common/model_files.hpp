// SPDX-License-Identifier: Apache-2.0
// The files of which a model consists, and what it is known by wherever something of it is reused.
#pragma once

#include <string>
#include <vector>

namespace kvbench::app {

/// The GGUF file `path`, or, where its name ends in -00001-of-00003.gguf as those of llama.cpp's splits do, the parts
/// beside it that exist, in their order.
std::vector<std::string> model_files(const std::string& path);

/// The digest of a model: the SHA-256 of its file, in lower-case hex; of several, that of the lines with their digests.
/// Throws IoError where one cannot be read.
std::string model_sha256(const std::string& path);

}  // namespace kvbench::app
