// SPDX-License-Identifier: Apache-2.0
#include <apps/eval/options.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/loop/conversation.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/method_slips.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/common/rows/request_flags.hpp>
#include <apps/common/rows/shared_flags.hpp>
#include <apps/eval/configurations.hpp>

namespace kvbench::kveval {
namespace {

using app::number_in;

const std::map<std::string, eval::Inject> injections = {
    {"all", eval::Inject::all}, {"one", eval::Inject::one}, {"upto", eval::Inject::upto}, {"none", eval::Inject::none}};

/// Flags from which the options are made.
struct Lists {
  std::vector<std::string> tasks = {"text"}, contexts = {"4096"};
  std::string question = "outside", compress = "turn";
  app::RequestFlags request;
  std::uint64_t memory = 0;
  bool list_tasks = false;

  Lists() {
    request.budgets = {Budget::parse("25%mem")};
    request.seeds = {0};
  }
};

void declare_documents(CLI::App& app, Options& o, Lists& lists) {
  app.add_option("model,--model", o.model, "GGUF model file");
  app.add_option("--text", o.texts, "Text file from which the tasks are made; repeat for documents of several")
      ->type_name("FILE");
  app.add_option("--ids", o.ids,
                 "File of token ids, a document of the task text; repeat for several, instead of --text")
      ->type_name("FILE");
  app.add_option(
         "--transcripts", o.transcripts,
         "File of conversations, one per line as JSON: a list of messages with role and content. Rows per turn, "
         "and whether the last one is worse than the first (docs/turns.md)")
      ->type_name("FILE");
  app.add_option(
      "--compress", lists.compress,
      "When the cache of a conversation is compressed after its first turn: once (never again), turn (at the "
      "end of each, from what it holds), anew (at the end of each, from the exact cache), or the number of "
      "tokens between two compressions; default: turn");
  app.add_option("--task", lists.tasks, "Tasks, such as text,passkey (--list-tasks describes them); default: text");
  app.add_flag("--list-tasks", lists.list_tasks, "Describe the tasks and exit");
  app.add_option("--documents", o.documents, "Documents per task, of each text")
      ->check(number_in<Index>(1))
      ->capture_default_str();
  app.add_option("--context", lists.contexts,
                 "Tokens of the context, which is compressed; default: 4096. Several lengths, such as 512,1024,2048: "
                 "the same scored tokens behind the last tokens of each context, and whether KL grows with them "
                 "(docs/context-length.md)");
  app.add_option("--score", o.score, "Scored tokens of a document without questions, at most 512")
      ->check(number_in<Index>(2, eval::most_scored_tokens))
      ->capture_default_str();
  app.add_option("--questions", o.questions, "Questions per document, for tasks that have several")
      ->check(number_in<Index>(1))
      ->capture_default_str();
  app.add_option("--question", lists.question,
                 "Whether the context that is compressed ends with the question: inside, outside")
      ->check(app::one_of({"inside", "outside"}))
      ->capture_default_str();
  app.add_flag("--chat", o.chat,
               "Write the documents as conversations, with the chat template of the model; for tasks with questions");
  app.add_option("--generate", o.generation.tokens,
                 "Free generation: the full and the compressed cache continue each context by themselves, by up to so "
                 "many tokens, and the full cache's answer is scored (docs/free-answers.md)")
      ->check(number_in<Index>(2, eval::most_scored_tokens));
  app.add_option("--temperature", o.generation.temperature,
                 "Temperature of sampled answers, which all caches draw with the same random numbers; default: greedy");
  app.add_option("--sample-seed", o.generation.seed, "Seed of these numbers; default: 0");
  app.add_option("--document-seed", o.document_seed, "Seed of the random choices of the documents")
      ->capture_default_str();
}

void declare_methods(CLI::App& app, Options& o, Lists& lists) {
  lists.request.add(&app, &replay::FieldCommands::eval);
  app.add_option("--sweep", o.sweep,
                 "Sweep file (TOML) whose runs give methods, budgets, seeds, layers, protected tokens and dense layers "
                 "instead of flags")
      ->type_name("FILE");
  app::add_choice(&app, "--inject", o.inject, injections,
                  "In which layers the outputs of a method replace those of the model: all; one (each layer alone); "
                  "upto (layers 0 to l, for each l); none (outputs are computed and compared only); default: all");
  app.add_option("--inject-scale", o.inject_scale,
                 "Share of the error of the outputs that is injected, from 0.001 to 1: KL divided by its square "
                 "approaches a limit as it falls, which a prediction from probes is about (docs/damage.md); default: 1")
      ->type_name("EPS");
}

void declare_run(CLI::App& app, Options& o, Lists& lists) {
  app.add_flag("--f32,!--no-f32", o.f32,
               "Convert the weights to fp32 once (cached), so that activations are not quantised; default: on");
  app.add_flag("--one-at-a-time", o.one_at_a_time,
               "Score the tokens one at a time, each after a pass of all before it (very slow): a check of the batch");
  app.add_option("-j,--threads", o.how.threads, "Threads; default: all processors")->check(number_in(0, 4096));
  app::add_isa_flag(&app, o.how.isa);
  app.add_option("--memory", lists.memory,
                 "Memory that the run may take, such as 8G; default: three quarters of the machine's")
      ->transform(app::to_bytes());
  app::add_form_flags(&app, o.format, o.output);
  app::add_label_flag(&app, o.labels, "tables for readers");
  app.add_option("--raw", o.raw, "Also write the scores of every token to this HDF5 file (docs/eval.md)")
      ->type_name("FILE");
  app::add_cells_flags(&app, o.cells);
  app.add_flag("--per-document", o.rows.documents, "Also write one row per document");
  app.add_flag("--per-layer", o.rows.layers, "Also write one row per layer, with its errors");
  app.add_flag("!--no-times", o.times, "Leave the time columns out, so that files can be compared byte by byte");
  app.add_flag("-q,--quiet", o.quiet, "Do not show progress");
  app.add_flag(
      "--commands", o.commands,
      "Run the command lines that standard input gives, and load a model that the next one names too once: each "
      "word ends with a NUL byte, an empty word ends a command; each end is told by a line \"done CODE\"");
}

void use_flags(const CLI::App& app, Options& o) {
  if (o.request.methods.empty()) throw Error("no method was given: give --method, or --sweep");
  if (std::ranges::none_of(o.request.methods, &replay::MethodChoice::depends_on_seed))
    app::note_without_effect(app, {"--seeds"}, "here: no method that runs draws random numbers");
  o.layers = std::exchange(o.request.layers, {});
  o.configurations = configurations_of({&o.request, 1});
}

void refuse_flags_beside_sweep(const CLI::App& app) {
  std::vector<std::string> flags = {"--set"};
  for (const replay::RequestField& field : replay::request_fields()) {
    const bool of_run = field.name == "budgets" || field.name == "protocol";  // a sweep has those of replays
    if (field.flag.of.eval && !field.key.name.empty() && !of_run) flags.push_back(field.flag.name());
  }
  for (const std::string& flag : flags) {
    if (app.count(flag) > 0) throw Error("{0}: the file of --sweep gives what it sets; leave {0} or --sweep out", flag);
  }
}

bool any_task(const Options& o, bool eval::TaskInfo::*property) {
  return std::ranges::any_of(o.tasks, [&](const std::string& name) { return eval::find_task(name).*property; });
}

/// Sets the lengths of the context. Throws Error where a list of them cannot have the same scored tokens.
void use_lengths(Options& o, const Lists& lists) {
  const CLI::Validator whole = number_in<Index>(2);
  for (std::string text : app::split_list(lists.contexts, "--context")) {
    if (const std::string fault = whole(text); !fault.empty()) throw Error("--context: {}", fault);
    o.contexts.push_back(std::stoll(text));
  }
  std::ranges::sort(o.contexts);
  if (const auto twice = std::ranges::adjacent_find(o.contexts); twice != o.contexts.end())
    throw Error("--context: {} is named twice; name each length once", *twice);
  if (o.contexts.size() == 1) return;
  for (const std::string& task : o.tasks) {
    if (!eval::find_task(task).shortens)
      throw Error(
          "--context: documents of task {} ask for what stands anywhere in their contexts, and a shorter context may "
          "lack it; give one length, or --task text",
          task);
  }
  if (o.generation.tokens > 0)
    throw Error(
        "--generate: the full cache has another answer behind each length of --context, and no tokens would be scored "
        "at all of them; give one length, or leave --generate out");
  o.rows.documents = true;  // by which lengths are paired
}

/// Free generation is that of a deployed cache: all layers have it, and its errors are not scaled.
void check_generation(const CLI::App& app, const Options& o) {
  eval::check(o.generation);
  if (o.generation.tokens == 0 && any_task(o, &eval::TaskInfo::json))
    throw Error("--task json: free answers are judged as JSON; give --generate, the most tokens of an answer");
  if (o.generation.tokens == 0) return;
  if (any_task(o, &eval::TaskInfo::exact_match))
    throw Error(
        "--generate: the text of a document is continued, and tasks with questions have answers of their own; "
        "give --task text, json or pairs, or leave --generate out");
  if (o.inject != eval::Inject::all || o.inject_scale != 1)
    throw Error("--generate: a compressed cache answers in all layers; leave --inject and --inject-scale out");
  app::refuse_without_effect(app, {"--score"}, "beside --generate, whose answers are scored");
}

/// Throws Error where a flag is given that changes nothing.
void check_effects(const CLI::App& app, const Options& o) {
  using app::refuse_without_effect;
  if (!o.ids.empty())
    refuse_without_effect(app, {"--task", "--documents", "--questions", "--question", "--chat", "--document-seed"},
                          "beside --ids, whose documents are used as they are; it is for the tasks of --text");
  const auto answers = [](const std::string& name) { return eval::find_task(name).exact_match; };
  if (!o.texts.empty() && std::ranges::all_of(o.tasks, answers))
    refuse_without_effect(app, {"--score"}, "on tasks with questions, whose answers are scored");
  if (!any_task(o, &eval::TaskInfo::exact_match) && o.transcripts.empty())
    refuse_without_effect(app, {"--question"}, "without a task that has questions (--list-tasks)");
  if (!any_task(o, &eval::TaskInfo::several) && o.transcripts.empty())
    refuse_without_effect(app, {"--questions"}, "without a task that has several questions (--list-tasks)");
  if (o.inject == eval::Inject::none)
    refuse_without_effect(app, {"--inject-scale"}, "with --inject none, which injects nothing");
  if (o.format == "md" || o.format == "table")
    app::note_without_effect(app, {"--no-times"}, "beside --format " + o.format + ", which shows no times");
  else if (!(o.format.empty() && (o.output.empty() || o.output == "-") && app::stdout_is_terminal()))
    app::note_unread_labels(app, "--format table, or give --label to kvbench report");
}

/// Throws Error where a flag has no meaning for conversations.
void check_transcripts(const CLI::App& app, const Options& o) {
  using app::refuse_without_effect;
  if (o.transcripts.empty()) return refuse_without_effect(app, {"--compress"}, "without --transcripts");
  refuse_without_effect(app,
                        {"--task", "--documents", "--questions", "--document-seed", "--context", "--score",
                         "--generate", "--temperature", "--sample-seed"},
                        "beside --transcripts, whose answers are scored behind all that was said before");
}

/// Throws Error where what is to be kept cannot be told from what a cache holds.
void check_conversation(const Options& o) {
  if (o.transcripts.empty()) return;
  if (o.request.protocol == replay::Protocol::stream)
    throw Error("--protocol stream: the cache of a conversation is compressed at its turns; leave it out");
  if (o.request.protect_first + o.request.protect_last > 0 || o.request.dense_layers > 0)
    throw Error(
        "--transcripts: tokens that the harness keeps would be compressed at the next turn; leave --protect and "
        "--dense-layers out");
  if (std::ranges::none_of(o.configurations, loop::limits_conversations))
    throw Error("--budget {}: {}", o.configurations.front().budget, loop::no_limit);
}

/// Rows have the names of these files.
void check_names(const Options& o) {
  for (const auto& files : {o.texts, o.ids, std::vector{o.model, o.transcripts}}) {
    for (const std::string& path : files)
      check_name(std::filesystem::path(path).filename().string(), "The name of the file " + path);
  }
}

void resolve(const CLI::App& app, Options& o, Lists& lists) {
  if (o.model.empty()) throw Error("no model was given: give the path of a GGUF file");
  if (!o.texts.empty() + !o.ids.empty() + !o.transcripts.empty() != 1)
    throw Error("give --text FILE, --ids FILE for documents of your own, or --transcripts FILE for conversations");
  check_names(o);
  o.tasks = o.texts.empty() ? std::vector<std::string>{"text"} : app::split_list(lists.tasks, "--task");
  check_transcripts(app, o);
  o.compressions = eval::Compressions::parse(lists.compress);
  check_effects(app, o);
  check_generation(app, o);
  use_lengths(o, lists);
  if (o.generation.tokens > 0) o.score = o.generation.tokens;
  o.question_inside = lists.question == "inside";
  if (lists.request.protocol == replay::Protocol::prefill)
    throw Error("--protocol prefill: a model reads scored tokens after its context; give decode or stream");
  lists.request.resolve();
  o.request = lists.request;
  if (o.sweep.empty())
    use_flags(app, o);
  else
    use_sweep_file(o, app::split_list(lists.request.given("budgets"), "--budget"));
  if (!o.transcripts.empty()) o.rows.documents = true;  // by which turns are paired
  check_conversation(o);
  o.how.memory = static_cast<double>(lists.memory);
  if (!(o.inject_scale >= eval::least_scale && o.inject_scale <= 1))
    throw Error(
        "--inject-scale {}: give a share of the error from {} to 1; damage falls with its square, and that of smaller "
        "ones is below the rounding of the logits",
        o.inject_scale, eval::least_scale);
}

void declare(CLI::App& app, Options& options, Lists& lists) {
  declare_documents(app, options, lists);
  declare_methods(app, options, lists);
  declare_run(app, options, lists);
}

}  // namespace

void declare_flags(CLI::App& app) {
  static Options options;
  static Lists lists;
  declare(app, options, lists);
}

ParsedOptions parse_options(int argc, const char* const* argv) {
  Options options;
  Lists lists;
  CLI::App app("Runs KV-cache compression methods inside a GGUF model, and measures what they do to its output.",
               "kveval");
  app.set_version_flag("--version", fmt::format("kveval {} ({})", version(), commit()));
  app.footer(
      "Example: kveval model.gguf --text book.txt --task text,passkey --method snapkv,h2o --budget 25%mem "
      "--per-document -o eval.csv\n"
      "Exit codes: 0 success, 1 some rows failed, 2 bad usage or bad input, 3 input/output or memory failure, 130 "
      "interrupted.");
  declare(app, options, lists);
  app::take_one_value_each(app);
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    app.parse(app::as_parsed(app, words));
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);  // --help, --version
    if (asked) return {std::nullopt, app::print_answer(app, error)};
    const std::string fault = app::complaint(app, error, words, app::method_advice);
    app::say("kveval", fmt::format("{} (kveval --help lists the flags)", fault));
    return {std::nullopt, app::bad_input};
  }
  if (lists.list_tasks) {
    app::require_alone(app, "--list-tasks");
    app::print(eval::list_of_tasks());
    return {std::nullopt, 0};
  }
  if (options.commands) {
    if (words.size() > 1) throw Error("--commands has no effect beside other flags, which are those of its commands");
    return {options, 0};
  }
  app::check_values(app, words);
  if (!options.sweep.empty()) refuse_flags_beside_sweep(app);
  resolve(app, options, lists);
  return {options, 0};
}

}  // namespace kvbench::kveval
