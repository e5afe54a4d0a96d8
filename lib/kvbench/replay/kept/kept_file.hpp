// SPDX-License-Identifier: Apache-2.0
// An external selection as a method: entries from an HDF5 file in the schema of --raw (docs/results.md), measured like those of
// any other method. `--method file:kept.h5`.
#pragma once

#include <string>
#include <string_view>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/replay/kept/held.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench {

/// A file of kept entries whose structure was checked. Reading is thread-safe.
class KeptFile {
 public:
  /// Throws Error, naming file, object and remedy, where the file does not have the schema.
  explicit KeptFile(std::string path);

  /// The budget that each cell carries (/cells/<c>), as given; "" or absent where it carries none.
  const std::vector<std::string>& budgets() const { return budgets_; }
  /// The cell with this budget; 0 where no cell carries one. Throws Unavailable where none or several have it.
  Index cell_at(const std::string& budget) const;

  /// Entries of this cell (/heads/<h>/<cell>). Throws Unavailable where the file has none for the head, Error where they
  /// cannot be used: wrong shapes, ids below -1, entries that are not held, numbers that are not finite. d, dv, group: those of the trace.
  KeptHead read(std::string_view prompt, std::int64_t layer, Index kv_head, Index cell, Index d, Index dv, Index group) const;

 private:
  struct Place {
    std::string group;  ///< below /heads
    std::string prompt;
    std::int64_t layer = 0, kv_head = 0;
  };
  std::string path_;
  std::uint64_t length_ = 0;
  std::vector<Place> heads_;
  std::vector<std::string> budgets_;
};

/// The method that answers with the entries of a file; `name` is "file:PATH". The reference is valid until the program ends.
/// Its parameters are set under the name `file`.
const MethodInfo& kept_file_method(const std::string& name);

/// The file whose entries such a choice replays; "" for other methods.
std::string kept_file_path(const MethodChoice& choice);

/// The budgets of the cells that a choice of such a method may replay, each once; empty for other methods.
std::vector<std::string> kept_budgets(const MethodChoice& choice);

/// A method of the registry, or of a file. Throws Error as find_method() and KeptFile do.
const MethodInfo& find_any_method(const std::string& name);

}  // namespace kvbench
