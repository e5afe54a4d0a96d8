// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: a file of cells whose frames have valid checksums gives rows and comparisons, or Error. The input
// is the lengths of a layout and of a block of cells (4 bytes each), both of them, and rows of measures. Block and rows
// are stored under every key of the layout.
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/sweep/cells_file.hpp>
#include <kvbench/sweep/cells_results.hpp>
#include <kvbench/sweep/collect.hpp>
#include <kvbench/sweep/merge.hpp>

#include "scratch.hpp"

std::size_t inputs_read = 0;

namespace {

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using namespace kvbench::sweep;

/// Writes the frames as kvbench does, around these bytes. Returns the layout; throws std::out_of_range where it is
/// none.
SweepLayout write_frames(std::string_view layout_bytes, std::string_view block, std::string_view measures) {
  SweepLayout layout = decode_layout(layout_bytes);
  check_layout(layout);
  FrameFile file(fuzz::scratch(), FrameFile::Mode::append);
  layout.version = version(), layout.commit = commit();
  file.append(1, std::string(64, '0'), encode_layout(layout));
  for (const StepLayout& step : layout.steps) {
    for (const CellEntry& entry : step.cells) file.append(2, entry.key, block);
    for (const CellEntry& entry : step.measures) file.append(3, entry.key, measures);
  }
  return layout;
}

/// Whether rows and comparisons of this layout take milliseconds. What takes longer is not a fault.
bool is_small(const SweepLayout& layout) {
  std::size_t work = layout.claims.size();
  for (const StepLayout& step : layout.steps) {
    std::size_t rows = 1;
    for (const HeadResult& head : step.heads)
      rows += 1 + head.positions.size() * static_cast<std::size_t>(step.frame.group);
    work += rows * (1 + step.frame.configurations.size()) + step.cells.size();
  }
  return work < 2000;
}

void read_everything() {
  const Merged merged = open_shards({fuzz::scratch()});
  missing_cells(merged.layout, merged.files);
  collect(merged.layout, merged.files, Grain::query);
  const CellsResults results(fuzz::scratch(), Metric::rel_err);
  for (std::size_t place = 0; place < results.places().size(); ++place) {
    for (std::size_t c = 0; c < results.configurations().size(); ++c) results.read(place, c);
  }
  ++inputs_read;
  compare::compare({.files = {&results}, .metric = info_of(Metric::rel_err), .span = Span::head});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t lengths[2];
  if (size < sizeof lengths) return 0;
  std::memcpy(lengths, data, sizeof lengths);
  const std::string_view rest(reinterpret_cast<const char*>(data) + sizeof lengths, size - sizeof lengths);
  if (lengths[0] > rest.size() || lengths[1] > rest.size() - lengths[0]) return 0;
  const fuzz::ScratchFile file(nullptr, 0);
  try {
    const std::string_view layout = rest.substr(0, lengths[0]), block = rest.substr(lengths[0], lengths[1]);
    if (!is_small(write_frames(layout, block, rest.substr(layout.size() + block.size())))) return 0;
    read_everything();
  } catch (const std::out_of_range&) {  // what the decoders throw; files of cells make an Error of it
  } catch (const Error&) {
  }
  return 0;
}
