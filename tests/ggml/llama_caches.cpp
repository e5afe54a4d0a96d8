// SPDX-License-Identifier: Apache-2.0
// KL of the next token where llama.cpp keeps its cache in fewer bits, against llama.cpp with a cache in fp32, in the
// model whose weights are converted to fp32.
//
//     llama_caches MODEL IDS CONTEXT SCORE [TYPE | KEYS/VALUES]...
//
// IDS is a file of token ids: CONTEXT of them are the context, and SCORE pass through the model after it. One line per
// type, rotation and run: type,rotated,run,kl, the mean over SCORE - 1 predictions. Types that are named (q5_1, or
// q8_0/q4_0 of keys and values) have the run `own` alone, with the rotation that llama.cpp chooses; otherwise these
// runs of f32, q8_0 and q4_0:
//   own            llama.cpp's cache of this type, while the context is read too
//   exact-context  the same, but the keys and values of the context are those of the cache in fp32, rounded once
//   rounded        a graph in fp32 in which keys and values are rounded; the context as in exact-context
//   rounded-query  the same with queries rounded too, as llama.cpp's flash attention does on processors
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/sha256.hpp>

#include <apps/llama/convert.hpp>
#include <apps/llama/model.hpp>
#include <apps/llama/passes.hpp>

#include "rows_hook.hpp"

using namespace kvbench;
using testing::CacheRounding;
using testing::RowsHook;
using Rows = RowsHook::Batch::Rows;

namespace {

constexpr int threads = 2;
constexpr std::int64_t batch = 512;

struct Free {
  void operator()(llama_context* context) const { llama_free(context); }
};
using Context = std::unique_ptr<llama_context, Free>;

struct Document {
  std::vector<llama_token> tokens;
  std::int64_t context;  ///< tokens; the others are scored
};

struct Types {
  ggml_type keys, values;
};

/// fp32 without flash attention, as in kveval, or with it.
Context context_of(const llama::Model& model, const Document& document, Types types, bool flash, RowsHook& hook) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(document.tokens.size());
  params.n_batch = params.n_ubatch = batch;
  params.n_threads = params.n_threads_batch = threads;
  params.flash_attn_type = flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = types.keys;
  params.type_v = types.values;
  params.cb_eval = RowsHook::on_node;
  params.cb_eval_user_data = &hook;
  Context context(llama_init_from_model(model.handle(), params));
  if (!context)
    throw Error("no context of keys in {} and values in {}{}", ggml_type_name(types.keys), ggml_type_name(types.values),
                llama::first_llama_error());
  return context;
}

void decode(llama_context* context, RowsHook& hook, const Document& document, RowsHook::Batch rows, bool logits) {
  std::vector<llama_token> ids(document.tokens.begin() + rows.begin, document.tokens.begin() + rows.begin + rows.count);
  std::vector<std::int8_t> wanted(ids.size(), logits ? 1 : 0);
  llama_batch tokens = llama_batch_get_one(ids.data(), static_cast<std::int32_t>(ids.size()));
  tokens.logits = wanted.data();
  hook.start(rows);
  if (llama_decode(context, tokens) != 0) throw Error("llama.cpp failed{}", llama::first_llama_error());
}

/// Logits of the scored tokens.
std::vector<float> logits_of(const llama::Model& model, const Document& document, llama_context* context,
                             RowsHook& hook, RowsHook::Batch in_context, RowsHook::Batch scored) {
  for (std::int64_t begin = 0; begin < document.context; begin += batch) {
    in_context.begin = begin;
    in_context.count = std::min(batch, document.context - begin);
    decode(context, hook, document, in_context, false);
  }
  scored.begin = document.context;
  scored.count = std::ssize(document.tokens) - document.context;
  decode(context, hook, document, scored, true);
  const float* logits = llama_get_logits(context);
  return {logits, logits + scored.count * model.vocabulary_size()};
}

double log_of_sum(std::span<const float> logits) {
  double largest = -INFINITY, sum = 0;
  for (const double x : logits) largest = std::max(largest, x);
  for (const double x : logits) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

/// Mean over all tokens but the last.
double kl(std::span<const float> full, std::span<const float> other, std::size_t vocabulary) {
  const std::size_t predictions = full.size() / vocabulary - 1;
  double sum = 0;
  for (std::size_t i = 0; i < predictions; ++i) {
    const auto p = full.subspan(i * vocabulary, vocabulary), q = other.subspan(i * vocabulary, vocabulary);
    const double of_p = log_of_sum(p), of_q = log_of_sum(q);
    for (std::size_t t = 0; t < vocabulary; ++t) sum += std::exp(p[t] - of_p) * (p[t] - of_p - (q[t] - of_q));
  }
  return sum / static_cast<double>(predictions);
}

Document read_ids(const char* path, std::int64_t context, std::int64_t score) {
  std::ifstream file(path);
  Document document = {{}, context};
  for (llama_token id; std::ssize(document.tokens) < context + score && file >> id;) document.tokens.push_back(id);
  if (std::ssize(document.tokens) != context + score) throw Error("{}: too few token ids", path);
  return document;
}

class Runs {
 public:
  Runs(const llama::Model& model, const Document& document)
      : model_(model), document_(document), hook_(model.num_kv_heads()) {
    full_ = logits(f32, false, {.rows = Rows::recorded}, {});
  }

  /// `name`: as the line has it.
  void own(std::string_view name, Types types, bool rotated) {
    setenv("LLAMA_ATTN_ROT_DISABLE", rotated ? "0" : "1", 1);  // read where a context is made
    print(name, rotated, "own", logits(types, true, {}, {}));
  }

  void of_type(ggml_type type, bool rotated) {
    const char* name = ggml_type_name(type);
    own(name, {type, type}, rotated);
    if (!ggml_is_quantized(type)) return;
    const CacheRounding rounding = {type, rotated};
    print(name, rotated, "exact-context", logits({type, type}, true, {.rows = Rows::replaced}, {}));
    for (const bool queries : {false, true})
      print(name, rotated, queries ? "rounded-query" : "rounded",
            logits(f32, false, {.rows = Rows::replaced, .rounding = rounding},
                   {.rounding = rounding, .queries = queries}));
  }

 private:
  static constexpr Types f32 = {GGML_TYPE_F32, GGML_TYPE_F32};

  void print(std::string_view name, bool rotated, const char* run, const std::vector<float>& of_run) const {
    fmt::print("{},{},{},{:.6g}\n", name, rotated ? 1 : 0, run, kl(full_, of_run, vocabulary()));
  }
  std::size_t vocabulary() const { return static_cast<std::size_t>(model_.vocabulary_size()); }
  std::vector<float> logits(Types types, bool flash, RowsHook::Batch context, RowsHook::Batch scored) {
    const Context own = context_of(model_, document_, types, flash, hook_);
    return logits_of(model_, document_, own.get(), hook_, context, scored);
  }

  const llama::Model& model_;
  const Document& document_;
  RowsHook hook_;
  std::vector<float> full_;
};

ggml_type type_of(std::string_view name) {
  for (int type = 0; type < GGML_TYPE_COUNT; ++type)
    if (const char* known = ggml_type_name(static_cast<ggml_type>(type)); known && name == known)
      return static_cast<ggml_type>(type);
  throw Error("{}: not a type of ggml", name);
}

/// TYPE, or KEYS/VALUES.
Types types_of(std::string_view name) {
  const std::size_t slash = std::min(name.find('/'), name.size());
  const ggml_type keys = type_of(name.substr(0, slash));
  return {keys, slash == name.size() ? keys : type_of(name.substr(slash + 1))};
}

}  // namespace

int main(int argc, char** argv) try {
  llama::wait_passively(argv);
  if (argc < 5) throw Error("usage: llama_caches MODEL IDS CONTEXT SCORE [TYPE | KEYS/VALUES]...");
  llama::quiet_llama();
  llama_backend_init();
  std::string path = argv[1];
  if (const llama::Model model(path); !model.is_f32())
    path = llama::converted_to_f32(model, trace::sha256_of_file(path), threads);
  const llama::Model model(path);
  const Document document = read_ids(argv[2], std::atoll(argv[3]), std::atoll(argv[4]));
  Runs runs(model, document);
  fmt::print("type,rotated,run,kl\n");
  for (int i = 5; i < argc; ++i) runs.own(argv[i], types_of(argv[i]), true);
  if (argc > 5) return 0;
  runs.of_type(GGML_TYPE_F32, false);
  for (const ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0})
    for (const bool rotated : {true, false}) runs.of_type(type, rotated);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "llama_caches: {}\n", error.what());
  return 1;
}
