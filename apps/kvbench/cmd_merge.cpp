// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/sweep/merge.hpp>

#include <apps/common/command_line.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/sweep_tables.hpp>

namespace kvbench::app {
namespace {

using namespace sweep;

struct MergeFlags {
  std::vector<std::string> files;
  bool partial = false;
  TableFlags table;
};

/// Where cells are missing, throws Error with some of them, or with --partial lists them on stderr.
void check_missing(const Merged& merged, bool partial) {
  const std::vector<std::string> missing = missing_cells(merged.layout, merged.files);
  if (missing.empty()) return;
  constexpr std::size_t shown = 5;
  std::string list;
  for (std::size_t i = 0; i < std::min(shown, missing.size()); ++i) list += fmt::format("\n  {}", missing[i]);
  if (missing.size() > shown) list += fmt::format("\n  and {} more", missing.size() - shown);
  if (!partial) {
    throw Error(
        "{} cells of sweep '{}' are missing; compute their shards (--resume continues an incomplete one), or make rows "
        "of the others with --partial:{}",
        missing.size(), merged.layout.name, list);
  }
  say("kvbench", fmt::format("{} cells are missing and are left out of the rows:{}", missing.size(), list));
}

int run(const CLI::App& flags, const MergeFlags& options) {
  check_table_flags(flags, options.table);
  const Merged merged = open_shards(options.files);
  for (const std::string& note : merged.notes) say("kvbench", note);
  check_missing(merged, options.partial);
  std::vector<NamedFile> inputs;
  for (const std::string& path : options.files) inputs.push_back({"the cells file", path});
  const SweepTables::Parts parts{has_replays(merged.layout), has_measures(merged.layout),
                                 !merged.layout.claims.empty()};
  SweepTables tables("the sweep '" + merged.layout.name + "'", parts, options.table, inputs, "");
  return tables.finish(collect(merged.layout, merged.files, options.table.grain));
}

}  // namespace

Command add_merge(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("merge", "Make the tables of a sweep from the cells of its shards");
  auto options = std::make_shared<MergeFlags>();
  flags->add_option("cells", options->files, "Cells files written by `kvbench sweep`")->required();
  flags->add_flag("--partial", options->partial, "Make rows even if cells are missing");
  add_table_flags(flags, options->table);
  return {flags, [flags, options] { return run(*flags, *options); }};
}

}  // namespace kvbench::app
