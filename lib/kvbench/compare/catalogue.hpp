// SPDX-License-Identifier: Apache-2.0
// Joins several files of results per query: their places and configurations.
#pragma once

#include <map>
#include <span>
#include <tuple>

#include <kvbench/compare/configuration_name.hpp>

namespace kvbench::compare {

/// A method with its parameters and budget, in all files or in one of them.
struct Side {
  QueryConfiguration configuration;  ///< its seed is not used
  std::optional<std::size_t> file;   ///< from 0; absent: all files
  std::string label() const;         ///< "subgen[t=4]", "2:subgen"
  friend bool operator==(const Side& x, const Side& y) {
    return x.file == y.file && x.configuration.method == y.configuration.method &&
           x.configuration.params == y.configuration.params && x.configuration.budget == y.configuration.budget;
  }
};

/// The values of a side at a place.
struct SideValues {
  bool found = false;  ///< whether any file has values of the side at the place
  replay::Status status = replay::Status::ok;
  std::string reason;
  bool dense = false;
  Index compressed_layers = 0;            ///< as QueryValues::compressed_layers, the largest
  double bytes_held = 0, bytes_read = 0;  ///< summed over `seeds`
  /// ascending; one where the method uses no random numbers
  std::vector<std::pair<std::uint32_t, std::vector<double>>> seeds;
};

class Catalogue {
 public:
  /// Throws Error where two files have different queries of the same place.
  explicit Catalogue(std::vector<const QueryResults*> files);

  /// The places of all files. Places of the same run, trace, prompt or document, protocol, layer, head
  /// and EvalSetting are one place.
  const std::vector<QueryPlace>& places() const { return places_; }
  /// One side per method, parameters and budget, in order of appearance. Budgets that are the same number of tokens at
  /// every place, such as 512 and 12.5% of 4096, are one budget, written as it appeared first.
  const std::vector<Side>& sides() const { return sides_; }

  /// The sides that match `name`, one per budget. Throws Error with the remedy where none matches, or where several
  /// sets of parameters match.
  std::vector<Side> find(const ConfigurationName& name, std::string_view flag) const;

  /// Throws Error where several files have the same seed of the side.
  SideValues read(const Side& side, std::size_t place) const;

 private:
  struct Source {
    std::size_t file, index;
  };
  using SideKey = std::tuple<std::string, std::string, Budget>;  ///< method, parameters, budget
  static SideKey side_key(const Side& side);
  void add_places();
  void add_sides();
  /// The side of a configuration with its budget as it appeared first.
  Side side_of(QueryConfiguration configuration, std::optional<std::size_t> file) const;
  void add_value(const Side& side, std::size_t place, const Source& source, SideValues& out) const;

  std::vector<const QueryResults*> files_;
  std::vector<QueryPlace> places_;
  std::vector<std::vector<Source>> place_sources_;
  std::map<Budget, Budget> budgets_;  ///< for each budget, the first one of equal meaning
  std::vector<Side> sides_;
  /// of each file and side, ascending
  std::map<std::pair<std::size_t, SideKey>, std::vector<std::size_t>> configurations_;
};

}  // namespace kvbench::compare
