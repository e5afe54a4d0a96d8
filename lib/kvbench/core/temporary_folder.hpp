// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace kvbench {

/// The folder for temporary files. Throws Error where TMPDIR names none.
std::filesystem::path temporary_folder();

}  // namespace kvbench
