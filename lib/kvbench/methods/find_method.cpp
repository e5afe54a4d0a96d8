// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/find_method.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include <fmt/ranges.h>

#include <kvbench/core/name.hpp>
#include <kvbench/core/output_path.hpp>
#include <kvbench/methods/compose.hpp>
#include <kvbench/methods/sets.hpp>

namespace kvbench::methods {
namespace {

constinit std::array<Definer, 4> definers = {};                                 // by origin, that of kvbench unused
std::map<std::string, std::pair<std::string, std::string>, std::less<>> shown;  // methods and parameters by texts

/// Null where there is none of this name.
const Wrapper* find_wrapper(std::string_view name) {
  const auto is = [&](const Wrapper& wrapper) { return same_name(wrapper.info.name, name); };
  const auto found = std::ranges::find_if(all_wrappers(), is);
  return found == all_wrappers().end() ? nullptr : &*found;
}

[[noreturn]] void refuse(const MethodName& name) {
  if (name.origin == Origin::plan)
    throw Error("'{}': a plan stands for a whole method; it runs in replays and evaluations", name.base);
  if (name.origin == Origin::scores)
    throw Error("'{}' has the scores of a trace; it runs in replays of this trace", name.base);
  throw Error(
      "'{}' is written in Python, and this program was built without it; `pip install .` in a clone of kvbench "
      "installs a kvbench that runs methods in Python",
      name.base);
}

/// The method of a file, or of a running Python. Its file is an input from here on, which no output replaces.
const MethodInfo& find_defined(const MethodName& name) {
  check_name(name.base, fmt::format("The method '{}'", name.base));  // which tables and messages show
  if (!name.file.empty()) remember_read(name.file);
  const Definer& definer = definers[static_cast<std::size_t>(name.origin)];
  if (definer.find == nullptr) refuse(name);
  return definer.find(name);
}

/// A method inside another one.
const MethodInfo& find_part(const MethodName& name) {
  if (name.origin == Origin::plan) refuse(name);
  return find_method(name);
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

MethodName without_quantiser(MethodName name) {
  name.quantiser.reset();
  return name;
}

/// The composition of this name, A+Q.
const MethodInfo& find_composition(const MethodName& name) {
  const MethodName chosen = without_quantiser(name);
  const std::string& stored = *name.quantiser;
  if (chosen.base.empty() || stored.empty() || stored.starts_with('+'))
    throw Error("'{}' is no composition; write METHOD+QUANTISER, such as snapkv+kivi4", name.name());
  if (stored.find('+') != stored.npos)  // before its parts are looked up, because there may be thousands
    throw Error("there is no method '{}': it has more than one +; write METHOD+QUANTISER, such as snapkv+kivi4",
                name.name());
  const MethodInfo& method = find_part(chosen);
  const MethodInfo& quantiser = find_part(parse_method_name(stored));
  return made_of(method, quantiser, [&] { return compose(method, quantiser); });
}

/// "adakv, adakv@kvpress"
std::string wrapper_names() {
  std::vector<std::string> names;
  for (const Wrapper& wrapper : all_wrappers()) names.push_back(wrapper.info.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const Wrapper& known_wrapper(std::string_view name) {
  if (const Wrapper* wrapper = find_wrapper(name)) return *wrapper;
  throw Error("there is no wrapper '{}'; there are {}", name, wrapper_names());
}

/// The method of this name, W(A).
const MethodInfo& find_wrapped(const MethodName& name) {
  const Wrapper& wrapper = known_wrapper(name.wrapper);
  const MethodName inside = parse_method_name(name.base);
  if (!inside.wrapper.empty())
    throw Error("there is no method '{}': {} chooses tokens already, and one wrapper can", name.name(), name.base);
  const MethodInfo& method = find_part(without_quantiser(inside));
  if (inside.quantiser)
    throw Error("there is no method '{}': tokens are chosen and then stored; write {}({})+{}", name.name(),
                wrapper.info.name, method.name, *inside.quantiser);
  return made_of(wrapper.info, method, [&] { return wrap(wrapper, method); });
}

/// Throws Error if a base, which is that of no method, has round brackets.
void check_brackets(std::string_view base) {
  const std::size_t open = base.find('(');
  if (open == base.npos) return;
  const std::string_view before = trimmed(base.substr(0, open));
  const std::string& wrapper = known_wrapper(before).info.name;
  const std::size_t close = base.find(')');
  if (close == base.npos) throw Error("'{}' has a bracket that is not closed; write {}(snapkv)", base, before);
  if (trimmed(base.substr(open + 1, close - open - 1)).empty())
    throw Error("{0} wraps a method that ranks tokens; write {0}(snapkv)", wrapper);
  throw Error("'{}': nothing follows the bracket but a quantiser; write {}(snapkv)+int8", base, before);
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
                                     {"quantiser", "quantisation"},
                                     {"quantizer", "quantisation"},
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
  std::vector<std::string> known = set_names();
  for (const MethodInfo& method : all_methods()) {
    known.push_back(method.name);
    known.insert(known.end(), method.aliases.begin(), method.aliases.end());
  }
  if (is_set(name)) return " It stands for several methods; name one of them.";
  return did_you_mean(name, known);
}

}  // namespace

void set_definer(Origin origin, const Definer& definer) { definers[static_cast<std::size_t>(origin)] = definer; }

std::string source_sha256(const std::string& file) {
  const auto of_python = definers[static_cast<std::size_t>(Origin::python)].source_sha256;
  return of_python != nullptr ? of_python(file) : "";
}

void show_as(const std::string& text, std::string_view method, std::string_view params) {
  if (text == method) return;  // which would stand for itself
  shown[text] = {std::string(method), std::string(params)};
}

std::pair<std::string, std::string> shown_by(std::string_view text) {
  const auto found = shown.find(text);
  return found != shown.end() ? found->second : std::pair(std::string(text), std::string());
}

std::string_view family_of(std::string_view method) {
  const auto row = [](std::string_view name) { return std::ranges::find(all_methods(), name, &MethodInfo::name); };
  if (row(method) != all_methods().end()) return name_of(row(method)->kind);
  if (const auto found = shown.find(method); found != shown.end()) return family_of(found->second.first);
  const MethodName name = parse_method_name(method);
  if (name.quantiser || name.origin == Origin::plan) return "composition";
  if (name.origin != Origin::kvbench) return "own";
  const bool known = find_wrapper(name.wrapper) != nullptr && row(name.base) != all_methods().end();
  return known ? name_of(row(name.base)->kind) : "other";
}

const MethodInfo& find_method(std::string_view name) { return find_method(parse_method_name(name)); }

const MethodInfo& find_method(const MethodName& name) {
  if (name.quantiser) return find_composition(name);
  if (!name.wrapper.empty()) return find_wrapped(name);
  if (name.origin != Origin::kvbench) return find_defined(name);
  for (const MethodInfo& method : all_methods()) {
    const auto is = [&](const std::string& own) { return same_name(own, name.base); };
    if (is(method.name) || std::ranges::any_of(method.aliases, is)) return method;
  }
  check_brackets(name.base);
  throw Error("there is no method '{}'.{} `kvbench methods` lists all of them.", name.base, right_name(name.base));
}

}  // namespace kvbench::methods
