// SPDX-License-Identifier: Apache-2.0
// The finished cells of a sweep, or of a shard of it, by key.
#pragma once

#include <optional>

#include <kvbench/store/record_file.hpp>
#include <kvbench/sweep/codec.hpp>

namespace kvbench::sweep {

using store::FrameFile;

class CellsFile {
 public:
  /// Throws as FrameFile does.
  CellsFile(std::string path, FrameFile::Mode mode);

  const std::string& path() const { return file_.path(); }
  std::uint64_t torn_bytes() const { return file_.torn_bytes(); }

  /// The layout for which cells were computed last; nothing in a new file. Throws Error where it is not one that
  /// kvbench writes.
  std::optional<SweepLayout> layout() const;
  /// Stores the layout for which the following cells are computed.
  void begin(const SweepLayout& layout);

  bool has(const std::string& key) const { return file_.has(key); }
  void add(const std::string& key, CellBlock cells);
  void add(const std::string& key, std::vector<bounds::MeasureRow> rows);
  /// Throw Error where the file holds under this key another kind of record, or another block than the layout says.
  CellBlock cells(const StepLayout& step, const CellEntry& entry) const;
  std::vector<bounds::MeasureRow> measures(const StepLayout& step, const CellEntry& entry) const;
  void sync() const { file_.sync(); }
  void remove() const { file_.remove(); }  ///< as FrameFile does

 private:
  store::RecordFile file_;
  std::optional<std::string> layout_key_;
};

/// The first of several files that holds a cell; nullptr where the cell has not been computed.
const CellsFile* holder(std::span<const CellsFile> files, const std::string& key);

}  // namespace kvbench::sweep
