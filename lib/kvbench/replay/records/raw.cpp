// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/raw.hpp>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/replay/records/anchors.hpp>
#include <kvbench/trace/hdf5/output.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::replay {
namespace {

using trace::h5::Object;
using trace::h5::write;

void write_entries(const Object& result, const RawResult& raw, const trace::TraceInfo& info) {
  const Object entries = result.create_group("entries");
  entries.set("first_query", static_cast<std::int64_t>(raw.entries_query));
  for (std::size_t t = 0; t < raw.entries.size(); ++t) {
    const methods::HostTable& table = raw.entries[t];
    const Object group = entries.create_group(std::to_string(t));
    group.set("per_head", static_cast<std::int64_t>(table.per_head));
    group.set("per_query", static_cast<std::int64_t>(table.per_query));
    const std::vector<Index> shape = {table.rows, table.width};
    write(group, "ids", table.ids, shape);
    write(group, "weight_num", table.weight_num, shape);
    write(group, "weight_den", table.weight_den, shape);
    write(group, "own_keys", table.own_keys, {table.rows, table.width, info.head_dim});
    write(group, "own_values", table.own_values, {table.rows, table.width, info.value_dim});
    write(group, "range", table.range, {2, info.value_dim});
    if (table.rows_by_token) group.set("rows_by_token", std::int64_t{1});
  }
}

void write_result(const Object& group, const ConfigurationResult& result, const trace::TraceInfo& info, Index queries) {
  group.set("status", std::string(name_of(result.status)));
  if (!result.reason.empty()) group.set("reason", result.reason);
  if (result.dense) group.set("dense", std::int64_t{1});
  if (result.status != Status::ok) return;
  group.set("budget_tokens", static_cast<std::int64_t>(result.budget_tokens));
  group.set("kept_tokens", result.kept_tokens);
  group.set("total_bytes", result.bytes.of(CostKind::memory));
  group.set("bytes_read", result.bytes.of(CostKind::read));
  std::vector<float> metrics;
  for (const MetricRow& row : result.metrics) metrics.insert(metrics.end(), row.begin(), row.end());
  write(group, "metrics", metrics, {info.group(), queries, std::ssize(all_metrics())});
  if (!result.probe_sums.empty())
    write(group, "probe_sums", result.probe_sums, {static_cast<Index>(result.probe_sums.size())});
  if (!result.raw) return;
  write(group, "output", result.raw->output, {info.group(), queries, info.value_dim});
  write_entries(group, *result.raw, info);
}

void write_anchors(const Object& root, std::span<const ReplayFrame::Prompt> prompts) {
  for (const auto& [kind, name] : change_kinds) {
    const AnchorRatio ratio = anchor_ratio(prompts, kind);
    if (ratio.anchors > 1) root.set(fmt::format("anchors_{}", name).c_str(), ratio.factor);
  }
}

void write_all(const Object& root, const trace::Reader& reader, const ReplayRequest& request,
               const ReplayResults& results) {
  const trace::TraceInfo& info = reader.info();
  root.set("kvbench_raw", std::string("1.0"));
  root.set("trace", results.trace);
  root.set("trace_sha256", reader.sha256());
  root.set("model", info.model);
  root.set("model_layers", static_cast<std::int64_t>(results.model_layers));
  root.set("device", results.device);
  root.set("isa", results.isa);
  root.set("version", std::string(version()));
  root.set("commit", std::string(commit()));
  root.set("metrics", metric_names());
  write_anchors(root, results.prompts);
  const Object configurations = root.create_group("cells");
  for (std::size_t c = 0; c < results.configurations.size(); ++c) {
    const Configuration& key = results.configurations[c];
    const Object configuration = configurations.create_group(std::to_string(c));
    configuration.set("method", request.methods[key.method].info->name);
    configuration.set("params", request.methods[key.method].params.text());
    configuration.set("budget", request.budgets[key.budget].text());
    configuration.set("seed", static_cast<std::int64_t>(key.seed));
    configuration.set("seeded", std::int64_t{request.methods[key.method].depends_on_seed()});
  }
  std::vector<std::string> digests;
  for (const trace::PromptInfo& prompt : info.prompts) digests.push_back(trace::sha256_of_tokens(prompt.tokens));
  const Object heads = root.create_group("heads");
  for (std::size_t h = 0; h < results.heads.size(); ++h) {
    const HeadResult& head = results.heads[h];
    const Object group = heads.create_group(std::to_string(h));
    const trace::PromptInfo& prompt = info.prompts[head.place.prompt];
    group.set("prompt", prompt.id);
    group.set("tokens_sha256", digests[head.place.prompt]);
    group.set("protocol", std::string(name_of(results.prompts[head.place.prompt].protocol)));
    group.set("context_tokens", static_cast<std::int64_t>(results.prompts[head.place.prompt].context_tokens));
    if (const Index scored = results.prompts[head.place.prompt].scored_tokens; scored > 0)
      group.set("scored_tokens", static_cast<std::int64_t>(scored));
    group.set("layer", static_cast<std::int64_t>(prompt.layers[head.place.layer].layer));
    group.set("kv_head", static_cast<std::int64_t>(head.place.kv_head));
    const auto queries = static_cast<Index>(head.positions.size());
    write(group, "positions", head.positions, {queries});
    for (std::size_t c = 0; c < head.results.size(); ++c) {
      write_result(group.create_group(std::to_string(c)), head.results[c], info, queries);
    }
  }
}

}  // namespace

void write_raw(AtomicFile& file, const trace::Reader& reader, const ReplayRequest& request,
               const ReplayResults& results) {
  reader.sha256();  // before the session, as it opens a session itself
  trace::h5::write_file(file, [&](const Object& root) { write_all(root, reader, request, results); });
}

}  // namespace kvbench::replay
