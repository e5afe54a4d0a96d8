// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/model.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>
#include <ggml.h>
#include <gguf.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/core/output_path.hpp>

#include <apps/common/model_files.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/llama/node_name.hpp>

namespace kvbench::llama {
namespace {

std::string& llama_error() {
  static std::string text;
  return text;
}

/// Keeps the first error: those behind it say no more than that something failed.
void keep_error(ggml_log_level level, const char* text, void*) {
  if (level != GGML_LOG_LEVEL_ERROR) return;  // compared exactly, because CONT is larger than ERROR
  if (!llama_error().empty()) return;
  llama_error() = text;
  while (!llama_error().empty() && llama_error().back() == '\n') llama_error().pop_back();
}

llama_model* load(const std::string& path) {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = 0;
  params.progress_callback = [](float, void*) { return !app::stop_requested(); };
  llama_error().clear();
  return llama_model_load_from_file(path.c_str(), params);
}

/// Adds the numbers of weights by element type in the matrices of one GGUF file. Norms and biases are no matrices, and
/// tensors of integers are no weights.
void count_weights(const std::string& file, std::map<std::string, std::int64_t>& weights) {
  ggml_context* tensors = nullptr;
  const std::unique_ptr<gguf_context, void (*)(gguf_context*)> header(
      gguf_init_from_file(file.c_str(), {.no_alloc = true, .ctx = &tensors}), gguf_free);
  if (!header) throw Error("{}: its list of tensors cannot be read{}", file, first_llama_error());
  const std::unique_ptr<ggml_context, void (*)(ggml_context*)> owned(tensors, ggml_free);
  for (ggml_tensor* t = ggml_get_first_tensor(tensors); t; t = ggml_get_next_tensor(tensors, t)) {
    const bool integers = t->type >= GGML_TYPE_I8 && t->type <= GGML_TYPE_I64;
    if (ggml_n_dims(t) < 2 || integers) continue;
    std::string type = ggml_type_name(t->type);
    std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::toupper(c); });
    weights[type] += ggml_nelements(t);
  }
}

std::string types_of_matrices(const std::string& path) {
  std::map<std::string, std::int64_t> weights;
  for (const std::string& part : app::model_files(path)) count_weights(part, weights);
  std::vector<std::pair<std::int64_t, std::string>> ordered;
  for (const auto& [type, count] : weights) ordered.emplace_back(-count, type);
  std::ranges::sort(ordered);
  std::vector<std::string> types;
  for (auto& [count, type] : ordered) types.push_back(std::move(type));
  return fmt::format("{}", fmt::join(types, ", "));
}

/// What may help where a model cannot be loaded.
std::string hint_for_model(const std::string& path) {
  const std::string first = app::model_files(path).front();
  if (first != path) return fmt::format(" Name the first part of the model, {}.", first);
  return file_begins_with(path, "GGUF") ? "" : file_hint(path);
}

/// Reads a graph: the layers in which it has a softmax, and the heads of their keys.
struct FoundAttention {
  std::vector<int> layers;
  std::int64_t kv_heads = 0;

  static bool on_node(ggml_tensor* node, bool, void* self) {
    auto& found = *static_cast<FoundAttention*>(self);
    const auto name = parse_node_name(node->name);
    if (name && name->role == Role::softmax) found.layers.push_back(name->layer);
    if (name && name->role == Role::key && node->op == GGML_OP_ROPE) found.kv_heads = node->ne[1];
    return false;  // its data is not wanted
  }
};

/// The attention layers of a hybrid model. Metadata name them in other ways for each architecture; the graph of one
/// token has them. None if no context can be made.
FoundAttention attention_of(llama_model* model) {
  FoundAttention found;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = 32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.offload_kqv = params.op_offload = false;
  params.cb_eval = FoundAttention::on_node;
  params.cb_eval_user_data = &found;
  const std::unique_ptr<llama_context, void (*)(llama_context*)> context(llama_init_from_model(model, params),
                                                                         llama_free);
  llama_token token = 0;
  if (context) llama_decode(context.get(), llama_batch_get_one(&token, 1));
  return found;
}

}  // namespace

void quiet_llama() { llama_log_set(keep_error, nullptr); }

std::string first_llama_error() { return llama_error().empty() ? "" : fmt::format(" (llama.cpp: {})", llama_error()); }

Model::Model(const std::string& path) : path_(path) {
  const InputDescriptor file(path);
  if (file.get() < 0 && errno == ENOENT) {
    throw Error(
        "{}: there is no such model file; give the path of a GGUF file (scripts/fetch-model downloads a small one)",
        path);
  }
  regular_file_size(file, path, "a GGUF file");
  for (const std::string& part : app::model_files(path)) remember_read(part);
  model_.reset(load(path));
  app::stop_if_requested();
  if (!model_) {
    const std::string hint = hint_for_model(path);
    throw Error("{}: is not a GGUF model that this llama.cpp can load{}{}", path, first_llama_error(),
                hint.empty() ? "" : "." + hint);
  }
  quantisation_ = types_of_matrices(path);
}

const Model::Attention& Model::attention() const {
  if (attention_) return *attention_;
  if (is_hybrid()) {
    FoundAttention found = attention_of(model_.get());
    attention_ = {std::move(found.layers), static_cast<int>(found.kv_heads)};
  } else {
    std::vector<int> all(static_cast<std::size_t>(num_layers()));
    std::iota(all.begin(), all.end(), 0);
    attention_ = {std::move(all), llama_model_n_head_kv(model_.get())};
  }
  return *attention_;
}

void Model::refuse_unsupported() const {
  const auto refuse = [&](std::string_view why) { throw Error("{}: architecture '{}' {}", path_, arch(), why); };
  llama_model* model = model_.get();
  if (llama_model_has_encoder(model) || !llama_model_has_decoder(model) ||
      metadata("{arch}.attention.causal") == "false") {
    refuse("has an encoder; only decoder-only models are supported");
  }
  if (llama_model_is_diffusion(model))
    refuse("is a diffusion model with bidirectional attention; only causal attention is supported");
  if (llama_model_is_recurrent(model)) refuse("is recurrent and has no KV cache");
  if (metadata("{arch}.attention.kv_lora_rank")) {
    refuse("uses latent attention (MLA): its cache has no keys and values per head");
  }
  if (llama_model_rope_type(model) == LLAMA_ROPE_TYPE_NONE) {
    refuse("has no rotary position embedding (RoPE); a trace needs post-RoPE queries and keys");
  }
  if (num_kv_heads() == 0)
    refuse(
        "is hybrid, and its graph has no keys with rotary position embedding (RoPE) that are named as those of others");
}

void Model::require_cached(const std::vector<int>& layers, std::string_view flag) const {
  for (const int layer : layers) {
    if (std::ranges::binary_search(cached_layers(), layer)) continue;
    throw Error("{}: layer {} of this hybrid model is recurrent and has no keys and values; layers {} have them", flag,
                layer, fmt::join(cached_layers(), ","));
  }
}

std::optional<std::string> Model::metadata(std::string key) const {
  if (const auto at = key.find("{arch}"); at != key.npos) key.replace(at, 6, arch());
  std::string value(256, '\0');
  const int length = llama_model_meta_val_str(model_.get(), key.c_str(), value.data(), value.size());
  if (length < 0) return std::nullopt;
  value.resize(std::min(static_cast<std::size_t>(length), value.size() - 1));
  return value;
}

bool Model::has_tokenizer() const {
  return llama_vocab_type(llama_model_get_vocab(model_.get())) != LLAMA_VOCAB_TYPE_NONE;
}

std::vector<std::int32_t> Model::tokenize(const std::string& text) const { return tokens_of(text, true, false); }

std::vector<std::int32_t> Model::tokenize_piece(const std::string& text) const { return tokens_of(text, false, false); }

std::vector<std::int32_t> Model::tokenize_controls(const std::string& text) const {
  return tokens_of(text, false, true);
}

std::vector<std::int32_t> Model::prefix() const {
  const llama_vocab* vocab = llama_model_get_vocab(model_.get());
  if (!llama_vocab_get_add_bos(vocab)) return {};
  return {llama_vocab_bos(vocab)};
}

std::vector<std::int32_t> Model::tokens_of(const std::string& text, bool add_special, bool parse_special) const {
  const llama_vocab* vocab = llama_model_get_vocab(model_.get());
  const auto length = static_cast<std::int32_t>(text.size());
  const int needed = -llama_tokenize(vocab, text.data(), length, nullptr, 0, add_special, parse_special);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(std::max(needed, 0)));
  llama_tokenize(vocab, text.data(), length, tokens.data(), needed, add_special, parse_special);
  return tokens;
}

std::string Model::text_of(const std::vector<std::int32_t>& tokens) const {
  const llama_vocab* vocab = llama_model_get_vocab(model_.get());
  std::string text, piece(64, '\0');
  for (const std::int32_t token : tokens) {
    const auto read = [&] {
      return llama_token_to_piece(vocab, token, piece.data(), static_cast<std::int32_t>(piece.size()), 0, false);
    };
    std::int32_t size = read();
    if (size < 0) {  // it is longer
      piece.resize(static_cast<std::size_t>(-size));
      size = read();
    }
    text.append(piece, 0, static_cast<std::size_t>(size));
  }
  return text;
}

bool Model::is_end(std::int32_t token) const {
  return has_tokenizer() && llama_vocab_is_eog(llama_model_get_vocab(model_.get()), token);
}

std::int32_t Model::vocabulary_size() const { return llama_vocab_n_tokens(llama_model_get_vocab(model_.get())); }

}  // namespace kvbench::llama
