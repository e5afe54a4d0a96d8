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
void Machine::arrange(std::vector<T>& items) {
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
  arrange(blocks);
  try {
    kernel.cooperative ? run_together(blocks) : run_alone(blocks);
  } catch (...) {
    abandon();
    throw;
  }
}

void Machine::begin(Block& block, std::uint64_t index) {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  block.index = index_in(gridDim, index);
  block.threads.resize(count);
  block.warps.assign((count + kWarp - 1) / kWarp, {});
  if (count % kWarp != 0) block.warps.back().gone = ~0u << count % kWarp;
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
    if (block.done < block.threads.size()) stuck({&block});
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
    if (!moved) stuck(running);
  }
}

/// Runs the block until none of its threads can go on.
void Machine::enter(Block& block) {
  block_ = &block;
  blockIdx = block.index;
  go_on(main_);
  if (!fault_.empty()) throw Fault(fault_);
}

/// One more stack to run threads on.
void Machine::hire() {
  workers_.push_back(std::make_unique<Worker>());
  Worker& worker = *workers_.back();
  worker.place = Place(std::allocator_arg, Stacks{}, [this, &worker](Place&& from) {
    *leaving = std::move(from);
    work(worker);
    return Place{};
  });
  idle_.push_back(&worker);
}

/// Runs threads from their begin, one after the other.
void Machine::work(Worker& self) {
  for (;;) {
    try {
      kernel_->thread();
    } catch (const Fault& fault) {
      fault_ = fault.what();
    }
    thread_->done = true;
    ++block_->done;
    block_->warps[thread_->number / kWarp].gone |= 1u << thread_->number % kWarp;
    if (!block_->ready.empty() && !block_->ready.back()->waiting && fault_.empty()) {  // no need to switch stacks
      take_next();
      continue;
    }
    idle_.push_back(&self);
    go_on(self.place);
  }
}

/// Lets them go on in the order of the device, before those that could already: warps run as far ahead of each other as they
/// may. Empties `threads`.
void Machine::release(Block& block, std::vector<Thread*>& threads) {
  arrange(threads);
  block.ready.insert(block.ready.end(), threads.rbegin(), threads.rend());
  threads.clear();
}

std::string Machine::text_of(const Thread& thread) const {
  std::string text = "thread " + std::to_string(thread.number);
  if (thread.done) return text + " has left";
  if (!thread.waiting) return text + " runs";
  const std::string file = thread.where.file_name();
  return text + " at " + file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(thread.where.line());
}

/// Nobody can go on: says who waits where, one thread for each place, and who has left.
void Machine::stuck(const std::vector<Block*>& blocks) {
  std::string text = "threads wait for others that never come";
  for (const Block* block : blocks) {
    std::vector<std::string> seen;
    for (const Thread& thread : block->threads) {
      const std::string place = thread.done ? "left" : std::to_string(thread.where.line());
      if (std::find(seen.begin(), seen.end(), place) != seen.end()) continue;
      seen.push_back(place);
      text += "; block " + emulated::text_of(block->index) + ": " + text_of(thread);
    }
  }
  throw Fault(text);
}

/// Drops the threads of a faulty launch, wherever they are.
void Machine::abandon() {
  for (const auto& block : blocks_) {
    block->threads.clear();
    block->ready.clear();
  }
  released_.clear();
}

void run_kernel(const Kernel& kernel, Order order, Random& random) { machine.run(kernel, order, random); }

}  // namespace emulated
