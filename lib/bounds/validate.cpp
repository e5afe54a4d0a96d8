// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/validate.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

namespace kvbench {
namespace {

/// One claim on one subject, on the trace, or by itself.
struct Job {
  const Claim* claim;
  const SubjectSource* subject = nullptr;
  std::vector<CheckRow> rows = {};
  bool finished = false;
};

std::vector<Job> list_jobs(std::span<const Claim* const> claims, std::span<const SubjectSource> subjects,
                           const trace::Reader* reader) {
  std::vector<Job> jobs;
  for (const Claim* claim : claims) {
    if (claim->scope == Scope::head) {
      for (const SubjectSource& subject : subjects) jobs.push_back({.claim = claim, .subject = &subject});
    } else if (claim->scope == Scope::once || reader != nullptr) {
      jobs.push_back({.claim = claim});
    }
  }
  return jobs;
}

class Checks {
 public:
  Checks(std::vector<Job>& jobs, const trace::Reader* reader, const ValidateOptions& options, const ValidateHooks& hooks)
      : jobs_(jobs), reader_(reader), options_(options), hooks_(hooks) {}

  bool run(std::size_t threads) {
    std::vector<std::thread> pool;
    for (std::size_t t = 1; t < threads; ++t) pool.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : pool) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return interrupted_;
  }

 private:
  void work() {
    try {
      const std::unique_ptr<Backend> backend = make_cpu_backend();
      for (std::size_t j; !interrupted_ && !failed_ && (j = next_.fetch_add(1)) < jobs_.size();) {
        run_job(jobs_[j], *backend);
        const std::lock_guard lock(mutex_);
        ++done_;
        if (hooks_.progress) hooks_.progress(done_, static_cast<Index>(jobs_.size()));
      }
    } catch (const Interrupted&) {
      interrupted_ = true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failed_ = true;
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void run_job(Job& job, Backend& backend) const {
    Subject subject;
    CheckContext context{
        .options = options_, .backend = backend, .stop = hooks_.stop, .rows = job.rows, .claim = job.claim->id};
    if (job.claim->scope == Scope::trace) context.reader = reader_;
    context.poll();
    if (job.subject != nullptr) {
      subject = job.subject->load(backend);
      context.subject = &subject;
    }
    try {
      job.claim->run(context);
    } catch (const Unavailable& reason) {
      set_aside(context, reason.what());
    } catch (const Infeasible& reason) {
      set_aside(context, reason.what());
    }
    job.finished = true;
  }

  static void set_aside(CheckContext& context, const char* reason) {
    CheckRow& row = context.add(CheckKind::data, "");
    row.assumptions = false;
    row.text = reason;
  }

  std::vector<Job>& jobs_;
  const trace::Reader* reader_;
  const ValidateOptions& options_;
  const ValidateHooks& hooks_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> interrupted_ = false, failed_ = false;
  std::mutex mutex_;
  Index done_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

ValidateResult validate(std::span<const Claim* const> claims, std::span<const SubjectSource> subjects,
                        const trace::Reader* reader, const ValidateOptions& options, const ValidateHooks& hooks) {
  std::vector<Job> jobs = list_jobs(claims, subjects, reader);
  const std::size_t wanted =
      options.threads > 0 ? static_cast<std::size_t>(options.threads) : std::max(1u, std::thread::hardware_concurrency());
  ValidateResult result;
  result.interrupted = Checks(jobs, reader, options, hooks).run(std::max<std::size_t>(1, std::min(wanted, jobs.size())));
  for (Job& job : jobs) {
    if (job.finished) std::ranges::move(job.rows, std::back_inserter(result.rows));
  }
  judge(result.rows, options.alpha);
  return result;
}

}  // namespace kvbench
