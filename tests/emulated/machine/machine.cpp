// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "scheduler.hpp"

uint3 threadIdx = {}, blockIdx = {};
dim3 blockDim, gridDim;

// The shared memory of all kernels; absent in a program without any.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern char __start_emulated_shared[];
[[gnu::weak, gnu::visibility("hidden")]] extern char __stop_emulated_shared[];
}

namespace emulated {

Machine machine;

namespace {

uint3 index_in(const dim3& size, std::uint64_t linear) {
  return {static_cast<unsigned>(linear % size.x), static_cast<unsigned>(linear / size.x % size.y),
          static_cast<unsigned>(linear / size.x / size.y)};
}

std::string text_of(const uint3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) + ")";
}

std::size_t shared_bytes() { return static_cast<std::size_t>(__stop_emulated_shared - __start_emulated_shared); }

void poison_shared() {
  for (std::size_t at = 0; at + 4 <= shared_bytes(); at += 4) std::memcpy(__start_emulated_shared + at, &poison, 4);
}

}  // namespace

template <class T>
void Machine::apply_order(std::vector<T>& items) {
  if (order_ == Order::reverse) std::reverse(items.begin(), items.end());
  if (order_ == Order::shuffled) std::shuffle(items.begin(), items.end(), *random_);
}

void Machine::run(const Kernel& kernel, Order order, Random& random) {
  kernel_ = &kernel;
  order_ = order;
  random_ = &random;
  fault_.clear();
  gridDim = kernel.grid;
  blockDim = kernel.block;
  std::vector<std::uint64_t> blocks(std::uint64_t{kernel.grid.x} * kernel.grid.y * kernel.grid.z);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = i;
  apply_order(blocks);
  try {
    kernel.cooperative ? run_together(blocks) : run_alone(blocks);
  } catch (...) {
    drop_threads();
    throw;
  }
}

void Machine::begin(Block& block, std::uint64_t index) {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  block.index = index_in(gridDim, index);
  block.threads.resize(count);
  block.warps.assign((count + kWarp - 1) / kWarp, {});
  if (count % kWarp != 0) block.warps.back().exited = ~0u << count % kWarp;
  block.arrived = block.predicates = block.done = 0;
  for (unsigned t = 0; t < count; ++t) {
    block.threads[t].number = t;
    block.threads[t].index = index_in(blockDim, t);
    block.threads[t].done = block.threads[t].waiting = false;
    released_.push_back(&block.threads[t]);
  }
  release(block, released_);
}

void Machine::run_alone(const std::vector<std::uint64_t>& blocks) {
  if (blocks_.empty()) blocks_.push_back(std::make_unique<Block>());
  Block& block = *blocks_[0];
  for (const std::uint64_t index : blocks) {
    begin(block, index);
    poison_shared();
    enter(block);
    if (block.done < block.threads.size()) report_deadlock({&block});
  }
}

void Machine::run_together(const std::vector<std::uint64_t>& blocks) {
  while (blocks_.size() < blocks.size()) blocks_.push_back(std::make_unique<Block>());
  std::vector<Block*> running;
  poison_shared();
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    running.push_back(blocks_[b].get());
    begin(*running[b], blocks[b]);
    running[b]->shared.assign(__start_emulated_shared, __stop_emulated_shared);
  }
  at_grid_ = 0;
  std::size_t done = 0;
  while (done < running.size()) {
    bool moved = false;
    for (Block* block : running) {
      if (block->ready.empty()) continue;
      moved = true;
      std::copy(block->shared.begin(), block->shared.end(), __start_emulated_shared);
      enter(*block);
      block->shared.assign(__start_emulated_shared, __stop_emulated_shared);
      if (block->done == block->threads.size()) ++done;
    }
    if (at_grid_ == running.size() * blocks_[0]->threads.size()) {
      for (Block* block : running) {
        for (Thread& thread : block->threads) released_.push_back(&thread);
        release(*block, released_);
      }
      at_grid_ = 0;
      moved = true;
    }
    if (!moved) report_deadlock(running);
  }
}

/// Runs the block until each of its threads waits or has finished.
void Machine::enter(Block& block) {
  block_ = &block;
  blockIdx = block.index;
  run_next(main_);
  if (!fault_.empty()) throw Fault(fault_);
}

/// Adds a stack to run threads on.
void Machine::add_worker() {
  workers_.push_back(std::make_unique<Worker>());
  Worker& worker = *workers_.back();
  worker.fiber = Fiber(std::allocator_arg, Stacks{}, [this, &worker](Fiber&& from) {
    *suspended = std::move(from);
    work(worker);
    return Fiber{};
  });
  idle_.push_back(&worker);
}

/// Runs one thread after the other from its start to its end.
void Machine::work(Worker& self) {
  for (;;) {
    try {
      kernel_->thread();
    } catch (const Fault& fault) {
      fault_ = fault.what();
    }
    thread_->done = true;
    ++block_->done;
    block_->warps[thread_->number / kWarp].exited |= 1u << thread_->number % kWarp;
    if (!block_->ready.empty() && !block_->ready.back()->waiting && fault_.empty()) {  // no need to switch stacks
      select_next();
      continue;
    }
    idle_.push_back(&self);
    run_next(self.fiber);
  }
}

/// Makes threads ready in the order of the device, before those that are ready already, so that warps run as far ahead
/// of each other as synchronisation allows. Empties `threads`.
void Machine::release(Block& block, std::vector<Thread*>& threads) {
  apply_order(threads);
  block.ready.insert(block.ready.end(), threads.rbegin(), threads.rend());
  threads.clear();
}

std::string Machine::text_of(const Thread& thread) const {
  std::string text = "thread " + std::to_string(thread.number);
  if (thread.done) return text + " has exited";
  if (!thread.waiting) return text + " runs";
  const std::string file = thread.where.file;
  return text + " at " + file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(thread.where.line);
}

/// No thread can continue: reports where threads wait, one thread per source line, and which have exited.
void Machine::report_deadlock(const std::vector<Block*>& blocks) {
  std::string text = "threads wait for threads that never arrive";
  for (const Block* block : blocks) {
    std::vector<std::string> seen;
    for (const Thread& thread : block->threads) {
      const std::string place = thread.done ? "left" : std::to_string(thread.where.line);
      if (std::find(seen.begin(), seen.end(), place) != seen.end()) continue;
      seen.push_back(place);
      text += "; block " + emulated::text_of(block->index) + ": " + text_of(thread);
    }
  }
  throw Fault(text);
}

/// Discards the threads of a faulty launch.
void Machine::drop_threads() {
  for (const auto& block : blocks_) {
    block->threads.clear();
    block->ready.clear();
  }
  released_.clear();
}

void run_kernel(const Kernel& kernel, Order order, Random& random) { machine.run(kernel, order, random); }

}  // namespace emulated
