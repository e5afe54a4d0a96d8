// SPDX-License-Identifier: Apache-2.0
// Files of results by query seen as one: which places they answer, with which configurations.
#pragma once

#include <span>

#include <kvbench/compare/configuration_name.hpp>

namespace kvbench {

/// A method with its parameters and budget, in all files or in one of them.
struct Side {
  QueryConfiguration configuration;  ///< its seed says nothing
  std::optional<std::size_t> file;
  std::string label() const;  ///< "subgen[t=4]", "2:subgen"
  friend bool operator==(const Side& x, const Side& y) {
    return x.file == y.file && x.configuration.method == y.configuration.method &&
           x.configuration.params == y.configuration.params && x.configuration.budget == y.configuration.budget;
  }
};

/// What a side scored at a place.
struct SideValues {
  bool found = false;  ///< a file holds something of it
  Status status = Status::ok;
  std::string reason;
  bool dense = false;
  std::vector<std::pair<std::uint32_t, std::vector<float>>> seeds;  ///< ascending; one where the method does not draw
};

class Catalogue {
 public:
  /// Throws Error where files answer different queries of the same place.
  explicit Catalogue(std::vector<const QueryResults*> files);

  /// Places of all files, those of the same run, trace, prompt, protocol, layer and head as one.
  const std::vector<QueryPlace>& places() const { return places_; }
  /// One a method with parameters and budget, in order of appearance.
  const std::vector<Side>& sides() const { return sides_; }

  /// Sides that `name` stands for: one a budget. Throws Error with the remedy where there is none, or more than one method with
  /// parameters.
  std::vector<Side> find(const ConfigurationName& name, std::string_view flag) const;

  /// Throws Error where several files hold the same seed of it.
  SideValues read(const Side& side, std::size_t place) const;

 private:
  struct Source {
    std::size_t file, index;
  };
  void add_value(const Side& side, std::size_t place, const Source& source, SideValues& out) const;

  std::vector<const QueryResults*> files_;
  std::vector<QueryPlace> places_;
  std::vector<std::vector<Source>> place_sources_;
  std::vector<Side> sides_;
};

}  // namespace kvbench
