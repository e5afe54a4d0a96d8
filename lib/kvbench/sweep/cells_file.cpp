// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/cells_file.hpp>

#include <algorithm>

#include <kvbench/core/error.hpp>
#include <kvbench/sweep/check_cells.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::sweep {
namespace {

enum Kind : std::uint32_t { layout_kind = 1, cells_kind = 2, measures_kind = 3 };

}  // namespace

CellsFile::CellsFile(std::string path, FrameFile::Mode mode) : file_(std::move(path), mode) {
  for (const Frame& frame : file_.frames()) {
    if (frame.kind == layout_kind)
      layout_ = frame;
    else
      cells_[frame.key] = frame;
  }
}

template <class F>
auto CellsFile::decoded(const Frame& frame, std::uint32_t kind, F decode) const {
  try {
    if (frame.kind != kind) throw std::out_of_range("of another kind");
    return decode(file_.read(frame));
  } catch (const std::out_of_range& fault) {
    throw Error("{}: holds cells that this version of kvbench cannot read ({}); compute them again", path(), fault.what());
  }
}

std::optional<SweepLayout> CellsFile::layout() const {
  if (!layout_) return std::nullopt;
  return decoded(*layout_, layout_kind, [](std::string_view bytes) {
    SweepLayout layout = decode_layout(bytes);
    check_layout(layout);
    return layout;
  });
}

void CellsFile::begin(const SweepLayout& layout) {
  const std::string bytes = encode_layout(layout);
  const std::string key = trace::Sha256().add(bytes).hex();
  if (layout_ && layout_->key == key) return;
  file_.append(layout_kind, key, bytes);
  layout_ = file_.frames().back();
}

void CellsFile::append(std::uint32_t kind, const std::string& key, std::string_view payload) {
  file_.append(kind, key, payload);
  cells_[key] = file_.frames().back();
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ < std::chrono::seconds(1)) return;  // a killed process loses nothing, a machine failure at most one second
  synced_ = now;
  file_.sync();
}

void CellsFile::add(const std::string& key, CellBlock cells) { append(cells_kind, key, encode_cells(std::move(cells))); }

void CellsFile::add(const std::string& key, std::vector<MeasureRow> rows) {
  append(measures_kind, key, encode_measures(std::move(rows)));
}

CellBlock CellsFile::cells(const StepLayout& step, const CellEntry& entry) const {
  return decoded(cells_.at(entry.key), cells_kind, [&](std::string_view bytes) {
    CellBlock block = decode_cells(bytes);
    check_cells(block, step, entry);
    return block;
  });
}

std::vector<MeasureRow> CellsFile::measures(const std::string& key) const {
  return decoded(cells_.at(key), measures_kind, decode_measures);
}

const CellsFile* holder(std::span<const CellsFile> files, const std::string& key) {
  const auto found = std::ranges::find_if(files, [&](const CellsFile& file) { return file.has(key); });
  return found == files.end() ? nullptr : &*found;
}

}  // namespace kvbench::sweep
