// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/stream.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <kvbench/methods/registry.hpp>

namespace kvbench::bounds {
namespace {

/// One query that attends to all tokens of the stream so far.
methods::QueryBlock one_query(const Subject& subject, Index tokens, Backend& backend) {
  const auto last = static_cast<std::int32_t>(tokens);
  return {.queries = backend.adopt(evenly_spaced_rows(subject.queries, subject.d(), 1), 1, subject.d()),
          .positions = {last},
          .first = backend.adopt(std::vector<std::int32_t>{0}, 1),
          .last = backend.adopt(std::vector<std::int32_t>{last}, 1)};
}

std::vector<double> row_of(const std::vector<float>& rows, std::size_t row, std::size_t width) {
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(row * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(width)};
}

void add_table(std::vector<HeldEntry>& held, const methods::EntryTable& table, Backend& backend) {
  const std::vector<std::int32_t> ids = backend.read(table.ids);
  const auto read = [&](const Buffer<const float>& buffer) {
    return buffer.present() ? backend.read(buffer) : std::vector<float>();
  };
  const std::vector<float> num = read(table.weight_num), den = read(table.weight_den);
  const std::vector<float> keys = read(table.own_keys), values = read(table.own_values);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) continue;
    HeldEntry entry{.id = ids[i]};
    if (!num.empty()) entry.num = double{num[i]};
    if (!den.empty()) entry.den = double{den[i]};
    if (!keys.empty()) entry.key = row_of(keys, i, static_cast<std::size_t>(table.own_keys.cols()));
    if (!values.empty()) entry.value = row_of(values, i, static_cast<std::size_t>(table.own_values.cols()));
    held.push_back(std::move(entry));
  }
}

Snapshot observe(Session& session, const Subject& subject, Backend& backend) {
  Snapshot snapshot{.tokens = session.tokens()};
  for (const methods::EntryTable& table : session.entries({one_query(subject, session.tokens(), backend)}).front()) {
    add_table(snapshot.held, table, backend);
  }
  std::ranges::sort(snapshot.held, {}, &HeldEntry::id);
  return snapshot;
}

}  // namespace

std::string StreamPlan::text() const {
  return fmt::format("prompt={};appended={};B={};seed={}", prompt, appended, budget, seed);
}

MethodUnderTest registered_method(const std::string& name, const std::vector<methods::Assignment>& settings) {
  return [name, settings](const methods::HeadPrompt& head, Backend& backend) {
    const methods::MethodInfo& method = methods::find_method(name);
    return method.prepare_head(head, method.bind(settings), backend);
  };
}

void append_token(Session& session, const Subject& subject) {
  const Index next = session.tokens();
  const methods::TokenBlock token{next, subject.head.keys.slice(next, 1), subject.head.values.slice(next, 1)};
  session.append({&token, 1});
}

std::vector<Snapshot> observe_stream(const Subject& subject, const StreamPlan& plan, const MethodUnderTest& method,
                                     Backend& backend) {
  methods::HeadPrompt head = first_context(subject.head, plan.prompt);
  if (plan.prompt == 0) head.calibration_keys = subject.head.keys.slice(0, plan.appended);
  Session session(method(head, backend)(plan.budget, plan.seed), plan.prompt, backend);
  std::vector<Snapshot> times = {observe(session, subject, backend)};
  for (Index i = 0; i < plan.appended; ++i) {
    append_token(session, subject);
    times.push_back(observe(session, subject, backend));
  }
  return times;
}

}  // namespace kvbench::bounds
