// Heap: first fit among free runs of pages; freed pages are punched out of the file.
#include "transport/shm/heap.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "syncopate/error.hpp"

namespace syncopate::transport::shm {

namespace {

constexpr std::uint64_t kPage = std::uint64_t{64} << 10;  // a multiple of every page size in use

bool is_limited(decltype(RLIMIT_AS) resource) noexcept {
  rlimit limit{};
  return ::getrlimit(resource, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

Mapping::Mapping(const socket::Descriptor& memory, std::uint64_t bytes) {
  if (bytes == 0) return;
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory.number(), 0);
  if (base == MAP_FAILED) refuse("map");
  bytes_ = {static_cast<std::byte*>(base), bytes};
  ::madvise(base, bytes, MADV_DONTDUMP);  // a core file would otherwise be as long as the machine's memory
  ::madvise(base, bytes, MADV_DONTFORK);
}

Mapping Mapping::again(std::uint64_t bytes) const {
  // The length 0 of the old mapping asks for a second one of shared pages, with the same advice.
  void* base = ::mremap(bytes_.data(), 0, bytes, MREMAP_MAYMOVE);
  if (base == MAP_FAILED) refuse("map");
  Mapping made;
  made.bytes_ = {static_cast<std::byte*>(base), bytes};
  return made;
}

Mapping::~Mapping() {
  if (!bytes_.empty() && !process_.is_inherited()) ::munmap(bytes_.data(), bytes_.size());
}

std::uint64_t Heap::affordable_bytes() noexcept {
  if (is_limited(RLIMIT_AS) || is_limited(RLIMIT_FSIZE)) return 0;
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return 0;
  return std::min(kMostHeap, static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) / kPage * kPage);
}

std::shared_ptr<Heap> Heap::of(std::uint64_t bytes) { return std::shared_ptr<Heap>(new Heap(bytes)); }

Heap::Heap(std::uint64_t bytes) : memory_(make_sealed(bytes)), mapping_(memory_, bytes) {
  if (bytes > 0) free_.emplace(0, bytes);
}

std::shared_ptr<std::byte[]> Heap::allocate(std::size_t bytes) {
  if (bytes > mapping_.bytes().size()) return nullptr;
  const std::uint64_t rounded = (std::max<std::uint64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  const auto place = reserve(rounded);
  if (!place) return nullptr;
  return {mapping_.bytes().data() + *place,
          [self = shared_from_this(), place = *place, rounded](std::byte*) { self->give_back(place, rounded); }};
}

std::optional<std::uint64_t> Heap::reserve(std::uint64_t bytes) {
  const base::Lock lock(mutex_);
  const auto found = std::ranges::find_if(free_, [&](const auto& run) { return run.second >= bytes; });
  if (found == free_.end()) return std::nullopt;
  const auto [place, length] = *found;
  free_.erase(found);
  if (length > bytes) free_.emplace(place + bytes, length - bytes);
  return place;
}

void Heap::give_back(std::uint64_t place, std::uint64_t bytes) noexcept {
  if (process_.is_inherited()) return;  // a forked child's copy of the owner: the pages are its parent's
  std::byte* pages = mapping_.bytes().data() + place;
  if (::madvise(pages, bytes, MADV_REMOVE) != 0) std::memset(pages, 0, bytes);
  const base::Lock lock(mutex_);
  auto run = free_.emplace(place, bytes).first;
  if (const auto next = std::next(run); next != free_.end() && place + bytes == next->first) {
    run->second += next->second;
    free_.erase(next);
  }
  if (run == free_.begin()) return;
  if (const auto before = std::prev(run); before->first + before->second == place) {
    before->second += run->second;
    free_.erase(run);
  }
}

std::optional<std::uint64_t> Heap::place_of(base::ConstBytes bytes) const noexcept {
  const base::Bytes all = mapping_.bytes();
  const std::less<const std::byte*> before;
  if (bytes.empty() || before(bytes.data(), all.data()) || before(all.data() + all.size(), bytes.data() + bytes.size()))
    return std::nullopt;
  return static_cast<std::uint64_t>(bytes.data() - all.data());
}

bool Heap::pass(const socket::Descriptor& socket) noexcept {
  if (!send_descriptor(socket, memory_)) return false;
  close_after(passes_left_ - 1);
  return true;
}

void Heap::close_after(std::size_t times) noexcept {
  passes_left_ = times;
  if (times == 0) memory_ = {};
}

PeerHeap PeerHeap::adopt(const socket::Descriptor& memory) {
  const std::uint64_t bytes = sealed_bytes(memory);
  return {Mapping(memory, std::min(bytes, kFirstMapping)), bytes};
}

base::Bytes PeerHeap::at(std::uint64_t place, std::uint64_t bytes) {
  if (bytes > bytes_ || place > bytes_ - bytes)
    throw Corrupt(fmt::format("{} bytes at {} are outside a heap of {}", bytes, place, bytes_));
  std::uint64_t length = mappings_.back().bytes().size();
  if (place + bytes > length) {
    while (length < place + bytes) length *= 2;
    mappings_.push_back(mappings_.back().again(std::min(length, bytes_)));
  }
  return mappings_.back().bytes().subspan(place, bytes);
}

}  // namespace syncopate::transport::shm
