// SPDX-License-Identifier: Apache-2.0
// The finished cells of a sweep, or of a shard of it, by key.
// Cells, measures and the layout of a sweep as bytes, and back. decode_...() throws std::out_of_range for other
// bytes.
// What is checked of decoded layouts, cells and measures before they are used (store/check_values.hpp says why).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/store/frame_file.hpp>
#include <kvbench/sweep/layout.hpp>

namespace kvbench::sweep {

/// The content of a cell: [kv heads of the work item][configurations of the method], in plan order.
using CellBlock = std::vector<std::vector<replay::ConfigurationResult>>;

std::string encode_layout(SweepLayout layout);
SweepLayout decode_layout(std::string_view bytes);

std::string encode_cells(CellBlock cells);  ///< without raw results
CellBlock decode_cells(std::string_view bytes);

std::string encode_measures(std::vector<measures::MeasureRow> rows);
std::vector<measures::MeasureRow> decode_measures(std::string_view bytes);

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
  void add(const std::string& key, std::vector<measures::MeasureRow> rows);
  /// Throw Error where the file holds under this key another kind of record, or another block than the layout says.
  CellBlock cells(const StepLayout& step, const CellEntry& entry) const;
  std::vector<measures::MeasureRow> measures(const StepLayout& step, const CellEntry& entry) const;
  void sync() const { file_.sync(); }
  void remove() const { file_.remove(); }  ///< as FrameFile does

 private:
  store::RecordFile file_;
  std::optional<std::string> layout_key_;
};

/// The first of several files that holds a cell; nullptr where the cell has not been computed.
const CellsFile* holder(std::span<const CellsFile> files, const std::string& key);

/// Throws std::out_of_range where an index of the layout refers to nothing, where something is listed twice or a cell
/// is missing, where a name is none, or where it promises more than a sweep can have.
void check_layout(const SweepLayout& layout);

/// Throws std::out_of_range unless the block has the heads, configurations and query rows of its entry in a step that
/// was checked, and figures that can be right.
void check_cells(const CellBlock& block, const StepLayout& step, const CellEntry& entry);

/// The same for the measures of an entry of StepLayout::measures.
void check_measures(const std::vector<measures::MeasureRow>& rows, const StepLayout& step, const CellEntry& entry);

}  // namespace kvbench::sweep
