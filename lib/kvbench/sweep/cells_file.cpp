// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/cells_file.hpp>

#include <algorithm>

#include <kvbench/sweep/visit.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::sweep {

std::string encode_layout(SweepLayout layout) { return store::encode(layout); }
SweepLayout decode_layout(std::string_view bytes) { return store::decode<SweepLayout>(bytes); }
std::string encode_cells(CellBlock cells) { return store::encode(cells); }
CellBlock decode_cells(std::string_view bytes) { return store::decode<CellBlock>(bytes); }
std::string encode_measures(std::vector<measures::MeasureRow> rows) { return store::encode(rows); }
std::vector<measures::MeasureRow> decode_measures(std::string_view bytes) {
  return store::decode<std::vector<measures::MeasureRow>>(bytes);
}

namespace {

enum Kind : std::uint32_t { layout_kind = 1, cells_kind = 2, measures_kind = 3 };

}  // namespace

CellsFile::CellsFile(std::string path, FrameFile::Mode mode) : file_(std::move(path), mode) {
  for (const store::Frame& frame : file_.frames()) {
    if (frame.kind == layout_kind) layout_key_ = frame.key;
  }
}

std::optional<SweepLayout> CellsFile::layout() const {
  if (!layout_key_) return std::nullopt;
  return file_.decoded(*layout_key_, layout_kind, [](std::string_view bytes) {
    SweepLayout layout = decode_layout(bytes);
    check_layout(layout);
    return layout;
  });
}

void CellsFile::begin(const SweepLayout& layout) {
  const std::string bytes = encode_layout(layout);
  const std::string key = trace::Sha256().add(bytes).hex();
  if (layout_key_ == key) return;
  file_.append(layout_kind, key, bytes);
  layout_key_ = key;
}

void CellsFile::add(const std::string& key, CellBlock cells) {
  file_.append(cells_kind, key, encode_cells(std::move(cells)));
}

void CellsFile::add(const std::string& key, std::vector<measures::MeasureRow> rows) {
  file_.append(measures_kind, key, encode_measures(std::move(rows)));
}

CellBlock CellsFile::cells(const StepLayout& step, const CellEntry& entry) const {
  return file_.decoded(entry.key, cells_kind, [&](std::string_view bytes) {
    CellBlock block = decode_cells(bytes);
    check_cells(block, step, entry);
    return block;
  });
}

std::vector<measures::MeasureRow> CellsFile::measures(const StepLayout& step, const CellEntry& entry) const {
  return file_.decoded(entry.key, measures_kind, [&](std::string_view bytes) {
    std::vector<measures::MeasureRow> rows = decode_measures(bytes);
    check_measures(rows, step, entry);
    for (measures::MeasureRow& row : rows) row.trace = step.frame.trace;  // its file may have been renamed since
    return rows;
  });
}

const CellsFile* holder(std::span<const CellsFile> files, const std::string& key) {
  const auto found = std::ranges::find_if(files, [&](const CellsFile& file) { return file.has(key); });
  return found == files.end() ? nullptr : &*found;
}

}  // namespace kvbench::sweep
