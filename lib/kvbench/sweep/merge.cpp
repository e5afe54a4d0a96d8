// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/merge.hpp>

#include <algorithm>

#include <kvbench/core/error.hpp>
#include <kvbench/core/version.hpp>

namespace kvbench::sweep {
namespace {

/// How two layouts differ; "" where they are equal.
std::string difference(const SweepLayout& a, const SweepLayout& b) {
  const auto differ = [](const char* what, const std::string& x, const std::string& y) {
    return x == y ? "" : fmt::format("{} {} against {}", what, x, y);
  };
  std::string text = differ("kvbench", a.version + " " + a.commit, b.version + " " + b.commit);
  if (text.empty()) text = differ("sweep", a.name, b.name);
  for (std::size_t s = 0; text.empty() && s < std::min(a.steps.size(), b.steps.size()); ++s) {
    const replay::ReplayFrame &x = a.steps[s].frame, &y = b.steps[s].frame;
    text = differ("instruction set", x.isa, y.isa);
    if (text.empty()) text = differ("device", x.device, y.device);
    if (text.empty() && x.trace == y.trace)
      text = differ(fmt::format("{}: SHA-256", x.trace).c_str(), x.sha256, y.sha256);
  }
  if (text.empty() && encode_layout(a) != encode_layout(b)) text = "their sweep files differ";
  return text;
}

/// Rows name the kvbench that writes them as the one that computed them.
void require_own(const SweepLayout& layout, const std::string& path) {
  if (layout.version == version() && layout.commit == commit()) return;
  throw Error(
      "{}: its cells are of kvbench {} ({}), and this is {} ({}); merge them with the kvbench that computed them", path,
      layout.version, layout.commit, version(), commit());
}

/// The content of a cell without its times, which differ from run to run.
std::string content_of(const CellsFile& file, const StepLayout& step, const CellEntry& entry, bool measures) {
  if (measures) return encode_measures(file.measures(step, entry));
  CellBlock block = file.cells(step, entry);
  for (auto& results : block) {
    for (replay::ConfigurationResult& result : results) result.compress_s = result.attend_s = result.exact_s = 0;
  }
  return encode_cells(std::move(block));
}

/// Throws Error where two files hold different results for a cell; returns whether several files hold it.
bool check_twins(const Merged& merged, const StepLayout& step, const CellEntry& cell, bool measures) {
  const CellsFile* first = nullptr;
  bool twins = false;
  for (const CellsFile& file : merged.files) {
    if (!file.has(cell.key)) continue;
    if (first == nullptr) {
      first = &file;
      continue;
    }
    twins = true;
    if (content_of(*first, step, cell, measures) != content_of(file, step, cell, measures)) {
      throw Error("{} and {} hold different results for {}; delete the wrong file and compute its shard again",
                  first->path(), file.path(), describe(step, cell, measures));
    }
  }
  return twins;
}

}  // namespace

Merged open_shards(const std::vector<std::string>& paths) {
  Merged merged;
  for (const std::string& path : paths) {
    CellsFile file(path, FrameFile::Mode::read);
    std::optional<SweepLayout> layout = file.layout();
    if (!layout) throw Error("{}: has no cells of a sweep; compute its shard", path);
    const std::string differs = merged.files.empty() ? "" : difference(merged.layout, *layout);
    if (!differs.empty()) {
      throw Error(
          "{} and {} do not belong to the same sweep: {}; compute all shards with the same sweep file, traces, `isa` "
          "and kvbench",
          merged.files.front().path(), path, differs);
    }
    require_own(*layout, path);
    if (merged.files.empty()) merged.layout = std::move(*layout);
    if (file.torn_bytes() > 0) {
      merged.notes.push_back(fmt::format("{}: {} bytes of incomplete cells are ignored", path, file.torn_bytes()));
    }
    merged.files.push_back(std::move(file));
  }
  std::size_t twins = 0;
  for (const StepLayout& step : merged.layout.steps) {
    for (const CellEntry& cell : step.cells) twins += check_twins(merged, step, cell, false) ? 1 : 0;
    for (const CellEntry& cell : step.measures) twins += check_twins(merged, step, cell, true) ? 1 : 0;
  }
  if (twins > 0) merged.notes.push_back(fmt::format("{} cells are in more than one file, with equal results", twins));
  return merged;
}

}  // namespace kvbench::sweep
