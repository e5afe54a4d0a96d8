// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <ranges>

#include <kvbench/allocate/allocate.hpp>
#include <kvbench/allocate/engines.hpp>
#include <kvbench/config/plan_file.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/shapes/shape.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/column_page.hpp>
#include <apps/common/rows/method_slips.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/common/rows/progress.hpp>
#include <apps/common/rows/shared_flags.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kvbench/allocation_figure.hpp>
#include <apps/kvbench/allocation_rows.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/engine_answer.hpp>
#include <apps/kvbench/run_flags.hpp>

namespace kvbench::app {
namespace {

using allocate::Damages;

const std::map<std::string, allocate::Division> divisions = {{"layer", allocate::Division::layer},
                                                             {"head", allocate::Division::head}};

struct AllocateFlags : RunFlags {
  std::vector<std::string> traces;
  std::string curve, figure, engine_name;
  const methods::EngineInfo* engine = nullptr;
  allocate::Division by = allocate::Division::layer;
  bool only_confirmed = false;

  AllocateFlags() { request.budgets = {Budget::parse("25%mem")}; }
  allocate::Accept accept() const { return only_confirmed ? allocate::Accept::confirmed : allocate::Accept::expected; }

  /// Of the shape that the engine can set. Throws NothingFits as allocate::allocate() does.
  allocate::Allocation allocate(const Damages& damages, const Budget& budget) const {
    allocate::Solver solver = allocate::solve;
    if (engine != nullptr) {
      solver = [&](const allocate::Choices& choices, std::int64_t bytes) {
        return allocate::solve_for(*engine, damages.menu, choices, bytes);
      };
    }
    allocate::Allocation found = allocate::allocate(damages, budget, solver);
    if (only_confirmed && !found.equal)
      throw NothingFits(
          "--only-confirmed: no configuration of the menu can be had in all layers at {}, so there are no equal "
          "budgets to write instead of a plan; leave it out",
          budget.text());
    return found;
  }
};

void check_budgets(std::span<const Budget> budgets) {
  for (const Budget& budget : budgets) {
    if (const std::string text = budget.text(); budget.cost() != CostKind::memory)
      throw Error("--budget {}: a plan divides memory among layers; give a share of it, such as {}", text,
                  text.ends_with('%') ? text + "mem" : "25%mem");
    if (std::ranges::count(budgets, budget) > 1)
      throw Error("--budget: {} is given twice; give it once", budget.text());
  }
}

std::vector<std::unique_ptr<trace::Reader>> open_traces(const std::vector<std::string>& paths) {
  std::vector<std::unique_ptr<trace::Reader>> traces;
  for (const std::string& path : paths) {
    refuse_value_of_flag(path, "--menu");
    auto opened = std::make_unique<trace::Reader>(path);
    for (const auto& other : traces) {
      if (other->sha256() == opened->sha256())
        throw Error("{} and {} are the same trace; name it once", other->path(), path);
    }
    traces.push_back(std::move(opened));
  }
  return traces;
}

/// The menu at a grid of budgets that has those asked for.
replay::ReplayRequest request_of(const AllocateFlags& o) {
  replay::ReplayRequest request = o.request;
  request.protocol = replay::Protocol::decode;
  request.budgets = allocate::budget_grid(o.request.budgets);
  for (const replay::MethodChoice& choice : request.methods) {
    if (plan_of(choice) != nullptr || choice.info->divides(choice.params))
      throw Error("--menu: {} divides its budget among layers itself; leave it out", choice.info->name);
    if (o.by == allocate::Division::head && !choice.info->heads_alone(choice.params))
      throw Error("--by head: {} needs all kv heads of a layer at once; leave it out", choice.info->name);
  }
  return request;
}

/// Sets the menu to what the engine of --for has for the model, and checks one that was given.
void resolve_menu(AllocateFlags& o, const trace::TraceInfo& trace) {
  if (o.engine_name.empty()) {
    if (o.request.methods.empty()) throw Error("--menu is required, or --for ENGINE, which has one of its own");
    return;
  }
  o.engine = &methods::engine_of_flag("--for", o.engine_name);
  if (o.by == allocate::Division::head)
    throw Error("--for {}: no engine has budgets of single heads that save memory; leave out --by head",
                o.engine->name());
  if (trace.head_dim != trace.value_dim)
    throw Error(
        "--for {}: keys of the model have {} channels and its values {}, of which kvbench does not know what "
        "engines do",
        o.engine->name(), trace.head_dim, trace.value_dim);
  if (o.request.methods.empty()) {
    o.request.methods = allocate::menu_of(*o.engine, trace.head_dim);
  } else {
    allocate::check_menu(*o.engine, o.request.methods, trace.head_dim);
  }
}

/// The damage of the menu.
Damages measure_all(const AllocateFlags& o, const std::vector<std::unique_ptr<trace::Reader>>& traces,
                    const replay::ReplayRequest& request) {
  Progress progress("heads", o.quiet);
  const replay::ReplayHooks hooks{.progress = [&](double done, Index total) { progress.show(done, total); },
                                  .note = note_to_stderr(o.quiet),
                                  .stop = &stop_requested()};
  return allocate::measure(traces, request, o.by, run_options(o), hooks);
}

/// The rows of a curve: at each budget of the grid that has a plan. A budget below one that has none has none.
std::vector<AllocationRow> curve_of(const AllocateFlags& o, const Damages& damages, std::span<const Budget> budgets) {
  std::vector<AllocationRow> rows;
  const std::vector<Budget> grid = allocate::budget_grid(budgets);
  try {
    for (const Budget& budget : std::views::reverse(grid))
      rows.push_back(allocation_row(damages, o.allocate(damages, budget), o.accept()));
  } catch (const NothingFits&) {
  }
  std::ranges::reverse(rows);
  return rows;
}

/// The file of the plans, which says above them what a reader is told.
std::string file_text(const AllocateFlags& o, const Damages& damages, std::span<const AllocationRow> rows,
                      const std::string& told, const std::vector<std::unique_ptr<trace::Reader>>& traces) {
  methods::LayerPlan plan{damages.model, damages.model_layers, {}};
  config::PlanOrigin origin{
      fmt::format("Budgets by {}, written by kvbench allocate; --method plan:THIS_FILE runs them.\n\n{}",
                  damages.place(), told),
      {},
      o.output,
      {}};
  for (const AllocationRow& row : rows) {
    plan.budgets.push_back(planned(damages, row, o.accept()));
    config::PlanNotes& notes = origin.notes.emplace_back();
    if (row.planned() && row.equal) notes.confirmed = row.confirmed();
    if (o.engine != nullptr) {
      notes.settings = allocate::settings_of(*o.engine, damages, row.answer(o.accept()).plan);
      notes.beside = row.beside;
    }
  }
  for (const auto& trace : traces) origin.traces.push_back(trace->sha256());
  return plan_text(plan, origin);
}

/// What a reader is told of a row: the plan, and for an engine what stands beside it and what one types.
std::string told_of(const AllocateFlags& o, const Damages& damages, AllocationRow& row, const MenuNames& names) {
  const auto text = [](std::vector<std::string> sentences) {
    return report::terminal_text(std::vector<report::Block>{report::AnswerBlock{"", std::move(sentences)}});
  };
  std::string out = text(sentences(damages, row, names));
  if (o.engine == nullptr) return out;
  const allocate::Allocation free = allocate::allocate(damages, row.budget);
  row.beside = sentences_beside(*o.engine, damages, row, free, names);
  if (!row.beside.empty()) out += text(row.beside);
  return out + what_to_type(*o.engine, damages, row);
}

/// How the file of --figure is written, by its ending.
auto figure_writer(const std::string& path) {
  if (!path.ends_with(".svg") && !path.ends_with(".pdf"))
    throw Error("--figure '{}': the name does not imply a format; end it with .svg or .pdf", path);
  return path.ends_with(".svg") ? report::svg_file : report::pdf_file;
}

int run(const CLI::App& flags, AllocateFlags& o) {
  if (o.curve.empty()) note_without_effect(flags, {"--format"}, "without --curve FILE, whose format it is");
  imply_format(o.format, o.curve, "--curve");
  if (o.format == "md") throw Error("--format md: only --columns has it; give csv or json");
  resolve_device(o);
  o.request.resolve();
  const std::vector<Budget>& budgets = o.request.budgets;
  check_budgets(budgets);
  const std::vector<std::unique_ptr<trace::Reader>> traces = open_traces(o.traces);
  resolve_menu(o, traces.front()->info());
  const replay::ReplayRequest request = request_of(o);
  report::Labels(o.labels).check(request.methods);
  std::vector<NamedFile> inputs = input_files(request);
  for (const std::string& path : o.traces) inputs.push_back({"the trace", path});
  check_distinct(std::vector<NamedFile>{{"-o", o.output}, {"--curve", o.curve}, {"--figure", o.figure}}, inputs);
  require_ending("-o", o.output, "plans are TOML", ".toml");
  Output output(o.output);
  const auto write_figure = o.figure.empty() ? nullptr : figure_writer(o.figure);
  std::optional<Output> curve, figure;
  if (!o.curve.empty()) curve.emplace(o.curve);
  if (!o.figure.empty()) figure.emplace(o.figure);
  const Damages damages = measure_all(o, traces, request);
  const MenuNames names = menu_names(damages, report::Labels(o.labels));
  std::vector<AllocationRow> rows;
  std::string text;
  for (const Budget& budget : budgets) {
    rows.push_back(allocation_row(damages, o.allocate(damages, budget), o.accept()));
    rows.back().divides = o.engine == nullptr || o.engine->shape != methods::Shape::equal;
    text += told_of(o, damages, rows.back(), names);
  }
  if (const std::vector<std::string> outside = outside_sentences(damages, names); !outside.empty())
    text += report::terminal_text(std::vector<report::Block>{report::AnswerBlock{"", outside}});
  if (curve) {
    const std::vector<AllocationRow> points = curve_of(o, damages, budgets);
    curve->finish(report::table_of(o.format, allocation_columns(), std::span<const AllocationRow>(points)));
  }
  if (figure) figure->finish(write_figure(plan_figure(damages, rows, names)));
  output.finish(file_text(o, damages, rows, text, traces));
  if (output.to_file()) print(text);
  report_device_memory(o);
  return done;
}

}  // namespace

Command add_allocate(CLI::App& app) {
  CLI::App* flags = app.add_subcommand(
      "allocate", "Divide a budget of memory among the layers of a model, so that its output changes least");
  auto options = std::make_shared<AllocateFlags>();
  AllocateFlags& o = *options;
  flags
      ->add_option(
          "traces", o.traces,
          "Traces of all layers with probes, or with sketches alone (.h5); each of their prompts is a document")
      ->required();
  o.request.add(flags, &replay::FieldCommands::allocate);
  flags->add_option("--for", o.engine_name,
                    fmt::format("Only plans that this engine can set ({}); also prints what one types there. Its own "
                                "formats or methods are the menu unless --menu gives fewer",
                                methods::engine_names()));
  add_choice(flags, "--by", o.by, divisions,
             "What gets a budget of its own: layer (the default) or head, each kv head of each layer, which takes "
             "probes and a menu of methods that need one head alone");
  flags->add_flag("--only-confirmed", o.only_confirmed,
                  "Write equal budgets unless held-out documents confirm the plan, instead of the plan wherever less "
                  "damage is expected of it");
  flags->add_option("-o,--output", o.output, "The plans (TOML), written atomically (default: standard output)");
  flags->add_option("--curve", o.curve,
                    "Also write the predicted KL at budgets from 1/32 to all of the memory to this CSV file");
  flags->add_option("--figure", o.figure,
                    "Also draw the share of each layer or head, with bars for what it gets in the plans of all "
                    "documents but one (.svg or .pdf)");
  flags
      ->add_option(
          "--format", o.format,
          "Format of --curve: csv or json (default: what its name ends with, else csv); md: that of --columns alone")
      ->check(one_of({"csv", "json", "md"}));
  add_label_flag(flags, o.labels, "the answer and below the figure");
  add_columns_flag(flags, "Print the columns of --curve and exit", o.format, docs_of(allocation_columns()));
  add_device_flags(flags, o);
  add_memory_flag(flags, o);
  flags->add_flag("-q,--quiet", o.quiet, "Do not show a progress bar");
  return {flags, [flags, options] { return run(*flags, *options); }};
}

}  // namespace kvbench::app
