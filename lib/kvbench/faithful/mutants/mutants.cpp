// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/replay.hpp>

namespace kvbench::faithful {
namespace {

void add_once(std::vector<std::string>& ids, const std::string& id) {
  if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
}

std::vector<bounds::CheckRow> run_one(const Mutant& mutant, const bounds::Subject& subject,
                                      const bounds::ValidateOptions& options, const std::atomic<bool>* stop,
                                      Backend& backend) {
  std::vector<bounds::CheckRow> rows;
  bounds::CheckContext context{
      .subject = &subject, .options = options, .backend = backend, .stop = stop, .rows = rows, .check = mutant.id};
  context.poll();
  try {
    mutant.run(context);
  } catch (const methods::Unavailable&) {  // the subject cannot show this fault; another one must
  } catch (const methods::Infeasible&) {
  }
  return rows;
}

MutantResult result_of(const Mutant& mutant, std::vector<bounds::CheckRow> rows, double alpha) {
  bounds::judge(rows, alpha);
  MutantResult result{.mutant = &mutant};
  for (const bounds::CheckRow& row : rows) {
    add_once(result.ran, row.check);
    if (!is_fault(row)) continue;
    if (result.caught_by.empty()) result.first = fmt::format("{}: {}", row.part, row.text);
    add_once(result.caught_by, row.check);
  }
  return result;
}

}  // namespace

std::span<const Mutant> all_mutants() {
  static const std::vector<Mutant> table = [] {
    std::vector<Mutant> all;
    for (auto* list : {exact_mutants, predicted_kl_mutants, subgen_mutants, balancekv_mutants, chelsea_mutants,
                       baseline_mutants, quantiser_mutants})
      std::ranges::move(list(), std::back_inserter(all));
    return all;
  }();
  return table;
}

std::vector<const Mutant*> find_mutants(const std::vector<std::string>& methods) {
  for (const std::string& method : methods) methods::find_method(method);
  std::vector<const Mutant*> found;
  for (const Mutant& mutant : all_mutants()) {
    if (methods.empty() || std::ranges::find(methods, mutant.method) != methods.end()) found.push_back(&mutant);
  }
  return found;
}

std::vector<bounds::SubjectSource> mutant_subjects(Index queries) {
  constexpr Index tokens = 1024;
  std::vector<bounds::SubjectSource> shortened;
  for (bounds::SubjectSource& source : bounds::synthetic_subjects(queries)) {
    // Keys and values of different lengths, in clusters: on streams of equal norms several faults change nothing.
    if (source.name != "synthetic:loose-clusters" && source.name != "synthetic:uneven-values") continue;
    shortened.push_back({source.name, [load = std::move(source.load)](Backend& backend) {
                           return first_tokens(load(backend), tokens);
                         }});
  }
  return shortened;
}

std::vector<MutantResult> run_mutants(std::span<const Mutant* const> mutants,
                                      std::span<const bounds::SubjectSource> subjects,
                                      const bounds::ValidateOptions& options, const replay::ReplayHooks& hooks) {
  std::vector<std::vector<bounds::CheckRow>> rows(mutants.size() * subjects.size());
  run_work_items(rows.size(), {.threads = options.threads}, hooks,
                 [&](Backend& backend, std::size_t i, const replay::PartDone&) {
                   const bounds::Subject subject = subjects[i % subjects.size()].load(backend);
                   rows[i] = run_one(*mutants[i / subjects.size()], subject, options, hooks.stop, backend);
                 });
  std::vector<MutantResult> results;
  for (std::size_t m = 0; m < mutants.size(); ++m) {
    std::vector<bounds::CheckRow> all;
    for (std::size_t s = 0; s < subjects.size(); ++s)
      std::ranges::move(rows[m * subjects.size() + s], std::back_inserter(all));
    results.push_back(result_of(*mutants[m], std::move(all), options.alpha));
  }
  return results;
}

}  // namespace kvbench::faithful
