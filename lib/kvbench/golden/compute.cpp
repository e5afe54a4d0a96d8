// SPDX-License-Identifier: Apache-2.0
#include <kvbench/golden/compute.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/error.hpp>
#include <kvbench/golden/compare.hpp>
#include <kvbench/methods/sets.hpp>
#include <kvbench/replay/records/predicted_kl.hpp>
#include <kvbench/replay/replay.hpp>

namespace kvbench::golden {
namespace {

/// A layer of the bundled trace, replayed as a whole: some methods see all its heads. The kv head has the rows of the
/// methods that see one head alone.
struct Place {
  replay::Protocol protocol;
  const char* prompt;
  std::int64_t layer, kv_head;
};
constexpr Place places[] = {{replay::Protocol::decode, "0", 2, 0}, {replay::Protocol::prefill, "1", 14, 2}};

/// A number of tokens and a share of the memory; what a method cannot meet is replaced by what it can: retrieval holds
/// more than the full cache, and quantisers hold every token.
std::vector<std::string> budgets_of(const methods::MethodInfo& method) {
  using methods::Kind;
  // At 25%mem its fits have more unknowns than the trace has queries, so that rounding decides their figures.
  if (method.name == "attention-matching") return {"128"};
  // Lists of ids without runs are long. What a composition keeps at 25%mem, its parts have kept at other budgets.
  if (method.name == "wildcat" || methods::family_of(method.name) == "composition") return {"128"};
  switch (method.kind) {
    case Kind::exact:
      return {"100%mem"};
    case Kind::retrieval:
      return {"128", "40%read"};
    case Kind::quantisation:
      return {"25%mem", "60%mem"};
    default:
      return {"128", "25%mem"};
  }
}

/// Whether a kv head of a layer of the bundled trace has golden rows of a method: one head of each layer, or all where
/// the heads of a layer affect each other.
bool has_rows(const replay::MethodChoice& method, std::int64_t layer, Index kv_head) {
  return !method.info->heads_alone(method.params) ||
         std::ranges::any_of(places, [&](const Place& p) { return p.layer == layer && p.kv_head == kv_head; });
}

/// The replays whose configurations are the golden rows of these methods, with the same configurations in each.
std::vector<replay::ReplayRequest> golden_requests(std::span<const Method> methods) {
  replay::ReplayRequest all;
  all.seeds = {0};
  all.budgets.clear();
  for (const char* budget : {"128", "25%mem", "40%read", "60%mem", "100%mem"})
    all.budgets.push_back(Budget::parse(budget));
  for (std::size_t m = 0; m < methods.size(); ++m) {
    all.methods.push_back(methods[m].replayed);
    const std::vector<std::string> own = budgets_of(*methods[m].named.info);
    for (std::size_t b = 0; b < all.budgets.size(); ++b) {
      if (std::ranges::find(own, all.budgets[b].text()) == own.end()) all.excluded.emplace_back(m, b);
    }
  }
  std::vector<replay::ReplayRequest> requests;
  for (const Place& place : places) {
    replay::ReplayRequest& request = requests.emplace_back(all);
    request.protocol = place.protocol;
    request.prompts = {place.prompt};
    request.layers = {place.layer};
  }
  return requests;
}

}  // namespace

std::vector<Method> golden_methods() {
  std::vector<methods::MethodSettings> rows = methods::rows_of_set("all");
  for (const char* name : {"oracle-error", "adakv@kvpress(snapkv@kvpress)", "criticalkv(snapkv@kvpress)"})
    rows.push_back({&methods::find_method(name), {}});
  std::vector<Method> out;
  for (const auto& [info, settings] : rows) {
    const replay::MethodChoice choice{info, info->bind(settings)};
    out.push_back({choice, choice});
  }
  return out;
}

bool states_prediction(const replay::MethodChoice& method) {
  constexpr std::string_view names[] = {"snapkv", "kmeans", "q4_0"};
  return method.params.text().empty() && std::ranges::count(names, method.info->name) > 0;
}

namespace {

using replay::ConfigurationResult;
using replay::ReplayResults;

/// The name by which rows state the back end of a replay.
std::string backend_of(const replay::RunOptions& options, const ReplayResults& results) {
  return options.backend == "cpu" ? results.isa : options.backend;
}

/// Means over the evaluated queries where the metric applies, by query head; empty where it applies nowhere.
std::vector<double> means_of(const ConfigurationResult& result, replay::Metric metric, Index group, Index queries) {
  std::vector<double> means;
  for (Index g = 0; g < group; ++g) {
    double sum = 0, count = 0;
    for (Index i = 0; i < queries; ++i) {
      const float value = result.metrics[static_cast<std::size_t>(g * queries + i)][metric];
      if (!std::isnan(value)) sum += value, ++count;
    }
    means.push_back(sum / count);
  }
  if (std::ranges::all_of(means, [](double mean) { return std::isnan(mean); })) means.clear();
  return means;
}

/// NaN without probes.
double prediction_of(const ConfigurationResult& result, Index scored) {
  const std::size_t probes = scored > 0 ? result.probe_sums.size() : 0;
  if (probes == 0) return NAN;
  const replay::ProbeSums sums{
      .scored = static_cast<std::size_t>(scored), .layers = 1, .seeds = 1, .probes = probes, .sums = result.probe_sums};
  return replay::predict_kl({&sums, 1}, {}).mean;
}

/// Adds ids and weights of the entries that answer the last of `queries` queries.
void add_entries(Row& row, const replay::RawResult& raw, Index group, Index queries) {
  const Index answered = queries - raw.entries_query;
  const bool weighted = std::ranges::any_of(raw.entries, &methods::HostTable::weighted);
  for (Index g = 0; g < group; ++g) {
    std::vector<std::int32_t> ids;
    double num = 0, den = 0;
    for (const methods::HostTable& table : raw.entries) {
      const Index begin = methods::table_row(table, g, answered - 1, answered) * table.width;
      for (auto slot = static_cast<std::size_t>(begin); slot < static_cast<std::size_t>(begin + table.width); ++slot) {
        if (table.ids[slot] < 0) continue;
        ids.push_back(table.ids[slot]);
        num += table.num(slot);
        den += table.den(slot);
      }
    }
    row.entries.push_back(std::ssize(ids));
    row.ids.push_back(std::move(ids));
    if (weighted) row.weight_num.push_back(num), row.weight_den.push_back(den);
  }
  row.ids = canonical(std::move(row.ids));
  row.ids_sha256 = digest_of(row.ids, group);
}

void add_rows(std::vector<Row>& rows, const ReplayResults& results, std::size_t configuration,
              std::span<const Method> methods, const std::string& backend) {
  const replay::Configuration& key = results.configurations[configuration];
  const replay::MethodChoice& named = methods[key.method].named;
  for (const replay::HeadResult& head : results.heads) {
    if (!has_rows(named, head.layer, head.place.kv_head)) continue;
    const auto& prompt = results.prompts[head.place.prompt];
    Row row = row_of(head.results[configuration], results.group, std::ssize(head.positions));
    row.trace = results.trace, row.sha256 = results.sha256.substr(0, digest_digits);
    row.method = named.info->name, row.params = named.params.text(), row.budget = results.budgets[key.budget];
    row.seed = key.seed, row.protocol = prompt.protocol, row.prompt = prompt.id;
    row.layer = head.layer, row.kv_head = head.place.kv_head;
    row.backends = {backend};
    if (row.fault.empty() && states_prediction(named))
      row.kl_predicted = prediction_of(head.results[configuration], prompt.scored_tokens);
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::string name_of(const Row& row) {
  const std::string settings = row.params.empty() ? "" : fmt::format("[{}]", row.params);
  return fmt::format("{}{} at {}, {}, prompt {}, layer {}, kv head {}", row.method, settings, row.budget,
                     replay::name_of(row.protocol), row.prompt, row.layer, row.kv_head);
}

Row row_of(const ConfigurationResult& result, Index group, Index queries) {
  Row row;
  if (result.status != replay::Status::ok) {
    row.fault = fmt::format("{}: {}", replay::name_of(result.status), result.reason);
    return row;
  }
  row.budget_tokens = result.budget_tokens;
  row.total_bytes = result.bytes.of(CostKind::memory);
  row.bytes_read = result.bytes.of(CostKind::read);
  row.rel_err = means_of(result, replay::Metric::rel_err, group, queries);
  row.recall = means_of(result, replay::Metric::recall, group, queries);
  for (Index g = 1; g <= group; ++g)
    row.rel_err_last.push_back(result.metrics[static_cast<std::size_t>(g * queries - 1)][replay::Metric::rel_err]);
  add_entries(row, result.raw.value(), group, queries);
  return row;
}

std::vector<Row> compute_rows(const trace::Reader& reader, std::span<const Method> methods,
                              const replay::RunOptions& options, const replay::ReplayHooks& hooks) {
  replay::RunOptions how = options;
  how.keep_raw = true;
  const std::vector<replay::ReplayRequest> requests = golden_requests(methods);
  std::vector<ReplayResults> results;
  replay::ReplayHooks part = hooks;
  part.progress = [&](double done, Index total) {
    const double before = static_cast<double>(results.size());
    if (hooks.progress) hooks.progress(before + done / static_cast<double>(total), std::ssize(requests));
  };
  for (const replay::ReplayRequest& request : requests) results.push_back(replay::replay(reader, request, how, part));
  std::vector<Row> rows;
  for (std::size_t c = 0; c < results.front().configurations.size(); ++c) {
    for (const ReplayResults& one : results) add_rows(rows, one, c, methods, backend_of(how, one));
  }
  return rows;
}

std::vector<Row> join_backends(const std::vector<std::vector<Row>>& rows, double& deviation) {
  std::vector<Row> joined;
  deviation = 0;
  for (std::size_t i = 0; i < rows.front().size(); ++i) {
    const std::size_t first = joined.size();
    for (const std::vector<Row>& of_backend : rows) {
      const Row& row = of_backend[i];
      if (row.fault.starts_with(replay::name_of(replay::Status::failed)) ||
          row.fault.empty() != rows.front()[i].fault.empty())
        throw Error("{} on {}: {}", name_of(row), row.backends.front(), row.fault.empty() ? "runs" : row.fault);
      if (!row.fault.empty()) continue;
      const auto same = std::find_if(joined.begin() + static_cast<std::ptrdiff_t>(first), joined.end(),
                                     [&](const Row& known) { return compare(known, row).differences.empty(); });
      if (same == joined.end()) {
        joined.push_back(row);
      } else {
        deviation = std::max(deviation, compare(*same, row).deviation);
        same->backends.push_back(row.backends.front());
      }
    }
  }
  return joined;
}

}  // namespace kvbench::golden
