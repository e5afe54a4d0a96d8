// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/unlisted.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/ranges.h>

#include <kvbench/core/name.hpp>
#include <kvbench/core/output_path.hpp>
#include <kvbench/methods/compose.hpp>
#include <kvbench/methods/contract/layer_plan.hpp>
#include <kvbench/methods/file_name.hpp>
#include <kvbench/methods/sets.hpp>

namespace kvbench::methods {
namespace {

FindPythonMethod python = nullptr;
std::map<std::string, std::pair<std::string, std::string>, std::less<>> shown;  // methods and parameters by texts

/// Null where there is none of this name.
const Wrapper* find_wrapper(std::string_view name) {
  for (const Wrapper& wrapper : all_wrappers()) {
    if (same_name(wrapper.info.name, name)) return &wrapper;
  }
  return nullptr;
}

/// Its file is an input from here on, which no output replaces.
const MethodInfo& find_python_method(std::string_view name) {
  check_name(name, fmt::format("The method '{}'", name));  // which tables and messages show
  remember_read(parse_python_name(name)->file);
  if (python != nullptr) return python(std::string(name));
  throw Error(
      "'{}' is written in Python, and this program was built without it; `pip install .` in a clone of kvbench "
      "installs a kvbench that runs methods in Python",
      name);
}

/// Where + begins the quantiser of a composition; npos where the name is that of a single method, of a wrapped one or
/// of a plan. The path of a file may have a + of its own.
std::size_t find_plus(std::string_view name) {
  if (is_plan(name)) return name.npos;
  if (const auto wrapped = parse_wrapped(name); wrapped && find_wrapper(wrapped->wrapper))
    return wrapped->after.empty() ? name.npos : name.size() - wrapped->after.size();
  if (is_scores(name)) return name.find('+', scores_prefix.size() + file_in(name).size());
  const auto in_python = parse_python_name(name);
  return name.find('+', in_python ? name.size() - in_python->object.size() : 0);
}

/// A method of two parts, made once; it lives as long as the program, as the table does.
template <class Make>
const MethodInfo& made_of(const MethodInfo& a, const MethodInfo& b, Make make) {
  static std::mutex mutex;
  static std::map<std::pair<const MethodInfo*, const MethodInfo*>, MethodInfo> made;
  const std::lock_guard lock(mutex);
  const std::pair parts(&a, &b);
  const auto found = made.find(parts);
  return found != made.end() ? found->second : made.emplace(parts, make()).first->second;
}

/// The composition of this name, A+Q.
const MethodInfo& find_composition(std::string_view name, std::size_t plus, FindMethodOfFile of_file) {
  if (plus == 0 || plus + 1 == name.size() || name[plus + 1] == '+')
    throw Error("'{}' is no composition; write METHOD+QUANTISER, such as snapkv+kivi4", name);
  if (name.find('+', plus + 1) != name.npos)  // before its parts are looked up, because there may be thousands
    throw Error("there is no method '{}...': it has more than one +; write METHOD+QUANTISER, such as snapkv+kivi4",
                name.substr(0, plus + 20));
  const MethodInfo& method = find_method(trimmed(name.substr(0, plus)), of_file);
  const MethodInfo& quantiser = find_method(trimmed(name.substr(plus + 1)));
  return made_of(method, quantiser, [&] { return compose(method, quantiser); });
}

/// "adakv, adakv@kvpress"
std::string wrapper_names() {
  std::vector<std::string> names;
  for (const Wrapper& wrapper : all_wrappers()) names.push_back(wrapper.info.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The method of this name, W(A) with a known W.
const MethodInfo& find_wrapped(const Wrapper& wrapper, std::string_view inside, FindMethodOfFile of_file) {
  if (inside.empty()) throw Error("{0} wraps a method that ranks tokens; write {0}(snapkv)", wrapper.info.name);
  const MethodInfo& method = find_method(inside, of_file);
  return made_of(wrapper.info, method, [&] { return wrap(wrapper, method); });
}

/// Throws Error where a name has round brackets, and is none of a method in Python or of a known wrapper around
/// another.
void check_brackets(std::string_view name) {
  const std::size_t open = name.find('(');
  if (open == name.npos) return;
  const std::string_view before = trimmed(name.substr(0, open));
  if (find_wrapper(before) == nullptr) throw Error("there is no wrapper '{}'; there are {}", before, wrapper_names());
  if (name.find(')') == name.npos) throw Error("'{}' has a bracket that is not closed; write {}(snapkv)", name, before);
  throw Error("'{}': nothing follows the bracket but a quantiser; write {}(snapkv)+int8", name, before);
}

/// Presses that kvpress has and kvbench has not, in lower case and without the word press.
constexpr std::string_view presses[] = {"chunk",    "chunkkv",       "entropygatedchunkkv",
                                        "leverage", "leveragescore", "noncausalattention",
                                        "cap",      "noncausalattn"};
/// Those that kvbench.from_kvpress() refuses.
constexpr std::string_view presses_of_models[] = {"finch", "kvzap", "qfilter", "simlayerkv", "think"};

/// Names that are known from other programs and papers, in lower case without - and _, and what has them here.
struct OtherName {
  std::string_view name, here;
};
constexpr OtherName other_names[] = {{"none", "exact"},
                                     {"*", "all"},
                                     {"dense", "exact"},
                                     {"baseline", "exact"},
                                     {"original", "exact"},
                                     {"uncompressed", "exact"},
                                     {"nocompression", "exact"},
                                     {"fp16", "exact"},
                                     {"f16", "exact"},
                                     {"bf16", "exact"},
                                     {"f32", "exact"},
                                     {"heavyhitter", "h2o"},
                                     {"heavyhitters", "h2o"},
                                     {"observedattention", "h2o"},
                                     {"attentionsink", "sink"},
                                     {"attentionsinks", "sink"},
                                     {"slidingwindow", "sink"},
                                     {"kivi", "kivi4 or kivi2"},
                                     {"kvquant", "kvquant-nofisher"},
                                     {"kmeanskv", "kmeans"},
                                     {"oracle", "oracle-topk or oracle-error"},
                                     {"cur", "curdkv"},
                                     {"duoattention", "duo or duo@kvpress"},
                                     {"llamacpp", "llama.cpp"},
                                     {"kvzip", "scores:FILE.h5 of kvbench-dump-hf --scores kvzip"},
                                     {"damagevotes", "scores:FILE.h5 of kvbench-dump-hf --scores damage-votes"},
                                     {"l2compress", "knorm"},
                                     {"l2norm", "knorm"}};

/// In lower case without - and _.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '-' && c != '_') plain += lower_case(c);
  }
  return plain;
}

/// What to write instead of a name that no method has.
std::string right_name(std::string_view name) {
  std::string plain = plain_name(name);
  constexpr std::string_view ending = "press";
  if (plain.ends_with(ending)) {
    plain.resize(plain.size() - ending.size());
    for (const std::string& own : {plain + "@kvpress", plain}) {
      const auto here = std::ranges::find(all_methods(), own, [](const auto& info) { return plain_name(info.name); });
      if (here != all_methods().end()) return fmt::format(" Here it is {}.", here->name);
    }
  }
  if (const Wrapper* wrapper = find_wrapper(plain))
    return fmt::format(" {0} wraps a method that ranks tokens; write {0}(snapkv).", wrapper->info.name);
  if (std::ranges::find(presses, plain) != std::end(presses))
    return " It is a press of kvpress: kvbench.from_kvpress() makes it a method in Python (docs/python.md).";
  if (std::ranges::find(presses_of_models, plain) != std::end(presses_of_models))
    return " It is a press of kvpress that needs a model or takes no budget; kvbench has nothing like it.";
  const auto* other = std::ranges::find(other_names, plain, &OtherName::name);
  if (other != std::end(other_names)) return fmt::format(" Here it is {}.", other->here);
  std::vector<std::string> known;
  for (const MethodInfo& method : all_methods()) {
    known.push_back(method.name);
    known.insert(known.end(), method.aliases.begin(), method.aliases.end());
  }
  if (!rows_of_set(name).empty()) return " It stands for several methods; name one of them.";
  return did_you_mean(name, known);
}

}  // namespace

void set_python(FindPythonMethod find) { python = find; }

void show_as(const std::string& text, std::string_view method, std::string_view params) {
  if (text == method) return;  // which would stand for itself
  shown[text] = {std::string(method), std::string(params)};
}

std::pair<std::string, std::string> shown_by(std::string_view text) {
  const auto found = shown.find(text);
  return found != shown.end() ? found->second : std::pair(std::string(text), std::string());
}

std::string_view family_of_unlisted(std::string_view method) {
  if (const auto found = shown.find(method); found != shown.end()) return family_of(found->second.first);
  if (find_plus(method) != method.npos || is_plan(method)) return "composition";
  if (const auto wrapped = parse_wrapped(method); wrapped && find_wrapper(wrapped->wrapper))
    return family_of(wrapped->inside);
  if (parse_python_name(method) || is_scores(method)) return "own";
  return "other";
}

const MethodInfo& find_unlisted(std::string_view name, FindMethodOfFile of_file) {
  if (const std::size_t plus = find_plus(name); plus != name.npos) return find_composition(name, plus, of_file);
  if (const auto wrapped = parse_wrapped(name)) {
    if (const Wrapper* wrapper = find_wrapper(wrapped->wrapper))
      return find_wrapped(*wrapper, wrapped->inside, of_file);
  }
  if (is_plan(name)) throw Error("'{}': a plan stands for a whole method; it runs in replays and evaluations", name);
  if (is_scores(name) && of_file != nullptr) return of_file(name);
  if (is_scores(name)) throw Error("'{}' has the scores of a trace; it runs in replays of this trace", name);
  if (parse_python_name(name)) return find_python_method(name);
  check_brackets(name);
  throw Error("there is no method '{}'.{} `kvbench methods` lists all of them.", name, right_name(name));
}

}  // namespace kvbench::methods
