// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/request_flags.hpp>

#include <charconv>

#include <kvbench/config/method_flags.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/replay/plan/calibration.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/output.hpp>

namespace kvbench::app {

using replay::ReplayRequest;

namespace {

constexpr std::int64_t most_numbers = 100000;

std::int64_t to_number(std::string_view text, std::string_view whole, std::string_view flag) {
  std::int64_t value = 0;
  text = trimmed(text);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc{} || end != text.data() + text.size()) {
    throw Error("{}: '{}' is not a number or a range such as 0-3", flag, whole);
  }
  return value;
}

/// The numbers in "0,2", "5-7": 0, 2, 5, 6, 7. Throws Error with `flag`, also for more than most_numbers.
std::vector<std::int64_t> number_list(const std::vector<std::string>& values, std::string_view flag) {
  std::vector<std::int64_t> numbers;
  for (const std::string& item : split_list(values, flag)) {
    const std::size_t dash = item.find('-', 1);
    const std::int64_t first = to_number(std::string_view(item).substr(0, dash), item, flag);
    const std::int64_t last =
        dash == std::string::npos ? first : to_number(std::string_view(item).substr(dash + 1), item, flag);
    if (last < first) throw Error("{}: '{}' is not a range; write the smaller number first", flag, item);
    const std::uint64_t more = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
    if (more >= static_cast<std::uint64_t>(most_numbers - std::ssize(numbers)))
      throw Error("{}: these are more than {} numbers, up to '{}'; give fewer", flag, most_numbers, item);
    for (std::uint64_t i = 0; i <= more; ++i) numbers.push_back(first + static_cast<std::int64_t>(i));
  }
  return numbers;
}

}  // namespace

/// Adds the flag of a field by the type of its value.
struct RequestFlags::Adder {
  RequestFlags& to;
  CLI::App* flags;
  const replay::RequestField& field;
  const replay::FieldFlag flag;

  void operator()(std::vector<replay::MethodChoice> ReplayRequest::*) const {
    list();
    flags->add_option("--set", to.settings_,
                      "Set a parameter in all rows of a method that do not set it in brackets: METHOD.PARAMETER=VALUE "
                      "(see kvbench methods NAME)");
  }
  template <class T>
  void operator()(std::vector<T> ReplayRequest::*) const {
    list();
  }
  void operator()(std::optional<replay::Calibration> ReplayRequest::*) const { list()->expected(1); }
  void operator()(replay::Protection) const { list(); }
  void operator()(std::vector<std::uint32_t> ReplayRequest::*) const {
    to.lists_[field.name] = {value_text(field, to)};
    list()->default_str(to.lists_[field.name].front());
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(E ReplayRequest::*member) const {
    add_choice(flags, names().c_str(), to.*member, replay::value_names<E>(), flag.help);
  }
  void operator()(std::optional<Index> ReplayRequest::*member) const {
    flags->add_option(names(), to.*member, flag.help)->check(number_in<Index>(field.use.least));
  }
  void operator()(Index ReplayRequest::*member) const {
    flags->add_option(names(), to.*member, flag.help)->check(number_in<Index>(field.use.least))->capture_default_str();
  }
  void operator()(bool ReplayRequest::*member) const { flags->add_flag(names(), to.*member, flag.help); }

 private:
  std::string names() const { return std::string(flag.names); }
  CLI::Option* list() const { return flags->add_option(names(), to.lists_[field.name], flag.help); }
};

/// Sets a field from the texts of its flag.
struct RequestFlags::Resolver {
  RequestFlags& to;
  std::string flag;
  const std::vector<std::string>& given;

  void operator()(std::vector<replay::MethodChoice> ReplayRequest::*member) const {
    to.*member = config::parse_methods(given, to.settings_);
  }
  void operator()(std::vector<Budget> ReplayRequest::*member) const {
    (to.*member).clear();
    for (const std::string& item : split_list(given, flag)) (to.*member).push_back(Budget::parse(item));
  }
  void operator()(std::vector<std::int64_t> ReplayRequest::*member) const {
    const bool all = given.size() == 1 && same_name(given.front(), "all");
    to.*member = all ? std::vector<std::int64_t>() : number_list(given, flag);
  }
  void operator()(std::vector<std::string> ReplayRequest::*member) const { to.*member = split_list(given, flag); }
  void operator()(std::optional<replay::Calibration> ReplayRequest::*member) const {
    to.*member = replay::open_calibration(given.front());
  }
  void operator()(replay::Protection protection) const {
    config::set_protection(to, number_list(given, flag), protection.outside);
  }
  void operator()(std::vector<std::uint32_t> ReplayRequest::*member) const {
    const std::vector<std::int64_t> numbers = number_list(given, flag);
    const bool count = numbers.size() == 1 && given.front().find_first_of(",-") == std::string::npos;
    to.*member = config::seeds_of(numbers, count);
  }
  /// CLI11 has set the others.
  void operator()(auto) const {}
};

void RequestFlags::add(CLI::App* flags, bool replay::FieldCommands::*command) {
  for (const replay::RequestField& field : replay::request_fields()) {
    if (!(field.flag.of.*command)) continue;
    std::visit(Adder{*this, flags, field, field.flag.of_command(command)}, field.member);
  }
}

void RequestFlags::resolve() {
  if (!lists_["protect_first"].empty() && !lists_["protect_outside"].empty())
    throw Error("give --protect or --protect-outside, not both");
  for (const replay::RequestField& field : replay::request_fields()) {
    const std::vector<std::string>& given = lists_[field.name];
    if (!given.empty()) std::visit(Resolver{*this, field.flag.name(), given}, field.member);
  }
}

}  // namespace kvbench::app
