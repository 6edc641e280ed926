#include "net/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

namespace monarch::net {
namespace {

base::Error system_error(const char* what, std::size_t size, int number) {
  return {base::Code::kSystem, std::string(what) + " of " + std::to_string(size) +
                                   " bytes of shared memory: " + std::strerror(number)};
}

#if defined(__linux__)
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14; older headers lack it
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

int open_memfd() noexcept { return ::memfd_create("monarch", MFD_CLOEXEC | MFD_ALLOW_SEALING); }
#endif

int open_named() {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 16; ++attempt) {
    // 31 characters at most: what macOS allows.
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "/monarch-%ld-%u", static_cast<long>(::getpid()),
                  counter.fetch_add(1, std::memory_order_relaxed));
#if defined(__linux__)
    // What shm_open does there, without the library that older systems have it in.
    const std::string path = "/dev/shm" + std::string(name.data());
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) ::unlink(path.c_str());
#else
    const int fd = ::shm_open(name.data(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0) ::shm_unlink(name.data());
#endif
    if (fd >= 0) return fd;
    if (errno != EEXIST) return -1;
  }
  return -1;
}

int open_file(Backing backing, bool& sealable) {
  sealable = false;
#if defined(__linux__)
  if (backing == Backing::kBest) {
    const int fd = open_memfd();
    sealable = fd >= 0;
    if (fd >= 0 || errno != ENOSYS) return fd;
  }
#else
  (void)backing;
#endif
  return open_named();
}

#if defined(__linux__)
constexpr std::size_t kLarge = std::size_t{32} << 20;

// Bytes that can still be had, as far as the system says; read only before large allocations.
std::size_t available_memory() noexcept {
  std::size_t available = std::numeric_limits<std::size_t>::max();
  std::FILE* const file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return available;
  std::array<char, 128> line{};
  std::size_t kib = 0;
  while (std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr) {
    if (std::sscanf(line.data(), "MemAvailable: %zu", &kib) == 1) {
      available = kib * 1024;
      break;
    }
  }
  std::fclose(file);
  return available;
}
#endif

bool fits(std::size_t size) noexcept {
  return size <= static_cast<std::size_t>(std::numeric_limits<off_t>::max());
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Pages::~Pages() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

base::Result<Descriptor> make_shared(std::size_t size, Backing backing) {
  if (!fits(size)) return system_error("allocation", size, EFBIG);
  bool sealable = false;
  Descriptor file(open_file(backing, sealable));
  if (file.get() < 0) return system_error("allocation", size, errno);
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return system_error("allocation", size, errno);
  }
#if defined(__linux__)
  if (sealable && ::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return system_error("sealing", size, errno);
  }
#endif
  return file;
}

base::Result<void> reserve(const Descriptor& file, const Pages& pages, std::size_t from,
                           std::size_t to) {
#if defined(__APPLE__)
  // Its shared memory takes no write(2), and it overcommits: touching is all there is.
  (void)file;
  for (std::size_t at = from; at < to; at += page_size()) {
    *const_cast<volatile std::byte*>(pages.data() + at) = std::byte{0};
  }
  return {};
#else
  // write(2) reports exhaustion as an error, and costs half of what faulting the pages in does.
  // No error says that a machine is about to run out of memory: it ends some process instead.
  (void)pages;
#if defined(__linux__)
  if (to - from >= kLarge && to - from > available_memory() / 2) {
    return system_error("allocation", to, ENOMEM);
  }
#endif
  static const std::array<std::byte, 1 << 16> zeros{};
  while (from < to) {
    const std::size_t count = std::min(zeros.size(), to - from);
    const ssize_t done = ::pwrite(file.get(), zeros.data(), count, static_cast<off_t>(from));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return system_error("allocation", to, done == 0 ? ENOSPC : errno);
    from += static_cast<std::size_t>(done);
  }
  return {};
#endif
}

base::Result<Pages> map_shared(const Descriptor& file, std::size_t size) {
  void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return system_error("mapping", size, errno);
  return Pages(static_cast<std::byte*>(data), size);
}

void populate(const Pages& pages, std::size_t from, std::size_t to) noexcept {
#if defined(__linux__)
  if (from < to) ::madvise(pages.data() + from, to - from, kPopulateWrite);
#else
  (void)pages, (void)from, (void)to;
#endif
}

base::Result<void> check_shared(const Descriptor& file, std::size_t size) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("inspection", size, errno);
  if (status.st_size < 0 || static_cast<std::size_t>(status.st_size) < size) {
    return base::Error{base::Code::kMalformed,
                       "the peer announced " + std::to_string(size) +
                           " bytes of shared memory, but its descriptor holds " +
                           std::to_string(status.st_size)};
  }
#if defined(__linux__)
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals >= 0 && (seals & kSeals) != kSeals) {
    // An unsealed file in /dev/shm answers with F_SEAL_SEAL alone: nothing can be sealed there.
    if (seals != F_SEAL_SEAL) {
      return base::Error{base::Code::kMalformed, "the peer's shared memory may shrink under us"};
    }
  }
#endif
  return {};
}

}  // namespace monarch::net
