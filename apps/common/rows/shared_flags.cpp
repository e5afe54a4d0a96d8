// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/shared_flags.hpp>

#include <algorithm>
#include <filesystem>
#include <map>

#include <kvbench/core/error.hpp>
#include <kvbench/core/suggest.hpp>
#include <kvbench/methods/contract/method_text.hpp>
#include <kvbench/methods/registry.hpp>

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

bool is_method(const std::string& file) {
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown) || unknown) return false;
  const std::optional<methods::MethodText> text = methods::parse_method_text(file);
  const auto is = [&](const methods::MethodInfo& method) { return same_name(method.name, text->name); };
  return text && std::ranges::any_of(methods::all_methods(), is);
}

void add_form_flags(CLI::App* flags, std::string& format, std::string& output) {
  flags->add_option("--format", format, "csv, json, md or table (default: table on a terminal, else csv)")
      ->check(one_of({"csv", "json", "md", "table"}));
  flags->add_option("-o,--output", output, "Output file, written atomically (default: standard output)");
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
