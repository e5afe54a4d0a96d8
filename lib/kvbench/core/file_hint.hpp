// SPDX-License-Identifier: Apache-2.0
// What a file is that stands where another kind was expected.
#pragma once

#include <string>
#include <string_view>

namespace kvbench {

/// The first bytes of a file of finished cells.
inline constexpr std::string_view cells_signature = "kvcells1";

/// " It is a GGUF model: ..." with the command for it, by the first bytes and the name of the file or folder; "" where
/// neither is known.
std::string file_hint(const std::string& path);

}  // namespace kvbench
