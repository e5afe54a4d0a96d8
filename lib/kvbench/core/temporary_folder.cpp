// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/temporary_folder.hpp>

#include <kvbench/core/error.hpp>

namespace kvbench {

std::filesystem::path temporary_folder() {
  std::error_code code;
  std::filesystem::path folder = std::filesystem::temp_directory_path(code);
  if (code)
    throw Error("the folder for temporary files cannot be used: {}; set TMPDIR to an existing folder", code.message());
  return folder;
}

}  // namespace kvbench
