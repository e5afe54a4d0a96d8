// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/check/subject.hpp>

#include <algorithm>
#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index default_window = 256;

/// The context ends where decoding began; where nothing was decoded, a window of tokens before the end.
replay::PromptPlan plan_of(const trace::PromptInfo& prompt, std::size_t index) {
  const Index n = prompt.num_tokens;
  const Index context = prompt.prompt_tokens < n ? prompt.prompt_tokens : n - std::min(default_window, n / 2);
  return {.prompt = index, .protocol = replay::Protocol::prefill, .tokens = n, .context = context, .base = context};
}

Subject load(const trace::Reader& reader, std::size_t p, std::size_t l, Index kv_head, Index queries,
             Backend& backend) {
  const trace::PromptInfo& prompt = reader.info().prompts[p];
  const replay::Head head = load_head(reader, plan_of(prompt, p), {p, l, kv_head}, backend);
  Subject subject{
      .source = std::filesystem::path(reader.path()).filename().string(), .prompt = prompt.id, .head = head.prompt};
  subject.keys = backend.read(head.prompt.keys);
  subject.values = backend.read(head.prompt.values);
  subject.queries = evenly_spaced_rows(head.queries, head.prompt.keys.cols(), queries);
  return subject;
}

bool wanted(const std::vector<std::int64_t>& list, std::int64_t value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

void check_lists(const trace::TraceInfo& info, const std::vector<std::int64_t>& layers,
                 const std::vector<std::int64_t>& heads) {
  for (const std::int64_t layer : layers) {
    const auto holds = [&](const trace::PromptInfo& prompt) {
      return std::ranges::any_of(prompt.layers, [&](const trace::LayerInfo& l) { return l.layer == layer; });
    };
    if (std::ranges::none_of(info.prompts, holds))
      throw Error("`layers`: the trace has no layer {}; see kvbench info", layer);
  }
  for (const std::int64_t head : heads) {
    if (head < 0 || head >= info.num_kv_heads) {
      throw Error("`kv_heads`: there is no kv head {}; the trace has 0 to {}", head, info.num_kv_heads - 1);
    }
  }
}

}  // namespace

std::vector<SubjectSource> trace_subjects(const trace::Reader& reader, const std::vector<std::int64_t>& layers,
                                          const std::vector<std::int64_t>& kv_heads, Index queries) {
  const trace::TraceInfo& info = reader.info();
  check_lists(info, layers, kv_heads);
  std::vector<SubjectSource> sources;
  for (std::size_t p = 0; p < info.prompts.size(); ++p) {
    const trace::PromptInfo& prompt = info.prompts[p];
    for (std::size_t l = 0; l < prompt.layers.size(); ++l) {
      const trace::LayerInfo& layer = prompt.layers[l];
      if (!wanted(layers, layer.layer) || !layer.has_methods()) continue;
      for (Index h = 0; h < info.num_kv_heads; ++h) {
        if (!wanted(kv_heads, h)) continue;
        sources.push_back(
            {fmt::format("prompt {}, layer {}, kv head {}", prompt.id, layer.layer, h),
             [&reader, p, l, h, queries](Backend& backend) { return load(reader, p, l, h, queries, backend); }});
      }
    }
  }
  return sources;
}

std::vector<float> evenly_spaced_rows(const std::vector<float>& rows, Index d, Index count) {
  const Index all = static_cast<Index>(rows.size()) / d, kept = std::min(count, all);
  std::vector<float> out;
  for (Index i = 0; i < kept; ++i) {
    const auto row = rows.begin() + i * all / kept * d;
    out.insert(out.end(), row, row + d);
  }
  return out;
}

methods::HeadPrompt first_context(methods::HeadPrompt head, Index tokens) {
  head.keys = head.keys.slice(0, tokens);
  head.values = head.values.slice(0, tokens);
  head.column_sums = {};
  head.keys_pre_rope = {};
  return head;
}

Subject first_tokens(const Subject& subject, Index tokens) {
  Subject first = subject;
  first.head = first_context(std::move(first.head), tokens);
  first.keys.resize(static_cast<std::size_t>(tokens * subject.d()));
  first.values.resize(static_cast<std::size_t>(tokens * subject.dv()));
  return first;
}

methods::QueryBlock attending_block(const Subject& subject, Backend& backend) {
  const Index m = subject.num_queries();
  const auto last = static_cast<std::int32_t>(subject.tokens());
  methods::QueryBlock block{.queries = backend.adopt(std::vector(subject.queries), m, subject.d())};
  for (Index i = 0; i < m; ++i) block.positions.push_back(last + static_cast<std::int32_t>(i));
  block.first = backend.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(m)), m);
  block.last = backend.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(m), last), m);
  return block;
}

Subject make_subject(SubjectArrays arrays, Backend& backend) {
  const Index n = static_cast<Index>(arrays.keys.size()) / arrays.d;
  Subject subject{.source = std::move(arrays.name), .prompt = ""};
  subject.keys = std::move(arrays.keys);
  subject.values = std::move(arrays.values);
  subject.queries = std::move(arrays.queries);
  // Draws are keyed by the head: each subject has its own.
  subject.head.prompt = PromptId(static_cast<std::int32_t>(methods::fnv1a32(subject.source)));
  subject.head.scale = arrays.scale;
  subject.head.keys = backend.adopt(std::vector(subject.keys), n, arrays.d);
  subject.head.values = backend.adopt(std::vector(subject.values), n, arrays.dv);
  return subject;
}

}  // namespace kvbench::bounds
