// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <kvbench/core/suggest.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/kept_file.hpp>
#include <kvbench/replay/raw.hpp>
#include <kvbench/replay/record.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/report/table.hpp>

#include "commands.hpp"
#include "output.hpp"
#include "progress.hpp"

namespace kvbench::app {
namespace {

const std::map<std::string, Protocol> protocols = {
    {"auto", Protocol::automatic}, {"prefill", Protocol::prefill}, {"decode", Protocol::decode}, {"stream", Protocol::stream}};
const std::map<std::string, Decoded> decoded_policies = {{"method", Decoded::method}, {"keep", Decoded::keep}};
const std::map<std::string, Grain> grains = {
    {"trace", Grain::trace}, {"layer", Grain::layer}, {"head", Grain::head}, {"query", Grain::query}};
const std::map<std::string, Isa> isas = {{"scalar", Isa::scalar}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}};
const std::map<std::string, Element> kv_elements = {{"bf16", Element::f16}, {"f16", Element::f16}, {"f32", Element::f32}};

/// Flags as text; resolved into a ReplayRequest before anything is read.
struct Options {
  std::string trace, output, raw, format, seeds = "5", protect, protect_outside;
  std::vector<std::string> methods, budgets = {"25%"}, settings, layers, heads, prompts;
  ReplayRequest request;
  Grain grain = Grain::layer;
  Isa isa = Isa::scalar;
  Index window = 0;
  bool no_times = false, summary = false, quiet = false;
  CLI::Option* isa_flag = nullptr;
  CLI::Option* window_flag = nullptr;
};

/// The settings of --set that concern `method`: "subgen.delta=4", or "delta=4" for every method that has such a parameter.
std::vector<Assignment> settings_for(const MethodInfo& method, const std::vector<std::string>& settings) {
  std::vector<Assignment> own;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('='), dot = setting.find('.');
    const std::string name = setting.substr(0, dot);
    if (name == method.name || std::ranges::find(method.aliases, name) != method.aliases.end()) {
      own.push_back({setting.substr(dot + 1, equals - dot - 1), setting.substr(equals + 1)});
    }
  }
  return own;
}

void check_settings(const Options& options) {
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('='), dot = setting.find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
      throw Error("--set '{}' is not METHOD.PARAMETER=VALUE, such as subgen.delta=4", setting);
    }
    const std::string name = setting.substr(0, dot);
    const auto named = [&](const MethodChoice& m) {
      return m.info->name == name || std::ranges::count(m.info->aliases, name) > 0;
    };
    if (std::ranges::any_of(options.request.methods, named)) continue;
    const MethodInfo& method = find_method(name);
    throw Error("--set '{}' names a method that is not replayed; add --method {}", setting, method.name);
  }
}

void resolve_methods(Options& options) {
  for (const std::string& name : split_list(options.methods, "--method")) {
    const auto add = [&](const MethodInfo& info) {
      const auto same = [&](const MethodChoice& m) { return m.info == &info; };
      if (std::ranges::none_of(options.request.methods, same)) {
        options.request.methods.push_back({&info, info.bind(settings_for(info, options.settings))});
      }
    };
    if (name == "all")
      std::ranges::for_each(all_methods(), add);
    else
      add(find_any_method(name));
  }
  check_settings(options);
}

void resolve_seeds(Options& options) {
  const auto numbers = number_list({options.seeds}, "--seeds");
  const bool count = numbers.size() == 1 && options.seeds.find_first_of(",-") == std::string::npos;
  options.request.seeds.clear();
  if (count && (numbers[0] < 1 || numbers[0] > 100000))
    throw Error("--seeds {}: give a number of seeds from 1 to 100000, or a list such as 3,4,7", options.seeds);
  for (std::int64_t s = 0; count && s < numbers[0]; ++s) options.request.seeds.push_back(static_cast<std::uint32_t>(s));
  for (std::size_t i = 0; !count && i < numbers.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] > 0xffffffffll) throw Error("--seeds: seed {} is not in 0 .. 2^32 - 1", numbers[i]);
    options.request.seeds.push_back(static_cast<std::uint32_t>(numbers[i]));
  }
}

void resolve_protection(Options& options) {
  if (!options.protect.empty() && !options.protect_outside.empty())
    throw Error("give --protect or --protect-outside, not both");
  options.request.protect_outside = !options.protect_outside.empty();
  const std::string& text = options.request.protect_outside ? options.protect_outside : options.protect;
  if (text.empty()) return;
  const auto pair = number_list({text}, "--protect");
  if (pair.size() != 2 || pair[0] < 0 || pair[1] < 0) throw Error("--protect '{}' is not FIRST,LAST, such as 4,64", text);
  options.request.protect_first = pair[0];
  options.request.protect_last = pair[1];
}

void resolve(Options& options) {
  resolve_methods(options);
  resolve_seeds(options);
  resolve_protection(options);
  ReplayRequest& request = options.request;
  request.budgets.clear();
  for (const std::string& text : split_list(options.budgets, "--budget")) request.budgets.push_back(Budget::parse(text));
  request.layers = number_list(options.layers, "--layers");
  request.kv_heads = number_list(options.heads, "--heads");
  request.prompts = split_list(options.prompts, "--prompts");
  if (options.window_flag->count() > 0) {
    if (options.window < 1) throw Error("--window {} must be at least 1", options.window);
    request.window = options.window;
  }
  if (options.isa_flag->count() > 0) {
    if (!isa_available(options.isa))
      throw Error("--isa {}: this processor or build does not have it; the best here is {}", name_of(options.isa),
                  name_of(best_isa()));
    request.isa = options.isa;
  }
  if (request.backend == "cuda" && !cuda_available()) {
    throw Error("--device cuda: no usable NVIDIA GPU was found (or kvbench was built without CUDA); use --device cpu");
  }
}

int run(Options& options) {
  resolve(options);
  const trace::Reader reader(options.trace);
  Output output(options.output);
  ReplayHooks hooks{.stop = &stop_on_signals()};
  std::vector<Record> records;
  {
    Progress progress("heads", options.quiet);
    hooks.progress = [&](Index finished, Index total) { progress.show(finished, total); };
    options.request.keep_raw = !options.raw.empty();
    const ReplayResults results = replay(reader, options.request, hooks);
    if (options.request.keep_raw) write_raw(options.raw, reader, options.request, results);
    records = summarize(reader, options.request, results, options.grain);
  }
  const bool table = options.format == "table" || (options.format.empty() && !output.to_file() && stdout_is_terminal());
  const std::string text = table                    ? terminal_table(records)
                           : options.format == "md" ? markdown_table(records)
                                                    : csv_table(records, !options.no_times);
  output.finish(text);
  if (output.to_file() && (options.summary || stdout_is_terminal())) print(terminal_table(records));
  const bool failed = std::ranges::any_of(records, [](const Record& r) { return r.status == Status::failed; });
  return failed ? rows_failed : done;
}

void add_selection_flags(CLI::App* flags, Options& o) {
  flags->add_option("trace", o.trace, "Trace file (.h5)")->required();
  flags
      ->add_option("-m,--method", o.methods,
                   "Methods, all, or file:KEPT.h5 for entries of your own (repeat or separate by commas)")
      ->required();
  flags->add_option("-b,--budget", o.budgets, "Tokens per kv head, or shares of the context: 256,512,25%")
      ->capture_default_str();
  flags->add_option("--set", o.settings, "METHOD.PARAMETER=VALUE (see kvbench methods NAME)");
  flags->add_option("--seeds", o.seeds, "Number of seeds, or a list such as 3,4,7")->capture_default_str();
  flags->add_option("--layers", o.layers, "Layers of the model: 0,1,8 or 0-3 (default: all in the trace)");
  flags->add_option("--heads", o.heads, "kv heads (default: all)");
  flags->add_option("--prompts", o.prompts, "Prompt groups (default: all)");
}

void add_protocol_flags(CLI::App* flags, Options& o) {
  flags
      ->add_option("--protocol", o.request.protocol,
                   "prefill, decode, stream or auto (decode where the trace has decoded tokens)")
      ->transform(CLI::CheckedTransformer(protocols));
  flags->add_option("--decoded", o.request.decoded, "Decoded tokens are handled by the method, or kept exactly: method, keep")
      ->transform(CLI::CheckedTransformer(decoded_policies));
  o.window_flag = flags->add_option("--window", o.window,
                                    "prefill: last tokens that stay exact (default: tokens after the prompt, or 256)");
  flags->add_option("--protect", o.protect, "FIRST,LAST tokens of the context kept exactly, inside the budget");
  flags->add_option("--protect-outside", o.protect_outside,
                    "FIRST,LAST tokens kept exactly on top of the budget; shares apply to the rest");
  flags->add_option("--dense-layers", o.request.dense_layers, "First layers of the model kept exact")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  flags->add_flag("--recall-sinks", o.request.recall_sinks, "Count sinks in recall too");
}

void add_run_flags(CLI::App* flags, Options& o) {
  flags->add_option("--device", o.request.backend, "cpu, cuda or ref (the slow reference)")
      ->check(CLI::IsMember({"cpu", "cuda", "ref"}));
  o.isa_flag = flags->add_option("--isa", o.isa, "Instruction set: scalar, avx2, avx512 (default: the best)")
                   ->transform(CLI::CheckedTransformer(isas));
  flags->add_option("--threads", o.request.threads, "Threads, over heads (default: all processors)")
      ->check(CLI::Range(0, 4096));
  flags->add_flag("--standalone", o.request.standalone, "Time each method alone, without the shared scores");
  flags
      ->add_option("--kv-dtype", o.request.kv_element,
                   "Element type of a deployment's cache, for the byte columns: bf16, f16, f32")
      ->transform(CLI::CheckedTransformer(kv_elements));
  flags->add_option("--rows", o.grain, "Finest rows: trace, layer, head or query (default: layer)")
      ->transform(CLI::CheckedTransformer(grains));
  flags->add_option("--format", o.format, "csv, md or table (default: csv; a table on a terminal)")
      ->check(CLI::IsMember({"csv", "md", "table"}));
  flags->add_flag("--no-times", o.no_times, "Leave the time columns out, so that files compare byte for byte");
  flags->add_option("-o,--output", o.output, "File to write (appears whole or not at all); default: standard output");
  flags->add_option("--raw", o.raw, "Also keep errors, outputs and entries of every query in this HDF5 file");
  flags->add_flag("--summary", o.summary, "With -o: print the short table too (default on a terminal)");
  flags->add_flag("-q,--quiet", o.quiet, "No progress bar");
}

std::string describe_columns() {
  std::string out;
  for (const Column& column : columns()) {
    out += fmt::format("{:<22} {:<8} {:<6} {}\n", column.key, column.type, column.unit, column.doc);
  }
  return out;
}

}  // namespace

Command add_replay(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("replay", "Run methods on a trace and measure their error, recall and memory");
  auto options = std::make_shared<Options>();
  flags->add_flag_callback(
      "--columns",
      [] {
        print(describe_columns());
        throw CLI::Success();
      },
      "Describe the columns of the CSV and exit");
  add_selection_flags(flags, *options);
  add_protocol_flags(flags, *options);
  add_run_flags(flags, *options);
  return {flags, [options] { return run(*options); }};
}

}  // namespace kvbench::app
