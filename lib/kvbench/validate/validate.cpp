// SPDX-License-Identifier: Apache-2.0
#include <kvbench/validate/validate.hpp>

#include <algorithm>

#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/bounds/trials/rates.hpp>
#include <kvbench/replay/replay.hpp>

namespace kvbench::validate {
namespace {

/// One check on one subject, on the trace, or without data.
struct CheckJob {
  const bounds::Check* check;
  const bounds::SubjectSource* subject = nullptr;
};

std::vector<CheckJob> list_jobs(std::span<const bounds::Check* const> checks,
                                std::span<const bounds::SubjectSource> subjects, const trace::Reader* reader) {
  std::vector<CheckJob> jobs;
  for (const bounds::Check* check : checks) {
    if (check->scope == bounds::Scope::head) {
      for (const bounds::SubjectSource& subject : subjects) jobs.push_back({.check = check, .subject = &subject});
    } else if (check->scope == bounds::Scope::once || reader != nullptr) {
      jobs.push_back({.check = check});
    }
  }
  return jobs;
}

/// The rows of the job.
std::vector<bounds::CheckRow> run_job(const CheckJob& job, const trace::Reader* reader,
                                      const bounds::ValidateOptions& options, const std::atomic<bool>* stop,
                                      Backend& backend) {
  bounds::Subject subject;
  std::vector<bounds::CheckRow> rows;
  bounds::CheckContext context{
      .options = options, .backend = backend, .stop = stop, .rows = rows, .check = job.check->id};
  if (job.check->scope == bounds::Scope::trace) context.reader = reader;
  context.poll();
  if (job.subject != nullptr) {
    subject = job.subject->load(backend);
    context.subject = &subject;
  }
  try {
    job.check->run(context);
  } catch (const methods::Unavailable& reason) {
    context.not_tested(bounds::CheckKind::data, {}, reason.what());
  } catch (const methods::Infeasible& reason) {
    context.not_tested(bounds::CheckKind::data, {}, reason.what());
  }
  return rows;
}

}  // namespace

void FinishedRows::add(std::size_t check, std::vector<bounds::CheckRow> rows) {
  const std::lock_guard lock(mutex_);
  rows_[check] = std::move(rows);
}

std::vector<bounds::CheckRow> FinishedRows::judged(double alpha) const {
  std::vector<bounds::CheckRow> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [check, rows] : rows_) all.insert(all.end(), rows.begin(), rows.end());
  }
  bounds::judge(all, alpha);
  bounds::name_largest_constants(all);
  return all;
}

void validate(std::span<const bounds::Check* const> checks, std::span<const bounds::SubjectSource> subjects,
              const trace::Reader* reader, const bounds::ValidateOptions& options, FinishedRows& finished,
              const replay::ReplayHooks& hooks) {
  const std::vector<CheckJob> jobs = list_jobs(checks, subjects, reader);
  run_work_items(jobs.size(), {.threads = options.threads}, hooks,
                 [&](Backend& backend, std::size_t j, const replay::PartDone&) {
                   finished.add(j, run_job(jobs[j], reader, options, hooks.stop, backend));
                 });
}

}  // namespace kvbench::validate
