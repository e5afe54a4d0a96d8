// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/shared_flags.hpp>

#include <algorithm>
#include <map>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>

#include <apps/common/command_line.hpp>

namespace kvbench::app {
namespace {

const std::map<std::string, Isa> isas = {{"scalar", Isa::scalar}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}};
Isa available(Isa isa) {
  if (isa_available(isa)) return isa;
  throw Error("--isa {} is not available on this processor or in this build; the best available is {}", name_of(isa),
              name_of(best_isa()));
}

}  // namespace

void check_summary_flag(const CLI::App& flags, const std::string& output) {
  if (output.empty() || output == "-")
    note_without_effect(flags, {"--summary"}, "without -o FILE; for the table alone give --format table");
}

namespace {

/// What the name of an output ends with, in lower case, the format that it implies, and else why it is none.
struct Ending {
  std::string_view ending, format, remedy;
};
constexpr std::string_view no_spreadsheet = "spreadsheets read csv; end the name with .csv";
constexpr Ending endings[] = {{".csv", "csv", ""},
                              {".json", "json", ""},
                              {".md", "md", ""},
                              {".markdown", "md", ""},
                              {".xlsx", "", no_spreadsheet},
                              {".xls", "", no_spreadsheet},
                              {".ods", "", no_spreadsheet},
                              {".tsv", "", "write csv, or give --format"},
                              {".jsonl", "", "write json, or give --format"},
                              {".parquet", "", "write csv, which pandas.read_csv() reads, or give --format"},
                              {".h5", "", "--raw writes HDF5; end the name with .csv, or give --format"},
                              {".hdf5", "", "--raw writes HDF5; end the name with .csv, or give --format"},
                              {".html", "", "`kvbench report` makes a page of a table; end the name with .csv"},
                              {".tex", "", "`kvbench report` makes LaTeX of a table; end the name with .csv"},
                              {".pdf", "", "`kvbench report` draws the figures of a table; end the name with .csv"},
                              {".svg", "", "`kvbench report` draws the figures of a table; end the name with .csv"},
                              {".png", "", "`kvbench report` draws the figures of a table; end the name with .csv"},
                              {".gz", "", "tables are not compressed; end the name with .csv"}};

/// nullptr: none of these.
const Ending* ending_of(const std::string& output) {
  const auto ends = [&](const Ending& one) {
    return output.size() > one.ending.size() && same_name(output.substr(output.size() - one.ending.size()), one.ending);
  };
  const auto* found = std::ranges::find_if(endings, ends);
  return found == std::end(endings) ? nullptr : found;
}

}  // namespace

void imply_format(std::string& format, const std::string& output, const char* flag) {
  const Ending* found = format.empty() ? ending_of(output) : nullptr;
  if (found == nullptr) return;
  if (found->format.empty()) throw Error("{} {}: no table is written in this format: {}", flag, output, found->remedy);
  format = found->format;
}

void require_ending(const char* flag, const std::string& output, std::string_view what, std::string_view right) {
  const Ending* found = ending_of(output);
  if (found != nullptr && found->ending != right && !(right == ".h5" && found->ending == ".hdf5"))
    throw Error("{} {}: {}; end the name with {}", flag, output, what, right);
}

void add_form_flags(CLI::App* flags, std::string& format, std::string& output) {
  flags->parse_complete_callback([&] { imply_format(format, output); });
  flags
      ->add_option("--format", format,
                   "csv, json, md or table (default: what the name of the output ends with, else table on a terminal, "
                   "else csv)")
      ->check(one_of({"csv", "json", "md", "table"}));
  flags->add_option("-o,--output", output, "Output file, written atomically (default: standard output)");
}

void add_label_flag(CLI::App* flags, std::vector<std::string>& labels, const std::string& where) {
  flags->add_option("--label", labels,
                    fmt::format("METHOD=TEXT or METHOD[PARAMS]=TEXT: show the method by this text in {}, as in "
                                "./mine.py:farmean=FarMean (repeat for others)",
                                where));
}

void note_unread_labels(const CLI::App& flags, const std::string& remedy) {
  note_without_effect(flags, {"--label"}, "here: tables for programs keep the names of methods; add " + remedy);
}

void add_isa_flag(CLI::App* flags, std::optional<Isa>& isa) {
  flags
      ->add_option_function<std::string>(
          "--isa", [&isa](const std::string& name) { isa = available(isas.at(name)); },
          "Instruction set: scalar, avx2 or avx512 (default: the best available)")
      ->check(one_of({"scalar", "avx2", "avx512"}))
      ->type_name("TEXT");
}

}  // namespace kvbench::app
