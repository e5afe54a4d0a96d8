// SPDX-License-Identifier: Apache-2.0
// Names of methods that files define: plan:FILE.toml (contract/layer_plan.hpp), FILE.py:NAME (python_name.hpp), and
// scores:FILE.h5, which keeps the tokens with the best scores of a file. The last two may be parts of compositions.
#pragma once

#include <string_view>

namespace kvbench::methods {

inline constexpr std::string_view scores_prefix = "scores:", scores_ending = ".h5";
/// Whether this is the name of a method by scores of a file, which may be stored by a quantiser, but is not wrapped.
inline bool is_scores(std::string_view name) { return name.starts_with(scores_prefix); }

/// The part of the name of a method that is the path of its file; empty where no file defines it.
std::string_view file_in(std::string_view name);

}  // namespace kvbench::methods
