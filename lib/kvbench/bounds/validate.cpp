// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/validate.hpp>

#include <algorithm>

#include <kvbench/bounds/rates.hpp>
#include <kvbench/replay/run/workers.hpp>

namespace kvbench {
namespace {

/// One claim on one subject, on the trace, or without data.
struct CheckJob {
  const Claim* claim;
  const SubjectSource* subject = nullptr;
};

std::vector<CheckJob> list_jobs(std::span<const Claim* const> claims, std::span<const SubjectSource> subjects,
                                const trace::Reader* reader) {
  std::vector<CheckJob> jobs;
  for (const Claim* claim : claims) {
    if (claim->scope == Scope::head) {
      for (const SubjectSource& subject : subjects) jobs.push_back({.claim = claim, .subject = &subject});
    } else if (claim->scope == Scope::once || reader != nullptr) {
      jobs.push_back({.claim = claim});
    }
  }
  return jobs;
}

void add_not_applicable(CheckContext& context, const char* reason) {
  CheckRow& row = context.add(CheckKind::data, "");
  row.assumptions = false;
  row.text = reason;
}

/// The rows of the job.
std::vector<CheckRow> run_job(const CheckJob& job, const trace::Reader* reader, const ValidateOptions& options,
                              const std::atomic<bool>* stop, Backend& backend) {
  Subject subject;
  std::vector<CheckRow> rows;
  CheckContext context{.options = options, .backend = backend, .stop = stop, .rows = rows, .claim = job.claim->id};
  if (job.claim->scope == Scope::trace) context.reader = reader;
  context.poll();
  if (job.subject != nullptr) {
    subject = job.subject->load(backend);
    context.subject = &subject;
  }
  try {
    job.claim->run(context);
  } catch (const Unavailable& reason) {
    add_not_applicable(context, reason.what());
  } catch (const Infeasible& reason) {
    add_not_applicable(context, reason.what());
  }
  return rows;
}

}  // namespace

void FinishedRows::add(std::size_t check, std::vector<CheckRow> rows) {
  const std::lock_guard lock(mutex_);
  rows_[check] = std::move(rows);
}

std::vector<CheckRow> FinishedRows::judged(double alpha) const {
  std::vector<CheckRow> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [check, rows] : rows_) all.insert(all.end(), rows.begin(), rows.end());
  }
  judge(all, alpha);
  name_largest_constants(all);
  return all;
}

void validate(std::span<const Claim* const> claims, std::span<const SubjectSource> subjects,
              const trace::Reader* reader, const ValidateOptions& options, FinishedRows& finished,
              const ReplayHooks& hooks) {
  const std::vector<CheckJob> jobs = list_jobs(claims, subjects, reader);
  run_work_items(jobs.size(), {.threads = options.threads}, hooks,
                 [&](Backend& backend, std::size_t j, const PartDone&) {
                   finished.add(j, run_job(jobs[j], reader, options, hooks.stop, backend));
                 });
}

}  // namespace kvbench
