// SPDX-License-Identifier: Apache-2.0
// Names of methods that files define: plan:FILE.toml (contract/layer_plan.hpp), FILE.py:NAME, and scores:FILE.h5,
// which keeps the tokens with the best scores of a file. The last two may be parts of compositions. Methods written in
// Python stand alone or inside a wrapper; py:NAME is one that a running Python has defined.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvbench::methods {

inline constexpr std::string_view scores_prefix = "scores:", scores_ending = ".h5";
/// Whether this is the name of a method by scores of a file, which may be stored by a quantiser, but is not wrapped.
inline bool is_scores(std::string_view name) { return name.starts_with(scores_prefix); }

/// The part of the name of a method that is the path of its file; empty where no file defines it.
std::string_view file_in(std::string_view name);

struct PythonName {
  std::string file;    ///< path of the source; "" where the running Python has defined the method
  std::string object;  ///< name of the class or scorer in it
};
/// Absent where `name` is not the name of such a method.
std::optional<PythonName> parse_python_name(std::string_view name);

/// SHA-256 of the state of a file FILE.py that runs, which a file on the disk may have left behind; "" where none runs.
std::string source_sha256(const std::string& file);
/// Makes this function answer it, with Python: kvbench._core.
void set_source_sha256(std::string (*of_file)(const std::string& file));

}  // namespace kvbench::methods
