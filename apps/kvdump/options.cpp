// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/options.hpp>

#include <limits>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <kvbench/core/error.hpp>
#include <kvbench/core/version.hpp>

#include <apps/common/command_line.hpp>

namespace kvbench::kvdump {
namespace {

const CLI::Validator positive = app::number_in<std::int64_t>(1).description("");
const CLI::Validator of_prompt = app::number_in<std::int64_t>(2).description("");  // a context and a token after it

trace::Dtype parse_dtype(const std::string& text) {
  for (const auto dtype : {trace::Dtype::f32, trace::Dtype::f16, trace::Dtype::bf16}) {
    if (text == trace::name_of(dtype)) return dtype;
  }
  throw Error("--dtype {}: expected f32, f16 or bf16", text);
}

void declare_input(CLI::App& app, Options& options) {
  app.add_option("model,-m,--model", options.model, "GGUF model file")->required();
  app.add_option("--text", options.texts, "Text file; repeat for several prompts")->type_name("FILE");
  app.add_option("--ids", options.ids, "File of whitespace-separated token ids; repeat for several prompts")
      ->type_name("FILE");
  app.add_option("--transcripts", options.transcripts,
                 "File of conversations, one per line as JSON: prompts whose last answer follows the context, in which "
                 "each other message is a span (docs/turns.md)")
      ->type_name("FILE");
  app.add_flag("--chat", options.chat, "Put --transcripts into the chat template of the model");
  app.add_option("--ctx", options.ctx,
                 "Tokens to use of each prompt; default: all, up to the training context of the model")
      ->type_name("N")
      ->check(of_prompt);
  app.add_flag("--f32", options.f32,
               "Convert the weights to fp32 once (cached), so that activations are not quantised");
  app.add_option("-j,--threads", options.threads, "Threads; default: all cores")
      ->type_name("N")
      ->check(app::number_in(1, 4096).description(""));
}

void declare_output(CLI::App& app, Options& options, std::string& queries, std::string& dtype) {
  app.add_option("-o,--output", options.output, "Trace to write")->type_name("FILE")->required();
  app.add_option("--layers", options.layers, "Layers to record, such as 0,1,8 or 0-3; default: all")->type_name("LIST");
  app.add_option("--queries", queries,
                 "Positions whose queries are stored: last:N, all, every:N, or decode:N (the last N tokens are decoded "
                 "one at a time); default: 128 before the end of the context and all after it")
      ->type_name("SPEC");
  app.add_option("--prompt-tokens", options.prompt_tokens,
                 "Length of the context in tokens; default: all but the last 256 tokens (at most a quarter)")
      ->type_name("N")
      ->check(positive);
  app.add_option("--dtype", dtype, "Element type: f32, f16 or bf16; default: f32")->type_name("TYPE");
  app.add_flag("--pre-rope", options.pre_rope, "Also store queries and keys before RoPE");
  app.add_flag("--column-sums,!--no-column-sums", options.column_sums,
               "Store the attention mass of each key over the queries of the context; default: on");
  app.add_flag("--speculated", options.speculated,
               "Also store speculated queries: those that each layer would compute from the attention input of the "
               "previous layer");
  app.add_flag("--attention-output", options.attention_output, "Also store the attention output of the model");
  app.add_flag(
      "--sketch,!--no-sketch", options.sketch,
      "Store norms of the residual stream and a sketch of W_O, which say how large an error is there; default: "
      "on");
  app.add_option("--seed", options.seed, "Seed of the sketches; default: 0")
      ->type_name("N")
      ->check(app::number_in<std::int64_t>(0, std::numeric_limits<std::uint32_t>::max()).description(""));
  app.add_flag("--compress", options.compress, "Compress the trace");
  app.add_flag("--check,!--no-check", options.check,
               "Compare attention over the captured arrays with the attention output of the model; default: on");
  app.add_flag("--tokens-only", options.tokens_only,
               "Run nothing: write the token ids of the texts to the output file, a line each, as --ids reads them");
  app.add_flag("--force", options.force, "Replace an existing output file");
  app.add_flag("-q,--quiet", options.quiet, "Do not show progress");
}

/// Flags that are for the trace, or for running the model, are errors where they would have said what is in the output.
void check_effects(const CLI::App& app, const Options& options) {
  if (options.tokens_only) {
    if (options.texts.empty() || !options.ids.empty() || !options.transcripts.empty())
      throw Error("--tokens-only writes the token ids of --text alone; leave out --ids and --transcripts");
    const std::string reason = "beside --tokens-only, which writes whole texts and no trace";
    app::refuse_without_effect(app,
                               {"--ctx", "--layers", "--queries", "--prompt-tokens", "--dtype", "--pre-rope",
                                "--speculated", "--attention-output", "--compress", "--seed"},
                               reason);
    if (options.column_sums) app::refuse_without_effect(app, {"--column-sums"}, reason);
    if (options.sketch) app::refuse_without_effect(app, {"--sketch"}, reason);
    if (options.check) app::refuse_without_effect(app, {"--check"}, reason);
    app::note_without_effect(app, {"--f32", "--threads", "--no-column-sums", "--no-sketch", "--no-check"}, reason);
  } else if (!options.sketch) {
    app::note_without_effect(app, {"--seed"}, "beside --no-sketch, which draws nothing");
  }
  if (!options.transcripts.empty() &&
      (options.ctx || options.prompt_tokens || options.queries.kind == QuerySpec::decode))
    throw Error("--transcripts says where a context ends: leave out --ctx, --prompt-tokens and --queries decode:N");
  if (options.transcripts.empty()) app::refuse_without_effect(app, {"--chat"}, "without --transcripts");
  if (options.queries.kind == QuerySpec::decode && options.prompt_tokens)
    throw Error("--queries decode:N determines the length of the context: omit --prompt-tokens");
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  Options options;
  std::string queries, dtype = "f32";
  CLI::App app("Runs a GGUF model and writes its queries, keys and values as a trace for kvbench.", "kvdump");
  app.set_version_flag("--version", fmt::format("kvdump {} ({})", version(), commit()));
  app.footer("Example: kvdump model.gguf --text prompt.txt --ctx 4096 -o trace.h5");
  declare_input(app, options);
  declare_output(app, options, queries, dtype);
  app::take_one_value_each(app);
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    app.parse(app::as_parsed(app, words));
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);  // --help, --version
    if (asked) return {std::nullopt, app::print_answer(app, error)};
    app::say("kvdump", fmt::format("{} (kvdump --help lists the flags)", app::complaint(app, error, words)));
    return {std::nullopt, app::bad_input};
  }
  app::check_values(app, words);
  options.queries = parse_queries(queries);
  options.dtype = parse_dtype(dtype);
  if (options.texts.empty() && options.ids.empty() && options.transcripts.empty()) {
    throw Error("no prompt was given: give --text, --ids or --transcripts FILE");
  }
  check_effects(app, options);
  return {options, 0};
}

}  // namespace kvbench::kvdump
