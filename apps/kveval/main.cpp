// SPDX-License-Identifier: Apache-2.0
// kveval: runs compression methods inside a GGUF model with llama.cpp, and measures what they do to its output. Exit
// codes: 0 success, 1 a configuration failed, 2 bad usage or bad input, 3 input/output or memory failure, 130
// interrupted. Errors are one sentence on stderr.
#include <kvbench/core/error.hpp>
#include <kvbench/methods/find_method.hpp>

#include <apps/common/freed_memory.hpp>
#include <apps/common/program.hpp>
#include <apps/common/rows/flag_names.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/eval/options.hpp>
#include <apps/kveval/commands.hpp>
#include <apps/kveval/evaluate.hpp>
#include <apps/llama/passes.hpp>

namespace {

const kvbench::methods::MethodInfo& refuse_python(const kvbench::methods::MethodName& name) {
  throw kvbench::Error(
      "'{}' is written in Python, which kveval does not run; `with kvbench.compressed(model, method, budget):` runs it "
      "inside a Hugging Face model (docs/python.md)",
      name.base);
}

/// Throws Error for a command of --commands whose table would go where its end is told.
void refuse_standard_output(const kvbench::kveval::Options& options) {
  if (options.commands) throw kvbench::Error("--commands is no part of a command that it runs; leave it out");
  if (options.output.empty() || options.output == "-")
    throw kvbench::Error("a command of --commands writes its table to a file; give -o FILE");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kvbench;
  llama::wait_passively(argv);
  app::keep_freed_memory();
  methods::set_definer(methods::Origin::python, {refuse_python});
  const app::Program program{.name = "kveval",
                             .out_of_memory = "give a shorter --context, fewer --layers or fewer --threads",
                             .words = [](const std::string& message) { return app::with_flags(message, "eval"); }};
  kveval::LoadedModel loaded;
  const auto command = [&](const std::vector<std::string>& words) {
    std::vector<const char*> given{"kveval"};
    for (const std::string& word : words) given.push_back(word.c_str());
    return app::run_program(program, [&] {
      const auto parsed = kveval::parse_options(static_cast<int>(given.size()), given.data());
      if (!parsed.options) return parsed.exit_code;
      refuse_standard_output(*parsed.options);
      return kveval::evaluate(*parsed.options, loaded);
    });
  };
  return app::run_program(program, [&] {
    const auto parsed = kveval::parse_options(argc, argv);
    if (!parsed.options) return parsed.exit_code;
    app::wait_for_stop_signals("kveval");
    return parsed.options->commands ? kveval::run_commands(command) : kveval::evaluate(*parsed.options, loaded);
  });
}
