// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include <fmt/ranges.h>

#include <kvbench/compare/raw_reader.hpp>
#include <kvbench/config/method_flags.hpp>
#include <kvbench/config/sweep.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/replay/plan/fields.hpp>
#include <kvbench/replay/records/figures.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/drawing/labels.hpp>
#include <kvbench/report/read/labels.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/report.hpp>
#include <kvbench/report/shapes/shape.hpp>
#include <kvbench/report/text/text.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/kvbench/own_program.hpp>
#include <apps/kvbench/rounding_rows.hpp>

namespace kvbench::app {
namespace {

struct ReportFlags {
  std::vector<std::string> tables, raw, traces, methods, labels;
  std::string output, format, sweep, figure;
  report::ReportOptions report;
};

/// What stands behind the last words by which a report is known.
enum class Behind { nothing, rest_of_line, anything };

/// A format, what the names of its files end with, how a report or one of its figures is written in it, and how one is
/// told from a page that quotes it: by what it begins with, and the last words.
struct ReportFormat {
  const char* name;
  std::vector<std::string_view> endings;
  std::string (*page)(const report::Document&);
  std::string (*figure)(const report::Drawing&);
  std::string_view first, last;
  Behind behind;
};
const ReportFormat formats[] = {
    {"html",
     {".html", ".htm"},
     report::html,
     nullptr,
     report::html_opening,
     "</script>\n</body>\n</html>\n",
     Behind::nothing},
    {"md", {".md", ".markdown"}, report::markdown, nullptr, "# ", "\n---\nWritten by kvbench ", Behind::rest_of_line},
    {"latex", {".tex"}, report::latex, nullptr, "% Written by kvbench ", "", Behind::nothing},
    {"svg",
     {".svg"},
     nullptr,
     report::svg_file,
     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ",
     "</svg>\n<!-- Written by kvbench -->\n",
     Behind::nothing},
    {"pdf", {".pdf"}, nullptr, report::pdf_file, "%PDF-", "/Creator (Written by kvbench)", Behind::anything}};

/// --format, else the format that the name of the output implies.
const ReportFormat& format_of(const ReportFlags& o) {
  const bool alone = !o.figure.empty();
  for (const ReportFormat& format : formats) {
    const auto ends = [&](std::string_view ending) { return o.output.ends_with(ending); };
    const bool meant = o.format.empty() ? std::ranges::any_of(format.endings, ends) : o.format == format.name;
    if (!meant) continue;
    if (alone && format.figure == nullptr)
      throw Error("--figure: a figure alone is an SVG or PDF file; give -o FILE.svg or -o FILE.pdf");
    if (!alone && format.page == nullptr)
      throw Error("-o '{}': {} files hold one figure; name it with --figure ('--figure list' shows the names)",
                  o.output, format.name);
    return format;
  }
  throw Error("-o '{}': the name does not imply a format; end it with {}, or give --format", o.output,
              alone ? ".svg or .pdf" : ".html or .md, or with .tex for the tables alone");
}

/// Throws Error where a figure is asked for, and the tables have none.
void require_figures(const ReportFlags& o, const report::Document& document) {
  if (o.figure.empty() || !drawings_of(document).empty()) return;
  throw Error("--figure {}: {} {} no figures; write the page, which has tables: -o FILE.html", o.figure,
              fmt::join(o.tables, ", "), o.tables.size() == 1 ? "has" : "have");
}

/// A figure with what a file of it must say, because no page is around it.
report::Drawing figure_alone(const report::Document& document, const std::string& name) {
  const report::NamedDrawing found = find_drawing(document, name);
  return with_text_below(*found.drawing, found.alone);
}

/// One name per line.
std::string figure_list(const report::Document& document) {
  std::string out;
  for (const report::NamedDrawing& drawing : drawings_of(document)) out += drawing.name + '\n';
  return out;
}

/// Adds title, description and published results of a sweep file.
void add_sweep_file(const ReportFlags& o, report::ReportOptions& report) {
  const config::Sweep sweep = config::read_sweep(o.sweep);
  if (report.title == report::ReportOptions().title) report.title = sweep.name;
  report.description = sweep.description;
  for (const config::Published& p : sweep.published)
    report.published.push_back({p.claim.text, p.paper, p.metric, p.rows, p.why});
}

std::vector<compare::ClaimResult> claims_in(const std::vector<report::CsvTable>& tables) {
  std::vector<compare::ClaimResult> claims;
  for (const report::CsvTable& table : tables) {
    if (table.has("claim_verdict")) std::ranges::move(claims_of(table), std::back_inserter(claims));
  }
  return claims;
}

/// Names files of the same name in different folders by their paths.
void tell_apart(std::vector<report::CsvTable>& tables) {
  std::vector<std::string> files;
  for (const report::CsvTable& table : tables) files.push_back(table.file);
  const std::vector<std::string> names = distinct_names(files);
  for (std::size_t t = 0; t < tables.size(); ++t) tables[t].name = names[t];
}

/// Throws Error unless some row is from the trace with this digest.
void require_rows_of(const std::vector<report::CsvTable>& tables, const std::string& sha256, const char* flag,
                     const std::string& path) {
  for (const report::CsvTable& table : tables) {
    const auto same = [&](const report::CsvRow& row) { return table.text(row, "sha256") == sha256.substr(0, 12); };
    if (std::ranges::any_of(table.rows, same)) return;
  }
  throw Error("{} {}: no row of the tables is from this trace; give the file that belongs to the replay", flag, path);
}

/// Opens the files of --raw and --trace.
struct OpenFiles {
  std::vector<std::unique_ptr<compare::RawReader>> raw;
  std::vector<std::unique_ptr<trace::Reader>> traces;

  OpenFiles(const ReportFlags& o, const std::vector<report::CsvTable>& tables, report::ReportOptions& report) {
    if (!o.traces.empty() && o.raw.empty())
      throw Error("--trace needs the raw results of the replay; add --raw FILE.h5");
    for (const std::string& path : o.raw) {
      raw.push_back(std::make_unique<compare::RawReader>(path, name_of(replay::Metric::rel_err)));
      if (!raw.back()->places().empty()) require_rows_of(tables, raw.back()->places()[0].sha256, "--raw", path);
      report.files.raw.push_back(raw.back().get());
    }
    for (const std::string& path : o.traces) {
      traces.push_back(std::make_unique<trace::Reader>(path));
      require_rows_of(tables, traces.back()->sha256(), "--trace", path);
      report.files.traces.push_back(traces.back().get());
      report.rounding.push_back(
          {std::filesystem::path(path).filename().string(), measure_rounding(*traces.back(), 0, false)});
    }
  }
};

std::vector<NamedFile> inputs_of(const ReportFlags& o) {
  std::vector<NamedFile> inputs{{"the sweep file", o.sweep}};
  for (const std::string& path : o.tables) inputs.push_back({"the table", path});
  for (const std::string& path : o.raw) inputs.push_back({"the raw results", path});
  for (const std::string& path : o.traces) inputs.push_back({"the trace", path});
  return inputs;
}

/// Without -o the output stands beside the first table, under its name.
std::string output_of(const ReportFlags& o) {
  if (!o.output.empty()) return o.output;
  if (o.figure == "list") return "-";
  const std::string wanted = !o.format.empty() ? o.format : o.figure.empty() ? "html" : "svg";
  for (const ReportFormat& format : formats) {
    if (wanted == format.name)
      return std::filesystem::path(o.tables.front()).replace_extension(format.endings.front()).string();
  }
  return "";
}

/// Throws Error where a file that no report of this format wrote has the name that the user did not choose.
void require_report(const std::string& path, const ReportFormat& format) {
  constexpr std::streamoff part = 4096;
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  file.seekg(std::max<std::streamoff>(0, file.tellg() - part));
  std::string end(part, '\0');
  file.read(end.data(), part);
  end.resize(static_cast<std::size_t>(file.gcount()));
  const std::size_t at = end.rfind(format.last);
  const std::string behind = at == end.npos ? "" : end.substr(at + format.last.size());
  const bool ends =
      at != end.npos && (format.behind == Behind::anything || behind.empty() ||
                         (format.behind == Behind::rest_of_line && behind.find('\n') + 1 == behind.size()));
  if (!file_begins_with(path, format.first) || !ends)
    throw Error("{}: exists and was not written by kvbench report; name the output with -o, which replaces it", path);
}

/// The tables, each of which may be given once: its rows would count twice.
std::vector<report::CsvTable> read_tables(const std::vector<std::string>& paths) {
  std::vector<report::CsvTable> tables;
  for (const std::string& path : paths) {
    for (const report::CsvTable& other : tables) {
      if (other.file == path || same_file(other.file, path))
        throw Error("{} and {} are the same table; name it once", other.file, path);
    }
    tables.push_back(report::read_csv(path));
  }
  tell_apart(tables);
  return tables;
}

int run(const ReportFlags& given) {
  ReportFlags o = given;
  o.output = output_of(given);
  const bool list = o.figure == "list";
  if (list && !(given.output.empty() && o.format.empty()))
    throw Error("{} has no effect beside --figure list, which prints names and ends; leave it out",
                given.output.empty() ? "--format" : "-o");
  const ReportFormat* format = list ? nullptr : &format_of(o);
  check_distinct(std::vector<NamedFile>{{"-o", o.output}}, inputs_of(o));
  if (given.output.empty() && !list) require_report(o.output, *format);
  Output output(o.output);
  std::vector<report::CsvTable> tables = read_tables(o.tables);
  std::vector<std::string> methods;
  for (const std::string& text : o.methods) std::ranges::move(config::split_items(text), std::back_inserter(methods));
  if (!methods.empty()) keep_methods(tables, methods);
  report::ReportOptions report = o.report;
  if (!o.sweep.empty()) add_sweep_file(o, report);
  const OpenFiles files(o, tables, report);
  std::vector<std::vector<compare::QueryConfiguration>*> raw;
  for (const auto& file : files.raw) raw.push_back(&file->configurations());
  report::Labels(o.labels).apply(tables, raw);
  const report::Document document = make_report(tables, report);
  require_figures(o, document);
  if (list) {
    output.finish(figure_list(document));
    return done;
  }
  output.finish(o.figure.empty() ? format->page(document) : format->figure(figure_alone(document, o.figure)));
  if (given.output.empty())
    say("kvbench", fmt::format("the {} is {}", o.figure.empty() ? "report" : "figure", o.output));
  if (output.to_file()) print(verdict_text(claims_in(tables)));
  return done;
}

bool is_bundle(const std::filesystem::path& path) { return path.string().ends_with(".kvb.zip"); }

/// Whether the words name bundles, a folder of them, or a claim: kvbench-report makes tables of them, and runs this
/// command with these tables.
bool are_for_package(Words words) {
  if (const auto claim = take_claim(words)) return !claim->empty();
  return std::ranges::any_of(words, [](const std::string& word) {
    std::error_code none;
    const std::filesystem::directory_iterator files(word, none);
    return is_bundle(word) || std::any_of(begin(files), end(files), is_bundle);
  });
}

}  // namespace

Command add_report(CLI::App& app) {
  CLI::App* flags = app.add_subcommand(
      "report", "Make one page with answers, figures and tables from CSV files, or one figure or LaTeX tables");
  auto options = std::make_shared<ReportFlags>();
  ReportFlags& o = *options;
  flags
      ->add_option("tables", o.tables,
                   "CSV files written by replay, sweep (rows, measures or claims), validate and eval; or bundles "
                   "(.kvb.zip) and folders of them, of which kvbench-report makes one page")
      ->required();
  flags->add_option("-o,--output", o.output,
                    "Output file, written atomically: .html, .md, .tex (the tables, for LaTeX), or .svg or .pdf with "
                    "--figure; -: standard output (default: the name of the first table with the ending .html, which "
                    "replaces only a report)");
  flags->add_option("--format", o.format, "html, md, latex, svg or pdf (default: implied by the name of the output)")
      ->check(one_of({"html", "md", "latex", "svg", "pdf"}));
  flags->add_option("--figure", o.figure,
                    "Write this figure alone, as SVG or PDF: its name, or a part that no other figure has; list: print "
                    "the names");
  flags->add_option(
      "-m,--method", o.methods,
      "Only the rows of these methods, each with all its parameters or with those in brackets, or of a "
      "family such as eviction, in figures, tables and answers (repeat, or separate with commas; default: "
      "all)");
  add_label_flag(flags, o.labels, "figures, tables and answers");
  flags->add_option(
      "--raw", o.raw,
      "Raw results of the same replays (--raw of replay): adds the distribution of errors, and errors along the text");
  flags->add_option(
      "--trace", o.traces,
      "With --raw: the traces of the replays; adds a map of the attention of one head and of the tokens kept, and what "
      "rounding the keys does to the attention");
  flags->add_option("--sweep", o.sweep,
                    "Sweep file of the tables: adds its title, and the published results beside the measured ones; its "
                    "verdicts are in the table of claims");
  std::string figures;
  for (const replay::RankingFigure& figure : replay::ranking_figures) figures += fmt::format("{}, ", figure.name);
  add_choice(flags, "--rank-by", o.report.rank_by, replay::value_names<replay::FigureNumber>(),
             fmt::format("What ranks the methods of replays, in figures, tables and answers: {}or auto: what ranked "
                         "them in the tables. Another figure than there has no tests",
                         figures)
                 .c_str());
  flags->add_option("--title", o.report.title, "Title of the report")->capture_default_str();
  flags
      ->add_option("--registered",
                   "Claim file: refuse rows that it does not register, and show its verdict and the "
                   "date of its commit (docs/bundles.md)")
      ->type_size(1)
      ->type_name("FILE");
  const Command own = own_command(flags, {.program = "kvbench-report", .remedy = package_remedy});
  return {flags, [options] { return run(*options); },
          [own](const Words& words) -> std::optional<int> {
            return are_for_package(words) ? own.start(words) : std::nullopt;
          }};
}

}  // namespace kvbench::app
