// SPDX-License-Identifier: Apache-2.0
// What works on this machine. Every line is the outcome of trying: a trace is replayed, programs are started, Python
// imports its packages, a file is written to the cache.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/ranges.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/kernels/backend.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/model_cache.hpp>
#include <apps/kvbench/own_program.hpp>
#include <apps/kvbench/run_kvbench.hpp>

namespace kvbench::app {
namespace {

namespace fs = std::filesystem;

struct Finding {
  std::string state;  ///< works, missing, old, broken
  std::string what, detail, remedy = "";
  bool own = false;  ///< whether this program was built for it: if it is broken, the exit code is 1
};
using Findings = std::vector<Finding>;

/// A folder for what is tried, which is removed at the end.
struct Scratch {
  std::string folder = (fs::temp_directory_path() / "kvbench-doctor-XXXXXX").string();
  Scratch() {
    if (::mkdtemp(folder.data()) == nullptr) throw IoError("{}: cannot be made", folder);
  }
  ~Scratch() {
    std::error_code none;
    fs::remove_all(folder, none);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

/// Why a command of kvbench fails; "" if it does not.
std::string fault_of(const std::string& line) {
  try {
    const int code = run_command(CLI::detail::split(line, ' '));
    return code == done ? "" : fmt::format("{} ended with exit code {}", line.substr(0, line.find(' ')), code);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Writes a small trace, replays it, and draws the rows.
Findings find_replay() try {
  const Scratch scratch;
  const std::string& at = scratch.folder;
  const std::string replay = fmt::format("replay {0}/t.h5 -q -m h2o,q8_0,subgen --seeds 1 -o {0}/t.csv --device ", at);
  std::string fault = fault_of(fmt::format("synth -o {}/t.h5 -q --tokens 256 --layers 1", at));
  if (fault.empty()) fault = fault_of(replay + "cpu");
  const std::string build = fmt::format("{} ({}), {}", version(), commit(), name_of(best_isa()));
  if (!fault.empty()) return {{"broken", "replay", build + ": " + fault, "build kvbench on this machine", true}};
  Findings found = {{"works", "replay", build}};
  fault = fault_of(fmt::format("report {0}/t.csv --figure error-by-method -o {0}/t.pdf", at));
  std::ifstream opened(at + "/t.pdf", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(opened), {}};
  if (!fault.empty())
    found.push_back({"broken", "figures", fault, "", true});
  else if (bytes.find("/FontFile") == bytes.npos)
    found.push_back({"missing", "figures", "PDF files have no font to embed", "apt-get install fonts-liberation"});
  else
    found.push_back({"works", "figures", "PDF files embed a font"});
  if (const std::string reason = cuda_unusable(); !reason.empty())
    found.push_back({"missing", "GPU", reason});
  else if (fault = fault_of(replay + "cuda"); !fault.empty())
    found.push_back({"broken", "GPU", fault, "scripts/gpu-check", true});
  else
    found.push_back({"works", "GPU", make_cuda_backend()->name() + ", with --device cuda"});
  return found;
} catch (const Interrupted&) {
  throw;
} catch (const std::runtime_error& error) {  // no folder for temporary files
  return {{"broken", "replay", error.what(), "set TMPDIR to a folder that you may write", true}};
}

/// A program that prints "NAME VERSION (COMMIT)".
Finding find_program(const std::string& name, const char* remedy, int limit) {
  const ProgramAnswer answer = ask_program(name, {"--version"}, limit);
  const std::string said = answer.text.substr(0, answer.text.find('\n'));
  if (answer.path.empty()) return {"missing", name, "neither beside kvbench nor in PATH", remedy};
  if (!answer.fault.empty())
    return {"broken", name, fmt::format("{} {}: {}", answer.path, answer.fault, said), remedy, true};
  const bool old = !said.starts_with(fmt::format("{} {} ", name, version()));
  return {old ? "old" : "works", name, fmt::format("{} says: {}", answer.path, said), old ? remedy : ""};
}

/// Imports what the arguments name, NAME>=VERSION, and prints a line for each: "kvbench", name, state, detail.
constexpr const char* importing = R"py(
import sys
sys.path[:] = [folder for folder in sys.path if folder]
def numbers(text):
    return [int(part) for part in "".join(c if c in "0123456789." else " " for c in text).split()[0].split(".") if part]
def package():
    import kvbench
    at = kvbench.__path__[0]
    return ("works", at) if hasattr(kvbench, "Trace") else ("broken", at + " is another package of this name")
for argument in ["kvbench>=0"] + sys.argv[1:]:
    name, oldest = argument.split(">=")
    try:
        if name == "kvbench":
            state, detail = package()
        else:
            found = sys.version if name == "Python" else __import__(name).__version__
            state = "old" if numbers(found) < numbers(oldest) else "works"
            detail = found.split()[0] + (", older than " + oldest if state == "old" else "")
    except Exception as error:
        state = "missing" if getattr(error, "name", None) == name else "broken"
        detail = type(error).__name__ + ": " + str(error)
    print("kvbench", name, state, " ".join(detail.split()), sep="\t", flush=True)
)py";

/// Python, the package, and what Hugging Face models need, by the versions of pyproject.toml.
Findings find_python(int limit) {
  const char* const given = std::getenv("KVBENCH_INTERPRETER");  // of the kvbench that pip installed
  Words words = {"-c", importing};
  for (const std::string& package : CLI::detail::split(KVBENCH_PYTHON_PACKAGES, ' ')) words.push_back(package);
  const ProgramAnswer answer = ask_program(given == nullptr ? "python3" : given, words, limit);
  if (answer.path.empty()) return {{"missing", "Python", "no python3 in PATH", "apt-get install python3-venv"}};
  Findings found;
  for (const std::string& line : CLI::detail::split(answer.text, '\n')) {
    const Words parts = CLI::detail::split(line, '\t');
    if (parts.size() != 4 || parts[0] != "kvbench") continue;
    std::string remedy = answer.path + " -m pip install ";
    if (parts[1] == "kvbench") remedy += "./python (or . with the program), in a clone of kvbench";
    for (const std::string& package : words)
      if (package.starts_with(parts[1] + ">")) remedy += fmt::format("-U '{}'", package);
    found.push_back({parts[2], parts[1] == "kvbench" ? "Python package" : parts[1], parts[3],
                     parts[2] == "works"    ? ""
                     : parts[1] == "Python" ? "install a newer Python"
                                            : remedy});
  }
  if (!answer.fault.empty()) found.push_back({"broken", "Python", answer.path + " " + answer.fault});
  return found;
}

Finding find_cache() try {
  const ModelCache cache;
  double bytes = 0;
  for (const ModelCopy& copy : cache.copies()) bytes += static_cast<double>(copy.bytes);
  fs::path folder = cache.folder();
  while (!fs::exists(folder) && folder.has_relative_path()) folder = folder.parent_path();
  const AtomicFile tried((folder / "doctor").string());  // which it removes
  return {"works", "model cache", fmt::format("{}, {:.1f} GiB", cache.folder().string(), bytes / (1 << 30))};
} catch (const std::runtime_error& error) {
  return {"broken", "model cache", error.what(), "set XDG_CACHE_HOME to a folder that you may write"};
}

int run(int limit) {
  Findings found = find_replay();
  found.push_back(find_program("kvbench-validate", laboratory_remedy, limit));
  for (const char* program : {"kveval", "kvdump"}) found.push_back(find_program(program, llama_remedy, limit));
  std::ranges::move(find_python(limit), std::back_inserter(found));
  found.push_back(find_cache());
  Words broken;
  for (const Finding& one : found) {
    print(printable(fmt::format("{:<8} {:<17} {}\n", one.state, one.what, one.detail), "\n"));
    if (!one.remedy.empty()) print(fmt::format("{:26} -> {}\n", "", printable(one.remedy)));
    if (one.own && one.state == "broken") broken.push_back(one.what);
  }
  if (broken.empty()) return done;
  print(fmt::format("This build cannot run here: {}\n", fmt::join(broken, ", ")));
  return rows_failed;
}

}  // namespace

Command add_doctor(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("doctor", "Try what works on this machine, and say how to get the rest");
  auto limit = std::make_shared<int>(60);
  flags->add_option("--limit", *limit, "Seconds that another program may take to answer")
      ->check(number_in(1, 3600))
      ->capture_default_str();
  flags->footer(
      "Each line is the outcome of trying: works, missing, old or broken. The exit code is 1 if what this program was "
      "built for is broken. KVBENCH_INTERPRETER names another Python.");
  return {flags, [limit] { return run(*limit); }};
}

}  // namespace kvbench::app
