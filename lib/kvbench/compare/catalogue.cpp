// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/catalogue.hpp>

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>

namespace kvbench::compare {
namespace {

auto key_of(const QueryPlace& p) {
  return std::tie(p.run, p.sha256, p.identity(), p.protocol, p.layer, p.query_head, p.eval);
}

std::string description_of(const QueryPlace& p) {
  if (p.eval.empty()) return fmt::format("prompt '{}', layer {}", p.prompt, p.layer);
  return fmt::format("document '{}' of task '{}'", p.prompt, p.eval.task);
}

/// The meaning of a budget: its tokens in each of these contexts, or its text where it is not a number of tokens or a
/// share of them.
std::string meaning_of(const Budget& budget, const std::set<Index>& contexts) {
  if (budget.cost() || budget.is_bytes() || contexts.contains(0)) return budget.text();
  std::vector<Index> tokens;
  for (const Index context : contexts) tokens.push_back(budget.resolve(context, 1));
  return fmt::format("{}", fmt::join(tokens, ","));
}

}  // namespace

std::string Side::label() const {
  const std::string text = label_of(configuration);
  return file ? fmt::format("{}:{}", *file + 1, text) : text;
}

Catalogue::Catalogue(std::vector<const QueryResults*> files) : files_(std::move(files)) {
  add_places();
  add_sides();
}

void Catalogue::add_places() {
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::int64_t, Index, EvalSetting>;
  std::map<Key, std::size_t> known;
  for (std::size_t f = 0; f < files_.size(); ++f) {
    for (std::size_t p = 0; p < files_[f]->places().size(); ++p) {
      const QueryPlace& place = files_[f]->places()[p];
      const auto [at, added] = known.emplace(Key(key_of(place)), places_.size());
      if (added) {
        places_.push_back(place);
        place_sources_.emplace_back();
      } else if (auto& known_queries = places_[at->second].positions; known_queries.empty()) {
        known_queries = place.positions;  // none where no configuration has values
      } else if (!place.positions.empty() && known_queries != place.positions) {
        throw Error("{} and {} have different queries of {}; replay both with the same --window.",
                    files_[place_sources_[at->second][0].file]->path(), files_[f]->path(), description_of(place));
      }
      place_sources_[at->second].push_back({f, p});
    }
  }
}

void Catalogue::add_sides() {
  std::set<Index> contexts;
  for (const QueryPlace& place : places_) contexts.insert(place.context_tokens);
  std::map<std::string, Budget> first;  // by meaning
  std::map<SideKey, std::size_t> known;
  for (std::size_t f = 0; f < files_.size(); ++f) {
    const auto& configurations = files_[f]->configurations();
    for (std::size_t c = 0; c < configurations.size(); ++c) {
      const QueryConfiguration& one = configurations[c];
      budgets_[one.budget] = first.try_emplace(meaning_of(one.budget, contexts), one.budget).first->second;
      Side side = side_of(one, {});
      const SideKey key = side_key(side);
      configurations_[{f, key}].push_back(c);
      const auto [at, fresh] = known.try_emplace(key, sides_.size());
      if (fresh)
        sides_.push_back(std::move(side));
      else
        sides_[at->second].configuration.seeded |= one.seeded;
    }
  }
}

Catalogue::SideKey Catalogue::side_key(const Side& side) {
  return {side.configuration.method, side.configuration.params, side.configuration.budget};
}

Side Catalogue::side_of(QueryConfiguration configuration, std::optional<std::size_t> file) const {
  configuration.budget = budgets_.at(configuration.budget);
  return {std::move(configuration), file};
}

std::vector<Side> Catalogue::find(const ConfigurationName& name, std::string_view flag) const {
  if (name.file && *name.file >= files_.size()) {
    throw Error("{}: there is no file {}; {} given.", flag, *name.file + 1,
                files_.size() == 1 ? "one is" : fmt::format("{} are", files_.size()));
  }
  std::vector<QueryConfiguration> known;
  for (std::size_t f = 0; f < files_.size(); ++f) {
    if (name.file && *name.file != f) continue;
    const auto& of_file = files_[f]->configurations();
    known.insert(known.end(), of_file.begin(), of_file.end());
  }
  const ConfigurationName wanted = resolved(name, known, flag);
  std::vector<Side> found;
  for (const QueryConfiguration& one : known) {
    Side side = side_of(one, name.file);
    if (matches(wanted, one) && std::ranges::find(found, side) == found.end()) found.push_back(std::move(side));
  }
  return found;
}

void Catalogue::add_value(const Side& side, std::size_t place, const Source& source, SideValues& out) const {
  const QueryResults& file = *files_[source.file];
  const auto before = static_cast<std::ptrdiff_t>(out.seeds.size());
  const auto configurations = configurations_.find({source.file, side_key(side)});
  if (configurations == configurations_.end()) return;
  for (const std::size_t c : configurations->second) {
    const QueryConfiguration& one = file.configurations()[c];
    std::optional<QueryValues> values = file.read(source.index, c);
    if (!values) continue;
    out.found = true;
    out.dense |= values->dense;
    out.compressed_layers = std::max(out.compressed_layers, values->compressed_layers);
    if (values->status != replay::Status::ok) {
      if (out.status != replay::Status::failed) out.status = values->status, out.reason = values->reason;
      continue;
    }
    const std::uint32_t seed = side.configuration.seeded ? one.seed : 0;
    const auto same = [&](const auto& known) { return known.first == seed; };
    const auto of_file = out.seeds.begin() + before;
    if (std::any_of(of_file, out.seeds.end(), same)) continue;  // the same budget in other words
    if (std::any_of(out.seeds.begin(), of_file, same)) {
      throw Error("several files hold '{}' at budget {}, seed {}, of {}; select one by its number, such as {}:{}",
                  side.label(), one.budget, seed, description_of(places_[place]), source.file + 1, side.label());
    }
    out.bytes_held += values->bytes_held, out.bytes_read += values->bytes_read;
    out.seeds.emplace_back(seed, std::move(values->values));
  }
}

SideValues Catalogue::read(const Side& side, std::size_t place) const {
  SideValues out;
  for (const Source& source : place_sources_[place]) {
    if (!side.file || *side.file == source.file) add_value(side, place, source, out);
  }
  std::ranges::sort(out.seeds, {}, [](const auto& seed) { return seed.first; });
  return out;
}

}  // namespace kvbench::compare
