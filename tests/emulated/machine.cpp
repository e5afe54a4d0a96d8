// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "fibers.hpp"

uint3 threadIdx = {}, blockIdx = {};
dim3 blockDim, gridDim;

// The shared memory of all kernels; absent in a program without any.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern char __start_emulated_shared[];
[[gnu::weak, gnu::visibility("hidden")]] extern char __stop_emulated_shared[];
}

namespace emulated {

namespace {

constexpr unsigned kWarp = 32;

struct Thread {
  Place place;  // empty: it has not begun, or it runs
  std::uint64_t bits = 0;
  Where where;
  unsigned mask = 0;
  int from = 0;
  unsigned number = 0;
  uint3 index = {};
  Meeting meeting = Meeting::barrier;
  bool done = false, waiting = false;
};

struct Warp {
  unsigned arrived = 0, gone = 0;
};

struct Block {
  uint3 index = {};
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Thread*> ready;  // the last one comes first
  unsigned arrived = 0, predicates = 0, done = 0;
  std::vector<char> shared;  // while another block runs
};

class Machine {
 public:
  void run(const Kernel& kernel, Order order, Random& random);

  int meet_block(Meeting kind, bool predicate, Where where);
  std::uint64_t meet_warp(Meeting kind, unsigned mask, std::uint64_t bits, int from, Where where);
  void meet_grid(Where where);

 private:
  struct Worker {
    Place place;
  };

  void begin(Block& block, std::uint64_t index);
  void run_alone(const std::vector<std::uint64_t>& blocks);
  void run_together(const std::vector<std::uint64_t>& blocks);
  void enter(Block& block);
  void wait(Thread& thread, Meeting kind, Where where);
  [[gnu::always_inline]] void go_on(Place& here);
  void hire();
  void take_next();
  void release(Block& block, std::vector<Thread*>& threads);
  void work(Worker& self);
  void give_result_of_warp(unsigned first, unsigned mask);
  void abandon();
  [[noreturn]] void stuck(const std::vector<Block*>& blocks);
  std::string text_of(const Thread& thread) const;
  template <class T>
  void arrange(std::vector<T>& items);

  const Kernel* kernel_ = nullptr;
  Order order_ = Order::forward;
  Random* random_ = nullptr;
  Block* block_ = nullptr;  // the one that runs, and its thread
  Thread* thread_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Thread*> released_;
  unsigned at_grid_ = 0;
  std::string fault_;
  Place main_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
};

Machine machine;

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

inline void Machine::take_next() {
  thread_ = block_->ready.back();
  block_->ready.pop_back();
  threadIdx = thread_->index;
}

/// Switches to the next thread that can go on, or out of the block; returns when somebody switches to `here`.
inline void Machine::go_on(Place& here) {
  Place* to = &main_;
  if (!block_->ready.empty() && fault_.empty()) {
    take_next();
    to = &thread_->place;
    if (!thread_->waiting) {  // it has not begun
      if (idle_.empty()) hire();
      to = &idle_.back()->place;
      idle_.pop_back();
    }
  }
  if (to == &here) return;
  switch_to(*to, here);
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

void Machine::wait(Thread& thread, Meeting kind, Where where) {
  thread.waiting = true;
  thread.meeting = kind;
  thread.where = where;
}

/// Lets them go on in the order of the device, before those that could already: warps run as far ahead of each other as they
/// may. Empties `threads`.
void Machine::release(Block& block, std::vector<Thread*>& threads) {
  arrange(threads);
  block.ready.insert(block.ready.end(), threads.rbegin(), threads.rend());
  threads.clear();
}

int Machine::meet_block(Meeting kind, bool predicate, Where where) {
  Thread& self = *thread_;
  wait(self, kind, where);
  Block& block = *block_;
  block.predicates = predicate + (block.arrived == 0 ? 0 : block.predicates);
  if (++block.arrived == block.threads.size()) {
    for (Thread& thread : block.threads) {
      if (thread.meeting != kind || thread.where.line() != where.line() || thread.where.file_name() != where.file_name()) {
        throw Fault("threads of a block meet at different barriers: " + text_of(thread) + ", " + text_of(self));
      }
      thread.bits = block.predicates;
      released_.push_back(&thread);
    }
    block.arrived = 0;
    release(block, released_);
  }
  go_on(self.place);
  return static_cast<int>(self.bits);
}

std::uint64_t Machine::meet_warp(Meeting kind, unsigned mask, std::uint64_t bits, int from, Where where) {
  Thread& self = *thread_;
  wait(self, kind, where);
  self.mask = mask;
  self.bits = bits;
  self.from = from;
  Warp& warp = block_->warps[self.number / kWarp];
  const unsigned own = 1u << self.number % kWarp;
  if ((mask & own) == 0) throw Fault("a mask leaves out the lane that calls: " + text_of(self));
  if ((mask & warp.gone) != 0) {
    throw Fault("a mask names lane " + std::to_string(std::countr_zero(mask & warp.gone)) +
                ", which has left or never was: " + text_of(self));
  }
  warp.arrived |= own;
  if ((warp.arrived & mask) == mask) {
    warp.arrived &= ~mask;
    give_result_of_warp(self.number / kWarp * kWarp, mask);
  }
  go_on(self.place);
  return self.bits;
}

/// Gives each lane of the mask what it came for and lets it go on.
void Machine::give_result_of_warp(unsigned first, unsigned mask) {
  Thread* const lanes = &block_->threads[first];
  const Meeting meeting = lanes[std::countr_zero(mask)].meeting;
  std::uint64_t sent[kWarp];
  std::uint64_t ballot = 0;
  for (unsigned left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (lanes[lane].mask != mask || lanes[lane].meeting != meeting) {
      throw Fault("lanes of a warp meet at different calls: " + text_of(lanes[std::countr_zero(mask)]) + ", " +
                  text_of(lanes[lane]));
    }
    sent[lane] = lanes[lane].bits;
    ballot |= std::uint64_t{sent[lane] != 0} << lane;
  }
  constexpr std::uint64_t unknown = std::uint64_t{poison} << 32 | poison;
  // The last one pushed comes first. An odd step visits all lanes.
  unsigned at = order_ == Order::forward ? kWarp - 1 : order_ == Order::reverse ? 0 : (*random_)();
  const unsigned step = order_ == Order::forward ? ~0u : order_ == Order::reverse ? 1 : (*random_)() | 1u;
  for (unsigned i = 0; i < kWarp; ++i, at += step) {
    if ((mask >> at % kWarp & 1u) == 0) continue;
    Thread& lane = lanes[at % kWarp];
    if (meeting == Meeting::ballot) lane.bits = ballot;
    if (meeting == Meeting::shuffle) lane.bits = (mask >> lane.from & 1u) != 0 ? sent[lane.from] : unknown;
    block_->ready.push_back(&lane);
  }
}

void Machine::meet_grid(Where where) {
  Thread& self = *thread_;
  wait(self, Meeting::grid, where);
  if (!kernel_->cooperative) throw Fault("the grid meets in a launch that is not cooperative: " + text_of(self));
  ++at_grid_;
  go_on(self.place);
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

}  // namespace

void run_kernel(const Kernel& kernel, Order order, Random& random) { machine.run(kernel, order, random); }

int meet_block(Meeting kind, bool predicate, Where where) { return machine.meet_block(kind, predicate, where); }
std::uint64_t meet_warp(Meeting kind, unsigned mask, std::uint64_t bits, int from, Where where) {
  return machine.meet_warp(kind, mask, bits, from, where);
}
void meet_grid(Where where) { machine.meet_grid(where); }

}  // namespace emulated
