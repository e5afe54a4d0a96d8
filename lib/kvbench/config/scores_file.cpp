// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/scores_file.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include <kvbench/config/file_digest.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/trace/guard/input_file.hpp>
#include <kvbench/trace/schema.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::config {
namespace {

using methods::GivenScores;
using methods::LayerScores;
using trace::h5::InputObject;

constexpr int schema_major = 1;
constexpr const char* again = "write it again with kvbench.write_scores()";

/// Throws Error, naming the object, the fault and the remedy, where `holds` is false.
void require(bool holds, const InputObject& where, const std::string& fault) {
  if (!holds) throw Error("{}: {}; {}.", where.where(), fault, again);
}

void check_schema(const InputObject& root, const std::string& path) {
  const std::string schema = root.text("kvbench_scores").value_or("");
  if (schema.empty())
    throw Error(
        "{} has no attribute kvbench_scores, so it holds no scores{}; write them with kvbench.write_scores() "
        "(docs/scores.md).",
        path, root.text("kvbench_trace") ? ": it is a trace" : "");
  if (std::atoi(schema.c_str()) != schema_major)
    throw Error("{}: its schema is kvbench_scores {}, and this kvbench reads {}.x; use a newer kvbench.", path, schema,
                schema_major);
}

std::string digest_of(const InputObject& root) {
  constexpr std::size_t digits = 64;
  const std::string digest = root.text("trace_sha256").value_or("");
  const bool hex = digest.find_first_not_of("0123456789abcdef") == digest.npos;
  require(hex && digest.size() == digits, root,
          fmt::format("the attribute trace_sha256 is '{}', not the SHA-256 of a trace in lower-case hex", digest));
  return digest;
}

std::optional<std::int64_t> layer_number(const std::string& name) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size() && std::to_string(number) == name;
  return whole && number >= 0 && number < trace::most_layers ? std::optional(number) : std::nullopt;
}

LayerScores read_layer(const InputObject& dataset) {
  const std::vector<hsize_t> dims = dataset.dims();
  require(dims.size() == 2 && dims[0] >= 1 && dims[1] >= 1, dataset, "scores have the shape [kv heads, tokens]");
  require(dims[0] <= trace::most_heads && dims[1] <= trace::most_tokens, dataset, "it is larger than a trace can be");
  require(H5Tget_class(dataset.type().get()) == H5T_FLOAT, dataset, "scores are floating-point numbers");
  LayerScores layer{static_cast<Index>(dims[0]), static_cast<Index>(dims[1]), {}};
  layer.values.resize(static_cast<std::size_t>(layer.heads * layer.tokens));
  dataset.read(H5T_NATIVE_FLOAT, layer.values.data());
  const auto bad = std::ranges::find_if(layer.values, [](float score) { return !std::isfinite(score); });
  if (bad == layer.values.end()) return layer;
  const Index at = bad - layer.values.begin();
  throw Error("{}: kv head {}, token {} is {}; a score is a finite number: {}.", dataset.where(), at / layer.tokens,
              at % layer.tokens, *bad, again);
}

/// Scores of another number of kv heads or tokens than those of the layers before are of another model or prompt.
void check_alike(const LayerScores& layer, const LayerScores& other, const InputObject& dataset) {
  require(layer.heads == other.heads && layer.tokens == other.tokens, dataset,
          fmt::format("it has the shape [{}, {}], and another layer of the prompt has [{}, {}]", layer.heads,
                      layer.tokens, other.heads, other.tokens));
}

GivenScores read(const InputObject& root, const std::string& path) {
  check_schema(root, path);
  GivenScores scores{path, digest_of(root), {}};
  const InputObject prompts = root.group("prompts");
  for (const std::string& id : prompts.members()) {
    const InputObject prompt = prompts.group(id);
    check_name(id, prompt.where());
    auto& layers = scores.prompts[id];
    for (const std::string& name : prompt.members()) {
      const auto number = layer_number(name);
      require(number.has_value(), prompt, fmt::format("'{}' is not the number of a layer", name));
      const InputObject dataset = prompt.dataset(name);
      const LayerScores& layer = layers.emplace(*number, read_layer(dataset)).first->second;
      check_alike(layer, layers.begin()->second, dataset);
    }
    require(!layers.empty(), prompt, "it has no scores of a layer");
  }
  require(!scores.prompts.empty(), prompts, "there are no prompts");
  return scores;
}

methods::MethodInfo scores_method(const std::string& name, const std::string& digest, GivenScores scores) {
  methods::MethodInfo info = given_scores_method(name, std::move(scores));
  info.params.insert(info.params.begin(), digest_param(digest));
  info.bind = [=, bind = info.bind](std::span<const methods::Assignment> settings) {
    std::vector<methods::Assignment> own(settings.begin(), settings.end());
    std::string text = take_digest(name, digest, own);
    methods::Params params = bind(own);
    text += (params.text().empty() ? "" : ";") + params.text();
    return params.with_text(std::move(text));
  };
  return info;
}

}  // namespace

GivenScores read_scores(const std::string& path) {
  GivenScores scores;
  const trace::InputFile file(path, "a file of scores", "docs/scores.md",
                              [&](const InputObject& root) { scores = read(root, path); });
  return scores;
}

const methods::MethodInfo& find_scores(const methods::MethodName& name) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, methods::MethodInfo> known;  // by name and digest
  if (!name.file.ends_with(".h5")) throw Error("'{}' does not name a file of scores; write scores:FILE.h5", name.base);
  GivenScores scores = read_scores(name.file);
  const std::string digest = trace::sha256_of_file(name.file);
  const std::lock_guard lock(mutex);
  const std::pair key(name.base, digest);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, scores_method(key.first, digest, std::move(scores))).first->second;
}

}  // namespace kvbench::config
