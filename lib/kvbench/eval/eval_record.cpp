// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/eval_record.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/eval/eval_group.hpp>

namespace kvbench::eval {
namespace {

EvalRecord identity_of(const EvalResults& results, const PassResult& pass) {
  const EvalConfiguration& configuration = results.configurations[pass.configuration];
  EvalRecord record;
  record.model = results.model, record.sha256 = results.model_sha256.substr(0, 12), record.text = results.text;
  record.rope_layout = configuration.rope_layout;
  record.task = results.tasks[results.documents[pass.document].task]->name;
  record.document = "all";
  record.question = results.question();
  record.context_tokens = results.length_of(results.documents[pass.document]);
  record.settings = results.settings;
  record.device = results.device, record.isa = results.isa;
  record.injection = pass.injection;
  record.method = configuration.method, record.params = configuration.params, record.budget = configuration.budget;
  return record;
}

using Place = std::pair<Index, std::size_t>;  // length of the context, task
Place place_of(const EvalResults& results, const EvalDocument& document) {
  return {results.length_of(document), document.task};
}

/// Digests of all documents, and of those of each task at each length.
struct Digests {
  std::vector<std::string> of_documents;
  std::map<Place, std::string> of_places;

  explicit Digests(const EvalResults& results) {
    std::map<Place, std::vector<std::string>> by_place;
    for (const EvalDocument& document : results.documents) {
      of_documents.push_back(digest_of(document.document));
      by_place[place_of(results, document)].push_back(of_documents.back());
    }
    for (const auto& [place, documents] : by_place) of_places[place] = digest_of(documents);
  }
};

/// The numbers of the turns of these documents, ascending.
std::set<Index> turns_of(const EvalResults& results, const std::vector<const PassResult*>& passes) {
  std::set<Index> out;
  for (const PassResult* pass : passes) {
    const TaskDocument& document = results.documents[pass->document].document;
    for (Index i = 0; document.first_turn > 0 && i < std::ssize(document.spans); ++i)
      out.insert(document.first_turn + i);
  }
  return out;
}

/// The row over all layers, those per turn, and those per layer.
void add_rows(const EvalResults& results, const std::vector<const PassResult*>& passes, const EvalRecord& identity,
              const EvalRows& rows, bool verdicts, std::vector<EvalRecord>& out) {
  const EvalGroup group(results, passes);
  out.push_back(identity);
  group.fill(out.back(), rows, verdicts);
  if (out.back().status == replay::Status::ok) {
    for (const Index turn : turns_of(results, passes)) {
      out.push_back(identity);
      out.back().turn = turn;
      EvalGroup(results, passes, turn).fill(out.back(), rows, false);
    }
  }
  if (!rows.layers) return;
  for (const std::int64_t layer : group.layers()) {
    out.push_back(identity);
    out.back().layer = layer;
    group.fill_errors(out.back(), layer);
  }
}

}  // namespace

std::string_view name_of(Difference difference) {
  constexpr std::string_view names[] = {"no difference", "worse", "better", "undecided", "cannot discriminate", ""};
  return name_in(names, difference);
}

std::vector<EvalRecord> summarize(const EvalResults& results, const EvalRows& rows) {
  // Configurations that differ by the seed alone share a row, at the place of the first one.
  std::vector<std::size_t> first;
  for (const EvalConfiguration& one : results.configurations) {
    const auto same = [&](const EvalConfiguration& other) {
      return std::tie(one.method, one.params, one.budget) == std::tie(other.method, other.params, other.budget);
    };
    first.push_back(
        static_cast<std::size_t>(std::ranges::find_if(results.configurations, same) - results.configurations.begin()));
  }
  using Key = std::tuple<Place, Injection, std::size_t>;  // and the configuration
  std::map<Key, std::vector<const PassResult*>> groups;
  for (const PassResult& pass : results.passes)
    groups[{place_of(results, results.documents[pass.document]), pass.injection, first[pass.configuration]}].push_back(
        &pass);

  const Digests digests(results);
  std::vector<EvalRecord> out;
  for (auto& [key, passes] : groups) {
    std::ranges::sort(passes, {},
                      [](const PassResult* pass) { return std::pair(pass->document, pass->configuration); });
    EvalRecord identity = identity_of(results, *passes.front());
    identity.documents_sha256 = digests.of_places.at(std::get<0>(key));
    add_rows(results, passes, identity, rows, true, out);
    if (!rows.documents) continue;
    for (auto begin = passes.begin(), end = begin; begin != passes.end(); begin = end) {
      end = std::find_if(begin, passes.end(),
                         [&](const PassResult* pass) { return pass->document != (*begin)->document; });
      EvalRecord of_document = identity;
      of_document.document = results.documents[(*begin)->document].document.name;
      of_document.scored_sha256 = digest_of_scored(results.documents[(*begin)->document].document);
      of_document.document_sha256 = digests.of_documents[(*begin)->document];
      add_rows(results, {begin, end}, of_document, rows, false, out);
    }
  }
  return out;
}

}  // namespace kvbench::eval
