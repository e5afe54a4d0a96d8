// SPDX-License-Identifier: Apache-2.0
// An external selection as a method: entries from an HDF5 file in the schema of --raw (docs/results.md), measured like
// those of any other method. `--method file:kept.h5`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/replay/kept/held.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::trace {
class InputFile;
namespace h5 {
class InputObject;
}
}  // namespace kvbench::trace

namespace kvbench::replay {

/// The sizes of a head of the trace that entries must fit.
struct KeptShape {
  Index tokens = 0;  ///< of the prompt, decoded tokens included
  Index d = 0, dv = 0;
  Index group = 1;  ///< query heads
};

/// A file of kept entries whose structure was checked. Reading is thread-safe.
class KeptFile {
 public:
  /// Throws Error, naming file, object and remedy, where the file does not have the schema or has a head twice.
  explicit KeptFile(const std::string& path);

  const std::string& path() const { return path_; }
  /// SHA-256 of the trace for which the entries were made; "" where the file does not say.
  const std::string& trace_sha256() const { return trace_sha256_; }
  /// SHA-256 of the tokens of a prompt (sha256_of_tokens()); "" where the file does not say, or lacks the prompt.
  std::string tokens_sha256(std::string_view prompt) const;

  /// The budget that each cell carries (/cells/<c>), as given; "" or absent where it carries none.
  const std::vector<std::string>& budgets() const { return budgets_; }
  /// The cell with this budget; 0 where no cell carries one. Throws Unavailable where none or several have it.
  Index cell_at(const std::string& budget) const;

  /// Entries of this cell (/heads/<h>/<cell>). Throws Unavailable where the file has none for the head, Error where
  /// they cannot be used: wrong shapes, ids that are no tokens of the prompt, entries that are not held, numbers that
  /// are not finite. Throws IoError where reading fails or the file has changed since it was opened.
  KeptHead read(std::string_view prompt, std::int64_t layer, Index kv_head, Index cell, const KeptShape& shape) const;

 private:
  struct Place {
    std::string group;  ///< below /heads
    std::string prompt;
    std::int64_t layer = 0, kv_head = 0;
    std::string tokens_sha256;
  };
  void examine(const trace::h5::InputObject& root);

  std::string path_, trace_sha256_;
  std::vector<Place> heads_;
  std::vector<std::string> budgets_;
  std::shared_ptr<const trace::InputFile> file_;
};

/// The method that answers with the entries of a file; `name` is "file:PATH". The reference is valid until the program
/// ends. Its parameters are set under the name `file`.
const methods::MethodInfo& kept_file_method(const std::string& name);

/// Where methods of files run on a trace, or on a document with these tokens inside a model, as prompt `prompt`: throws
/// Error, naming both digests and the remedy, where the entries of a file were made for another one, and its parameter
/// `any_trace` does not allow that. Returns a sentence for each file that does not say for what it was made.
std::vector<std::string> check_kept_trace(std::span<const MethodChoice> methods, const trace::Reader& reader);
std::vector<std::string> check_kept_document(std::span<const MethodChoice> methods, const std::string& document,
                                             std::string_view prompt, std::span<const std::int32_t> tokens);

/// The file whose entries a method of this name replays; "" for other methods.
std::string kept_file_path(const std::string& method);

/// The budgets of the cells that a choice of such a method may replay, each once; empty for other methods.
std::vector<std::string> kept_budgets(const MethodChoice& choice);

/// A method of the registry, or of a file. Throws Error as find_method() and KeptFile do.
const methods::MethodInfo& find_any_method(const std::string& name);

}  // namespace kvbench::replay
