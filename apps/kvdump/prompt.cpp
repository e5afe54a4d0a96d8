// SPDX-License-Identifier: Apache-2.0
#include "prompt.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <kvbench/core/error.hpp>

namespace kvbench::kvdump {
namespace {

std::string read_text(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw Error("{}: there is no such prompt file", path);
  if (std::filesystem::is_directory(path, error)) throw Error("{}: is a folder; a prompt must be a file", path);
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) throw IoError("{}: the prompt cannot be read", path);
  if (text.size() > INT32_MAX) throw Error("{}: is longer than 2 GiB; shorten it", path);
  return text;
}

std::vector<std::int32_t> read_ids(const std::string& path, std::int32_t vocabulary_size) {
  const std::string text = read_text(path);
  std::vector<std::int32_t> ids;
  constexpr const char* space = " \t\r\n";
  for (auto begin = text.find_first_not_of(space); begin != text.npos; begin = text.find_first_not_of(space, begin)) {
    const auto end = std::min(text.find_first_of(space, begin), text.size());
    std::int32_t id = -1;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end || id < 0 || id >= vocabulary_size) {
      throw Error("{}: '{}' (item {}) is not a token id of this model; ids are whole numbers from 0 to {}", path,
                  text.substr(begin, std::min<std::size_t>(end - begin, 20)), ids.size() + 1, vocabulary_size - 1);
    }
    ids.push_back(id);
    begin = end;
  }
  return ids;
}

void cut(std::vector<std::int32_t>& tokens, const std::string& path, const Options& options, int training_context) {
  const auto have = std::ssize(tokens);
  if (have < 2) throw Error("{}: a prompt of {} tokens is too short; give at least 2", path, have);
  if (options.ctx && *options.ctx > have) {
    throw Error("{}: --ctx {} is more than its {} tokens; give a longer prompt or --ctx {}, or omit --ctx to use all", path,
                *options.ctx, have, have);
  }
  tokens.resize(static_cast<std::size_t>(options.ctx.value_or(std::min<std::int64_t>(have, training_context))));
}

Prompt plan(const std::string& path, std::vector<std::int32_t> tokens, const Options& options, int training_context) {
  cut(tokens, path, options, training_context);
  Prompt prompt{std::filesystem::path(path).stem().string(), std::move(tokens), 0, {}, {}};
  const auto n = std::ssize(prompt.tokens);
  prompt.prompt_tokens = options.prompt_tokens.value_or(default_prompt_tokens(options.queries, n));
  if (prompt.prompt_tokens > n) {
    throw Error("{}: --prompt-tokens {} exceeds the {} tokens that are used of it; give at most {}", path, prompt.prompt_tokens,
                n, n);
  }
  prompt.query_positions = query_positions(options.queries, n, prompt.prompt_tokens);
  prompt.batches = batch_sizes(options.queries, n, Context::batch);
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
  for (const auto& path : options.texts) {
    if (!model.has_tokenizer()) throw Error("{}: {} has no tokenizer; give token ids with --ids", path, model.path());
    prompts.push_back(plan(path, model.tokenize(read_text(path)), options, training_context));
  }
  for (const auto& path : options.ids) {
    prompts.push_back(plan(path, read_ids(path, model.vocabulary_size()), options, training_context));
  }
  return prompts;
}

}  // namespace kvbench::kvdump
