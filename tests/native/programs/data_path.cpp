// The native layer without Python and without kernels: compiled against the headers of any release
// and run over that release's stand-in.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "monarch/native/collectives.hpp"
#include "monarch/native/device.hpp"
#include "monarch/native/memory.hpp"
#include "monarch/native/runtime.hpp"
#include "monarch/native/virtual_memory.hpp"

namespace {

using namespace monarch::native;

void hold(bool condition, const char* what) {
  std::printf("%s: %s\n", condition ? "ok" : "FAILED", what);
  if (!condition) {
    std::exit(1);
  }
}

template <class T>
T need(Result<T> result, const char* what) {
  if (!result) {
    std::printf("FAILED: %s: %s: %s\n", what, result.error().context.c_str(),
                result.error().message.c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

void need(Status status, const char* what) {
  if (!status) {
    std::printf("FAILED: %s: %s: %s\n", what, status.error().context.c_str(),
                status.error().message.c_str());
    std::exit(1);
  }
}

void plain_memory() {
  Stream stream = need(Stream::create(0, 0), "a stream");
  Event event = need(Event::create(0, true), "an event");
  const Allocation memory = need(Allocation::create(0, 4096), "memory");
  const Allocation other = need(Allocation::create(1, 4096), "memory of another device");
  const std::string text = "through every copy";
  std::string back(text.size(), ' ');
  need(copy_to_device(0, memory.address(), text.data(), text.size(), &stream), "copy to device");
  need(copy_on_device(0, other.address(), memory.address(), text.size(), &stream), "device copy");
  need(event.record(stream), "record");
  need(event.synchronize(), "wait");
  need(copy_to_host(1, back.data(), other.address(), back.size(), nullptr), "copy to host");
  hold(back == text, "bytes went through both devices");
  hold(need(event.query(), "query"), "an event that was waited for has happened");
  need(fill(0, memory.address(), 0x2A, 4096, nullptr), "fill");
  need(copy_to_host(0, back.data(), memory.address() + 4000, back.size(), nullptr), "copy back");
  hold(back == std::string(back.size(), 0x2A), "memory was filled");
}

void shared_memory() {
  const std::size_t page = need(virtual_memory_granularity(0), "granularity");
  PhysicalMemory memory = need(PhysicalMemory::create(0, page), "physical memory");
  const int descriptor = need(memory.export_descriptor(), "export");
  PhysicalMemory again =
      need(PhysicalMemory::import_descriptor(1, descriptor, page), "import of the descriptor");
  close(descriptor);
  AddressRange first = need(AddressRange::reserve(0, page, 0), "addresses");
  AddressRange second = need(AddressRange::reserve(1, page, 0), "more addresses");
  need(first.map(0, memory), "map");
  need(first.set_access(0, page, 0), "access");
  need(second.map(0, again), "map of the import");
  need(second.set_access(0, page, 1), "access of the import");
  const std::string text = "one memory";
  std::string back(text.size(), ' ');
  need(copy_to_device(0, first.address() + 100, text.data(), text.size(), nullptr), "write");
  need(copy_to_host(1, back.data(), second.address() + 100, back.size(), nullptr), "read");
  hold(back == text, "exporter and importer see one memory");
}

void dma_buffer() {
  const Allocation memory = need(Allocation::create(0, 8192), "memory");
  const Result<DmaBuffer> buffer = export_dma_buffer(0, memory.address(), 8192);
  if (!buffer) {
    std::printf("no dma-buf: %s\n", buffer.error().message.c_str());
    return;
  }
  struct stat about {};
  hold(fstat(buffer.value().descriptor, &about) == 0 && about.st_size >= 8192, "dma-buf");
  close(buffer.value().descriptor);
}

void collectives() {
  const CollectivesInfo info = need(open_collectives({}), "the collectives library");
  std::printf("collectives %d\n", info.version);
  const UniqueId id = need(make_unique_id(), "an id");
  Communicator alone = need(Communicator::create(0, id, 0, 1), "a communicator");
  Stream stream = need(Stream::create(0, 0), "a stream");
  const Allocation memory = need(Allocation::create(0, 64), "memory");
  need(alone.all_reduce(memory.address(), memory.address(), 16, DType::float32, Reduction::sum,
                        stream),
       "all-reduce");
  need(stream.synchronize(), "wait");
  need(alone.async_error(), "health");
}

}  // namespace

int main() {
  const RuntimeVersions versions = need(runtime_versions(), "versions");
  std::printf("%s %d %d\n", std::string(platform_name()).c_str(), versions.compiled,
              versions.runtime);
  hold(need(device_count(), "count") == 2, "two devices");
  hold(need(device_info(1), "device 1").pci_bus_id == "0000:11:00.0", "the second by its address");
  plain_memory();
  shared_memory();
  dma_buffer();
  collectives();
  return 0;
}
