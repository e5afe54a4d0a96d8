// SPDX-License-Identifier: Apache-2.0
// Backend: one device, one stream, one workspace, and the kernels that run there. Method and replay code compose
// kernels through it and hold only opaque buffers, so the same source serves every device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvbench/kernels/operations.hpp>
#include <kvbench/kernels/uploader.hpp>

namespace kvbench {

/// Memory of a device beside the host's, in bytes.
struct DeviceMemory {
  std::size_t limit = 0;  ///< what this process can use: what it holds and what is free
  std::size_t held = 0;   ///< by all backends of this process together
  std::size_t peak = 0;   ///< the most that was held at once
};

/// Device memory is short. what() is a whole sentence.
class OutOfDeviceMemory : public std::bad_alloc {
 public:
  OutOfDeviceMemory(std::size_t asked, DeviceMemory memory, std::string message)
      : asked_(asked), memory_(memory), message_(std::make_shared<const std::string>(std::move(message))) {}
  const char* what() const noexcept override { return message_->c_str(); }
  std::size_t asked() const { return asked_; }
  const DeviceMemory& memory() const { return memory_; }

 private:
  std::size_t asked_;
  DeviceMemory memory_;
  std::shared_ptr<const std::string> message_;  // shared: copying an exception must not throw
};

/// The contents of a buffer on the host: in place where the buffer is in host memory, else a copy. They stay valid as
/// long as the view exists.
template <class T>
class HostView {
 public:
  HostView() = default;
  /// Takes ownership of a vector.
  explicit HostView(std::vector<T> values) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    data_ = owner->data();
    size_ = owner->size();
    storage_ = std::move(owner);
  }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  friend bool operator==(const HostView& a, const HostView& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  friend class Backend;
  HostView(std::shared_ptr<const void> storage, const T* data, std::size_t size)
      : storage_(std::move(storage)), data_(data), size_(size) {}

  std::shared_ptr<const void> storage_;
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Used by one thread at a time. Kernels may run asynchronously; only read() and on_host() wait for them.
class Backend {
 public:
  virtual ~Backend() = default;
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual std::string_view device() const = 0;                        ///< "ref", "cpu" or "cuda"
  virtual std::string name() const { return std::string(device()); }  ///< for people: names the model of a GPU too
  virtual std::string_view isa() const = 0;  ///< instruction set in use: "scalar", "avx2", "avx512", "sm_90", ...

  /// Absent where kernels work in the host's memory.
  virtual std::optional<DeviceMemory> memory() const { return std::nullopt; }

  /// Uninitialised storage of rows x cols elements. Throws std::bad_alloc where memory is short, OutOfDeviceMemory
  /// where it is the device's.
  template <class T>
  Buffer<T> allocate(Index rows, Index cols = 1) {
    const std::size_t bytes = static_cast<std::size_t>(rows * cols) * sizeof(T);
    auto storage = metered(allocate_bytes(bytes), bytes);
    T* data = static_cast<T*>(storage.get());
    return kernels::BufferAccess::make<T>(std::move(storage), data, rows, cols);
  }

  /// Moves host data to where this backend computes (no copy on the host backends). data.size() == rows * cols.
  template <class T>
  Buffer<T> adopt(std::vector<T> data, Index rows, Index cols = 1) {
    assert(static_cast<Index>(data.size()) == rows * cols);
    auto owner = std::make_shared<std::vector<T>>(std::move(data));
    T* host = owner->data();
    const std::size_t bytes = owner->size() * sizeof(T);
    auto [storage, address] = adopt_bytes(std::shared_ptr<void>(owner, host), bytes);
    return kernels::BufferAccess::make<T>(metered(std::move(storage), bytes), static_cast<T*>(address), rows, cols);
  }

  /// Copies arrays to this back end from other threads while it computes.
  virtual std::shared_ptr<Uploader> make_uploader() const = 0;

  /// An array uploaded to the same device, as a buffer; size() == rows * cols.
  template <class T>
  Buffer<T> adopt(Uploaded<T> array, Index rows, Index cols = 1) {
    assert(array.present() && array.size() == rows * cols);
    receive(array.storage_);
    auto storage = metered(std::move(array.storage_), static_cast<std::size_t>(array.size_) * sizeof(T));
    return kernels::BufferAccess::make<T>(std::move(storage), static_cast<T*>(array.data_), rows, cols);
  }

  /// Copies a buffer to the host after everything queued before has finished.
  template <class T>
  std::vector<std::remove_const_t<T>> read(const Buffer<T>& buffer) {
    const auto view = kernels::BufferAccess::view<kernels::Space::host>(buffer);
    if (in_host_memory()) return {view.data, view.data + buffer.size()};
    std::vector<std::remove_const_t<T>> out(static_cast<std::size_t>(buffer.size()));
    if (!out.empty()) read_bytes(view.data, out.size() * sizeof(T), out.data());
    return out;
  }

  /// The same without a copy where kernels work in the host's memory: for large arrays that no kernel writes any more.
  template <class T>
  HostView<std::remove_const_t<T>> on_host(const Buffer<T>& buffer) {
    if (in_host_memory()) {
      const auto view = kernels::BufferAccess::view<kernels::Space::host>(buffer);
      return {std::make_shared<const Buffer<T>>(buffer), view.data, static_cast<std::size_t>(buffer.size())};
    }
    auto copy = std::make_shared<const std::vector<std::remove_const_t<T>>>(read(buffer));
    return {copy, copy->data(), copy->size()};
  }

  /// A state for a best match of `points` rows of `columns` columns that is repeated on this back end alone
  /// (kernels::BestMatch::state). Null where the back end keeps nothing between calls.
  virtual std::shared_ptr<kernels::MatchState> make_match_state(Index /*points*/, Index /*columns*/) { return nullptr; }

  template <class T>
  void fill(Buffer<T>& buffer, T value) {
    static_assert(sizeof(T) == 4);
    std::uint32_t pattern;
    std::memcpy(&pattern, &value, 4);
    const auto view = kernels::BufferAccess::view<kernels::Space::host>(buffer);
    fill_words(view.data, static_cast<std::size_t>(buffer.size()), pattern);
  }

  /// Runs one kernel; arguments are documented at the operation's struct. Adds its declared cost to cost().
  template <template <template <class> class> class Op>
  void run(const Op<Buffer>& op) {
    // Whole numbers: the difference of two sums must not depend on what a thread had counted before.
    const Cost declared = kernels::cost(op);
    cost_ += {std::nearbyint(declared.flops), std::nearbyint(declared.bytes)};
    execute(&op);
  }

  /// Work declared by the kernels run so far.
  Cost cost() const { return cost_; }

  /// Bytes of the buffers that this backend made and that are still held.
  std::size_t held_bytes() const { return meter_->held; }
  /// The most that were held at once since the last start_peak().
  std::size_t peak_bytes() const { return meter_->peak; }
  void start_peak() { meter_->peak = meter_->held; }

 protected:
  /// Whether buffers can be read where they are as soon as run() has returned.
  virtual bool in_host_memory() const = 0;
  virtual std::shared_ptr<void> allocate_bytes(std::size_t bytes) = 0;
  virtual std::pair<std::shared_ptr<void>, void*> adopt_bytes(std::shared_ptr<void> host, std::size_t bytes) = 0;
  /// Makes uploaded memory usable by this back end's kernels.
  virtual void receive(const std::shared_ptr<void>& /*storage*/) {}
  virtual void read_bytes(const void* from, std::size_t bytes, void* to) = 0;
  virtual void fill_words(void* to, std::size_t words, std::uint32_t pattern) = 0;

  virtual void execute(kernels::Operations::Pointer op) = 0;

 private:
  struct Meter {
    std::size_t held = 0, peak = 0;
  };

  /// The same storage, counted until its last handle is gone.
  std::shared_ptr<void> metered(std::shared_ptr<void> storage, std::size_t bytes) {
    meter_->held += bytes;
    meter_->peak = meter_->peak < meter_->held ? meter_->held : meter_->peak;
    void* address = storage.get();
    return {address, [storage = std::move(storage), meter = meter_, bytes](void*) { meter->held -= bytes; }};
  }

  Cost cost_;
  std::shared_ptr<Meter> meter_ = std::make_shared<Meter>();
};

enum class Isa { scalar, avx2, avx512 };

/// The best instruction set that this build holds and this processor runs.
Isa best_isa();
bool isa_available(Isa isa);
std::string_view name_of(Isa isa);

/// The serial reference: never optimised, the oracle of every test.
std::unique_ptr<Backend> make_ref_backend();
/// When searches exclude most candidates by bounds from products of 8-bit integers before they compute in fp32. Results
/// are identical to the bit. `always` is for tests: it includes searches that become slower.
enum class Prefilter { off, where_it_pays, always };
/// Whether the kernels of an instruction set have prefilters: those of AVX2, and those of AVX-512 on processors with
/// AVX512-VNNI. Elsewhere the setting has no effect.
bool prefilter_available(Isa isa);

/// Fast host kernels, single-threaded. isa_available(isa) must hold.
std::unique_ptr<Backend> make_cpu_backend(Isa isa = best_isa(), Prefilter prefilter = Prefilter::where_it_pays);
/// CUDA kernels on the current device. They are in a module, libkvbench_cuda.so, which is loaded at the first call.
/// Throws std::runtime_error naming the reason where the module is missing or no device can be used.
std::unique_ptr<Backend> make_cuda_backend();
/// Why make_cuda_backend() would throw, as a clause ("no NVIDIA driver is installed"); empty where a device is usable.
std::string cuda_unusable();
inline bool cuda_available() { return cuda_unusable().empty(); }

}  // namespace kvbench
