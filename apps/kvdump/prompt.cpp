// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/prompt.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <fmt/ranges.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>

#include <apps/llama/context.hpp>
#include <apps/llama/texts.hpp>

namespace kvbench::kvdump {
namespace {

void cut(std::vector<std::int32_t>& tokens, const std::string& path, const Options& options, int training_context) {
  const auto have = std::ssize(tokens);
  if (have < 2) throw Error("{}: a prompt of {} tokens is too short; give at least 2", path, have);
  if (options.ctx && *options.ctx > have) {
    throw Error("{}: --ctx {} is more than its {} tokens; give a longer prompt or --ctx {}, or omit --ctx to use all",
                path, *options.ctx, have, have);
  }
  tokens.resize(static_cast<std::size_t>(options.ctx.value_or(std::min<std::int64_t>(have, training_context))));
}

std::vector<std::int32_t> tokens_of(const std::string& path, const Model& model) {
  if (!model.has_tokenizer()) throw Error("{}: {} has no tokenizer; give token ids with --ids", path, model.path());
  return model.tokenize(llama::read_text(path));
}

Prompt plan(const std::string& path, std::vector<std::int32_t> tokens, const Options& options, int training_context) {
  cut(tokens, path, options, training_context);
  Prompt prompt{std::filesystem::path(path).stem().string(), std::move(tokens), 0, {}, {}};
  const auto n = std::ssize(prompt.tokens);
  prompt.prompt_tokens = options.prompt_tokens.value_or(default_prompt_tokens(options.queries, n));
  if (prompt.prompt_tokens > n) {
    throw Error("{}: --prompt-tokens {} exceeds the {} tokens that are used of it; give at most {}", path,
                prompt.prompt_tokens, n, n);
  }
  prompt.query_positions = query_positions(options.queries, n, prompt.prompt_tokens);
  prompt.batches = batch_sizes(options.queries, n, llama::Context::batch);
  return prompt;
}

}  // namespace

std::vector<Prompt> read_prompts(const Options& options, const Model& model) {
  const int training_context = model.training_context();
  if (options.ctx > training_context) {
    throw Error("--ctx {}: {} was trained on {} tokens; give at most that number", *options.ctx, model.path(),
                training_context);
  }
  std::vector<Prompt> prompts;
  for (const auto& path : options.texts)
    prompts.push_back(plan(path, tokens_of(path, model), options, training_context));
  for (const auto& path : options.ids) {
    prompts.push_back(plan(path, llama::read_ids(path, model.vocabulary_size()), options, training_context));
  }
  return prompts;
}

void write_tokens(const Options& options, const Model& model) {
  AtomicFile file(options.output);
  std::ofstream out(file.temporary());
  for (const auto& path : options.texts) out << fmt::format("{}\n", fmt::join(tokens_of(path, model), " "));
  out.close();
  if (!out) throw_write_error(options.output, "writing", errno);
  file.publish();
}

}  // namespace kvbench::kvdump
