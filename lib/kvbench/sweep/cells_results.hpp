// SPDX-License-Identifier: Apache-2.0
// The finished cells of a sweep as results per query, for comparisons.
#pragma once

#include <mutex>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/sweep/cells_file.hpp>

namespace kvbench::sweep {

/// One metric of a sweep. Values are read on demand, one cell at a time. Thread-safe.
class CellsResults : public compare::QueryResults {
 public:
  /// A file of cells, or those of the shards of a sweep. Throws Error where one is none, or is empty.
  CellsResults(const std::vector<std::string>& paths, replay::Metric metric);
  CellsResults(const std::string& path, replay::Metric metric) : CellsResults(std::vector{path}, metric) {}
  /// The cells of a layout that several files hold, such as those of its shards. The files must outlive the results.
  CellsResults(SweepLayout layout, std::span<const CellsFile> files, replay::Metric metric);

  const std::string& path() const override { return files_.front().path(); }
  const std::vector<compare::QueryPlace>& places() const override { return places_; }
  const std::vector<compare::QueryConfiguration>& configurations() const override { return configurations_; }
  std::optional<compare::QueryValues> read(std::size_t place, std::size_t configuration) const override;
  std::vector<double> probe_sums(std::size_t place, std::size_t configuration) const override;
  Index scored_tokens(std::size_t place) const override;
  double anchor_factor(std::size_t place, replay::ChangeKind kind) const override;

 private:
  /// A configuration in a step: its method, and its index among the configurations of this method.
  struct Slot {
    std::size_t step, method, configuration;
  };

  void add_steps();
  void add_step(std::size_t step);
  const CellEntry* entry_of(const StepLayout& step, std::size_t method, std::size_t head) const;
  /// Where a configuration has its results at a place; null where its step is another.
  const Slot* slot_of(std::size_t place, std::size_t configuration) const;
  /// A result of a head; null where no file has its cell. Valid until the next call.
  const replay::ConfigurationResult* result_of(const Slot& slot, std::size_t head) const;
  /// The result of a head with the metrics of its layer; absent where a file lacks its cell.
  std::optional<replay::ConfigurationResult> result_in_layer(const Slot& slot, std::size_t head) const;

  std::vector<CellsFile> own_;  ///< the files that the results opened
  std::span<const CellsFile> files_;
  SweepLayout layout_;
  replay::Metric metric_;
  std::vector<compare::QueryPlace> places_;
  std::vector<std::pair<std::size_t, std::size_t>> place_heads_;  ///< step and head of each place
  std::vector<compare::QueryConfiguration> configurations_;
  std::vector<std::vector<Slot>> slots_;  ///< by configuration: one per step that has it
  mutable std::mutex mutex_;
  mutable std::string last_key_;
  mutable CellBlock last_;  ///< cached: consecutive places belong to the same head
};

/// Judges a claim on these cells.
compare::ClaimResult test_claim(const compare::PaperClaim& claim, const SweepLayout& layout,
                                std::span<const CellsFile> files);

/// Whether the file begins with the signature of files of cells.
bool is_cells_file(const std::string& path);

/// Files of results, those of cells of one sweep together: its shards.
std::vector<std::vector<std::string>> with_shards_joined(const std::vector<std::string>& paths);

}  // namespace kvbench::sweep
