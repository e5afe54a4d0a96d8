// SPDX-License-Identifier: Apache-2.0
// Files of scores (docs/scores.md): a score for each token of the contexts of a trace. The method scores:FILE.h5 keeps
// the best ones.
#pragma once

#include <string>

#include <kvbench/methods/contract/method_name.hpp>
#include <kvbench/methods/eviction/given_scores.hpp>

namespace kvbench::config {

/// Reads a file of scores. Throws Error, naming the file, the dataset and the remedy, where it is missing, damaged or
/// of another kind, where shapes do not agree, and where a score is not finite.
methods::GivenScores read_scores(const std::string& path);

/// The method of this name, scores:FILE.h5, found by the name and the content of its file, which is read anew where it
/// has changed. Its parameters hold the first digits of the digest of the file. Throws as read_scores() does. A
/// methods::Definer, as find_plan().
const methods::MethodInfo& find_scores(const methods::MethodName& name);

}  // namespace kvbench::config
