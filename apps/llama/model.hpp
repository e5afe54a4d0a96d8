// SPDX-License-Identifier: Apache-2.0
// A model of llama.cpp, and the properties of a model that kvdump and kveval read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ggml-backend.h>
#include <llama.h>

namespace kvbench::llama {

/// Suppresses messages of llama.cpp.
void quiet_llama();

/// The first error of llama.cpp since a model was loaded, as a clause to append to a sentence; empty if there was none.
std::string first_llama_error();

class Model {
 public:
  /// Loads the weights. Throws Error where the file is missing or not a GGUF model, Interrupted after a signal.
  explicit Model(const std::string& path);

  /// Throws Error with the reason for unsupported models: encoders, diffusion, recurrent models, latent attention
  /// (MLA), models without RoPE.
  void refuse_unsupported() const;

  /// A scalar of the GGUF metadata; "{arch}" in the key is replaced by the architecture.
  std::optional<std::string> metadata(std::string key) const;

  bool has_tokenizer() const;
  std::vector<std::int32_t> tokenize(const std::string& text) const;
  /// The same without what the tokeniser adds at the beginning or end.
  std::vector<std::int32_t> tokenize_piece(const std::string& text) const;
  /// The same where the texts of control tokens stand for the tokens, as in chat templates.
  std::vector<std::int32_t> tokenize_controls(const std::string& text) const;
  /// What the tokeniser adds at the beginning of a text (BOS), or nothing.
  std::vector<std::int32_t> prefix() const;
  /// The bytes of tokens, without those of control tokens.
  std::string text_of(const std::vector<std::int32_t>& tokens) const;
  std::int32_t vocabulary_size() const;
  /// Whether an answer ends with this token; never, of a model without a tokenizer.
  bool is_end(std::int32_t token) const;

  const std::string& path() const { return path_; }
  std::string arch() const { return metadata("general.architecture").value_or("unknown"); }
  /// Element types of the matrices in all parts of the file, the type with most weights first: "F32", "Q4_1, Q8_0".
  /// They are those of the tensors: the file_type of the metadata may be missing or wrong.
  const std::string& quantisation() const { return quantisation_; }
  bool is_f32() const { return quantisation_ == "F32"; }
  /// As TraceInfo::channel_order(); a model without RoPE is refused.
  std::string channel_order() const {
    return llama_model_rope_type(model_.get()) == LLAMA_ROPE_TYPE_NORM ? "interleaved" : "half";
  }
  std::uint64_t num_parameters() const { return llama_model_n_params(model_.get()); }
  int num_layers() const { return llama_model_n_layer(model_.get()); }
  int num_query_heads() const { return llama_model_n_head(model_.get()); }
  /// The layers that have keys and values. A hybrid model has others, whose state does not grow with the tokens.
  const std::vector<int>& cached_layers() const { return attention().layers; }
  /// Throws Error if one of these layers of the model is none of them.
  void require_cached(const std::vector<int>& layers, std::string_view flag) const;
  bool is_hybrid() const { return llama_model_is_hybrid(model_.get()); }
  int num_kv_heads() const { return attention().kv_heads; }  ///< of the layers that have keys and values
  int training_context() const { return llama_model_n_ctx_train(model_.get()); }
  llama_model* handle() const { return model_.get(); }

 private:
  std::vector<std::int32_t> tokens_of(const std::string& text, bool add_special, bool parse_special) const;

  struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  struct Attention {
    std::vector<int> layers;
    int kv_heads = 0;
  };
  /// Found when it is first asked for: of a hybrid model, the weights are read for it.
  const Attention& attention() const;

  std::string path_, quantisation_;
  std::unique_ptr<llama_model, Free> model_;
  mutable std::optional<Attention> attention_;
};

}  // namespace kvbench::llama
