// SPDX-License-Identifier: Apache-2.0
// What works on this machine. Every line is the outcome of trying: a trace is replayed, programs are started, Python
// imports its packages, a file is written to the cache.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/kernels/backend.hpp>
#include <kvbench/replay/run/devices.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/model_cache.hpp>
#include <apps/kvbench/ask_program.hpp>
#include <apps/kvbench/own_program.hpp>
#include <apps/kvbench/run_kvbench.hpp>

namespace kvbench::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr double gib = 1 << 30;

struct Finding {
  std::string state;  ///< works, missing, old, broken
  std::string what, detail;
  std::string remedy = "";
  bool own = false;  ///< whether this program was built for it: if it is broken, the exit code is 1
};

/// A folder for what is tried, which is removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "kvbench-doctor-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw IoError("{}: cannot be made: {}", name, std::strerror(errno));
    folder_ = name;
  }
  ~Scratch() {
    std::error_code none;
    fs::remove_all(folder_, none);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const char* name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

/// Why a command of kvbench failed; "" if it did not.
std::string fault_of(const Words& words) {
  try {
    const int code = run_command(words);
    return code == done ? "" : fmt::format("kvbench {} ended with exit code {}", words.front(), code);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Replays a small trace on the device, "cpu" or "cuda".
std::string replay_fault(const Scratch& scratch, const std::string& device) {
  const Words synth = {"synth",      "-o", scratch.file("t.h5"), "-q", "--tokens",   "256",
                       "--head-dim", "16", "--value-dim",        "16", "--layers",   "1",
                       "--prompts",  "1",  "--query-heads",      "2",  "--kv-heads", "1"};
  const Words replay = {"replay",
                        scratch.file("t.h5"),
                        "-q",
                        "-m",
                        "h2o,q8_0,subgen",
                        "--seeds",
                        "1",
                        "-o",
                        scratch.file((device + ".csv").c_str()),
                        "--device",
                        device};
  if (!fs::exists(scratch.file("t.h5"))) {
    if (const std::string fault = fault_of(synth); !fault.empty()) return fault;
  }
  return fault_of(replay);
}

Finding find_replay(const Scratch& scratch) {
  const std::string fault = replay_fault(scratch, "cpu");
  const std::string with =
      fmt::format("{} ({}), {}, {} threads", version(), commit(), name_of(best_isa()), replay::thread_count({}));
  return {fault.empty() ? "works" : "broken", "replay", fault.empty() ? with : with + ": " + fault,
          fault.empty() ? "" : "build kvbench on this machine", true};
}

Finding find_gpu(const Scratch& scratch) {
  if (const std::string reason = cuda_unusable(); !reason.empty()) return {"missing", "GPU", reason};
  const std::string fault = replay_fault(scratch, "cuda");
  if (!fault.empty()) return {"broken", "GPU", fault, "scripts/gpu-check", true};
  return {"works", "GPU", fmt::format("{}; computes with --device cuda", make_cuda_backend()->name())};
}

/// PDF files of figures embed their characters, if fontconfig finds a font.
Finding find_fonts(const Scratch& scratch) {
  const std::string file = scratch.file("figure.pdf");
  const std::string fault = fault_of({"report", scratch.file("cpu.csv"), "--figure", "error-by-method", "-o", file});
  if (!fault.empty()) return {"broken", "figures", fault, "", true};
  std::ifstream opened(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(opened), {}};
  if (bytes.find("/FontFile") != bytes.npos) return {"works", "figures", "PDF files embed a font"};
  return {"missing", "figures", "PDF files have no font to embed", "apt-get install fonts-liberation"};
}

std::string first_line(const std::string& text) {
  const std::size_t begin = std::min(text.find_first_not_of("\n"), text.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// A program beside this one, which prints "NAME VERSION (COMMIT)".
Finding find_program(const std::string& name, const char* remedy, seconds limit) {
  const std::string path = path_of_program(name);
  if (path.empty()) return {"missing", name, "neither beside kvbench nor in PATH", remedy};
  const ProgramAnswer answer = ask_program(path, {"--version"}, limit);
  const std::string said = first_line(answer.text);
  if (!answer.fault.empty())
    return {"broken", name, fmt::format("{} {}{}{}", path, answer.fault, said.empty() ? "" : ": ", said), remedy, true};
  if (!said.starts_with(fmt::format("{} {} ", name, version())))
    return {"old", name, fmt::format("{} says '{}'; this is kvbench {}", path, said, version()), remedy};
  return {"works", name, fmt::format("{}, {}", said.substr(name.size() + 1), path)};
}

/// Imports what the arguments name, NAME>=VERSION, and prints a line for each: "kvbench", name, state, detail.
constexpr const char* importing = R"py(
import sys
sys.path[:] = [folder for folder in sys.path if folder]
def say(*words):
    print("kvbench", *[" ".join(str(word).split()) for word in words], sep="\t", flush=True)
def numbers(text):
    digits = "".join(c if c.isdigit() else "." if c == "." else " " for c in text).split(" ")[0]
    return [int(part) for part in digits.split(".") if part]
def judge(name, found, oldest, detail=""):
    old = numbers(found) < numbers(oldest)
    say(name, "old" if old else "works", detail + found + (", older than " + oldest if old else ""))
def attempt(name, found):
    try:
        found()
    except Exception as error:
        missing = isinstance(error, ImportError) and getattr(error, "name", None) == name
        say(name, "missing" if missing else "broken", type(error).__name__ + ": " + str(error))
def package():
    import kvbench
    if not hasattr(kvbench, "Trace"):
        return say("kvbench", "broken", kvbench.__path__[0] + " is another package named kvbench")
    try:
        import kvbench._core
        having = "with the program"
    except ImportError as error:
        having = "reads and writes files, without the program (" + str(error) + ")"
    say("kvbench", "works", kvbench.__path__[0] + ", " + having)
for argument in sys.argv[1:]:
    name, oldest = argument.split(">=")
    if name == "Python":
        judge(name, ".".join(map(str, sys.version_info[:3])), oldest, sys.executable + ", ")
        attempt("kvbench", package)
    else:
        attempt(name, lambda: judge(name, __import__(name).__version__, oldest))
)py";

/// The interpreter that runs the package: of the command kvbench that pip installed, of kvbench-choose, or in PATH.
std::string interpreter() {
  if (const char* given = std::getenv("KVBENCH_INTERPRETER")) return given;
  std::string line;
  std::ifstream script(path_of_program("kvbench-choose"));
  if (std::getline(script, line) && line.starts_with("#!/") && line.find("python") != line.npos &&
      line.find(' ') == line.npos)
    return line.substr(2);
  return path_of_program("python3");
}

std::string python_remedy(const std::string& path, const std::string& name, const Words& packages) {
  if (name == "Python") return "install a newer Python";
  if (name == "kvbench") return path + " -m pip install . (or ./python), in a clone of kvbench";
  const auto is = [&](const std::string& package) { return package.starts_with(name); };
  return fmt::format("{} -m pip install -U '{}'", path, *std::ranges::find_if(packages, is));
}

/// Python, the package, and what recording and running Hugging Face models needs, by the versions of pyproject.toml.
std::vector<Finding> find_python(seconds limit) {
  const Words packages = CLI::detail::split(KVBENCH_PYTHON_PACKAGES, ' ');
  const std::string path = interpreter();
  if (path.empty()) return {{"missing", "Python", "no python3 in PATH", "apt-get install python3-venv"}};
  Words words = {"-c", importing};
  std::ranges::copy(packages, std::back_inserter(words));
  const ProgramAnswer answer = ask_program(path, words, limit);
  std::vector<Finding> found;
  for (const std::string& line : CLI::detail::split(answer.text, '\n')) {
    const Words parts = CLI::detail::split(line, '\t');
    if (parts.size() != 4 || parts[0] != "kvbench") continue;
    const std::string& name = parts[1];
    found.push_back({parts[2], name == "kvbench" ? "Python package" : name, parts[3],
                     parts[2] == "works" ? "" : python_remedy(path, name, packages)});
  }
  if (!answer.fault.empty()) found.push_back({"broken", "Python", path + " " + answer.fault});
  return found;
}

/// Whether a file can be written where the cache is, or will be made.
std::string write_fault(fs::path folder) {
  std::error_code none;
  while (!fs::exists(folder, none) && folder.has_relative_path()) folder = folder.parent_path();
  std::string file = (folder / ".kvbench-doctor-XXXXXX").string();
  const int opened = ::mkstemp(file.data());
  if (opened < 0) return fmt::format("nothing can be written to {}: {}", folder.string(), std::strerror(errno));
  ::close(opened);
  ::unlink(file.c_str());
  return "";
}

Finding find_cache() {
  try {
    const ModelCache cache;
    double bytes = 0;
    for (const ModelCopy& copy : cache.copies()) bytes += static_cast<double>(copy.bytes);
    if (const std::string fault = write_fault(cache.folder()); !fault.empty())
      return {"broken", "model cache", fault, "set XDG_CACHE_HOME to a folder that you may write"};
    return {"works", "model cache",
            fmt::format("{}, {:.1f} of {:.0f} GiB used; kvbench cache lists it", cache.folder().string(), bytes / gib,
                        static_cast<double>(cache.limit()) / gib)};
  } catch (const Error& error) {
    return {"broken", "model cache", error.what()};
  }
}

int run(seconds limit) {
  std::vector<Finding> found;
  try {
    const Scratch scratch;
    found = {find_replay(scratch), find_gpu(scratch), find_fonts(scratch)};
  } catch (const fs::filesystem_error& error) {  // no folder for temporary files
    found = {{"broken", "replay", error.what(), "set TMPDIR to a folder that you may write", true}};
  } catch (const IoError& error) {
    found = {{"broken", "replay", error.what(), "set TMPDIR to a folder that you may write", true}};
  }
  found.push_back(find_program("kvbench-validate", laboratory_remedy, limit));
  for (const char* program : {"kveval", "kvdump"}) found.push_back(find_program(program, llama_remedy, limit));
  std::ranges::move(find_python(limit), std::back_inserter(found));
  found.push_back(find_cache());
  std::string out;
  Words broken;
  for (const Finding& one : found) {
    out += fmt::format("{:<8} {:<17} {}\n", one.state, one.what, printable(one.detail));
    if (!one.remedy.empty()) out += fmt::format("{:26} -> {}\n", "", printable(one.remedy));
    if (one.own && one.state == "broken") broken.push_back(one.what);
  }
  print(out + (broken.empty() ? "" : fmt::format("This build cannot run here: {}\n", fmt::join(broken, ", "))));
  return broken.empty() ? done : rows_failed;
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
  return {flags, [limit] { return run(seconds(*limit)); }};
}

}  // namespace kvbench::app
