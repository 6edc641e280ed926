// What the kernel and the processor cost by themselves: sockets, processes and copies, no Python.
// `limit ping COUNT` times the AF_UNIX round trip; `limit all` everything. One line of JSON.

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kFrame = 64;
using Frame = std::array<char, kFrame>;

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(static_cast<double>(values.size()) * share);
  return values[std::min(values.size() - 1, at)];
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(5);
}

// Whole buffers; an end of file ends a child, which is how its parent stops it.
void receive(int fd, char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t got = read(fd, bytes, size);
    if (got <= 0) _exit(0);
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
}

void send(int fd, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t put = write(fd, bytes, size);
    if (put <= 0) _exit(0);
    bytes += put;
    size -= static_cast<std::size_t>(put);
  }
}

struct Child {
  int fd = -1;
  pid_t pid = -1;

  void stop() {
    close(fd);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

template <typename Body>
Child start(Body body) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("socketpair");
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    close(ends[0]);
    body(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  return {ends[0], pid};
}

void echo_frames(int fd) {
  Frame frame{};
  for (;;) {
    receive(fd, frame.data(), kFrame);
    send(fd, frame.data(), kFrame);
  }
}

std::string result;

void put(const std::string& name, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  result += (result.empty() ? "\"" : ", \"") + name + "\": " + text.data();
}

void ping(int count) {
  Child peer = start(echo_frames);
  Frame frame{};
  std::vector<double> taken;
  for (int at = -count / 10; at < count; ++at) {
    const double begin = now();
    send(peer.fd, frame.data(), kFrame);
    receive(peer.fd, frame.data(), kFrame);
    if (at >= 0) taken.push_back(now() - begin);
  }
  put("ping_us", percentile(taken, 0.5) * 1e6);
  put("ping_p99_us", percentile(taken, 0.99) * 1e6);
  peer.stop();
}

// One write a frame from this side; the other answers all that it read with one write.
void pipelined(std::size_t count) {
  Child peer = start([](int fd) {
    std::vector<char> bytes(65536);
    for (;;) {
      const ssize_t got = read(fd, bytes.data(), bytes.size());
      if (got <= 0) _exit(0);
      send(fd, bytes.data(), static_cast<std::size_t>(got));
    }
  });
  const double begin = now();
  std::thread reader([&] {
    std::vector<char> bytes(65536);
    for (std::size_t left = count * kFrame; left > 0;) {
      const ssize_t got = read(peer.fd, bytes.data(), std::min(left, bytes.size()));
      if (got <= 0) return;
      left -= static_cast<std::size_t>(got);
    }
  });
  const Frame frame{};
  for (std::size_t at = 0; at < count; ++at) send(peer.fd, frame.data(), kFrame);
  reader.join();
  put("pipelined_per_s", static_cast<double>(count) / (now() - begin));
  peer.stop();
}

void gather(int epoll, const std::vector<Child>& peers) {
  Frame frame{};
  for (const Child& peer : peers) send(peer.fd, frame.data(), kFrame);
  std::array<epoll_event, 64> events{};
  for (std::size_t answered = 0; answered < peers.size();) {
    const int ready = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int at = 0; at < ready; ++at) {
      receive(events[static_cast<std::size_t>(at)].data.fd, frame.data(), kFrame);
      ++answered;
    }
  }
}

void mesh(int size, int rounds) {
  const std::string name = "mesh" + std::to_string(size);
  const double begin = now();
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<Child> peers;
  for (int rank = 0; rank < size; ++rank) {
    peers.push_back(start(echo_frames));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = peers.back().fd;
    epoll_ctl(epoll, EPOLL_CTL_ADD, peers.back().fd, &event);
  }
  gather(epoll, peers);
  put(name + "_first_s", now() - begin);
  std::vector<double> taken;
  for (int round = 0; round < rounds; ++round) {
    const double start_of_round = now();
    gather(epoll, peers);
    taken.push_back(now() - start_of_round);
  }
  put(name + "_ms", percentile(taken, 0.5) * 1e3);
  const double killed = now();
  kill(peers[0].pid, SIGKILL);
  epoll_event event{};
  epoll_wait(epoll, &event, 1, 1000);
  put(name + "_death_ms", (now() - killed) * 1e3);
  for (Child& peer : peers) peer.stop();
  close(epoll);
}

void payload(const std::string& name, std::size_t size, int rounds) {
  Child peer = start([size](int fd) {
    std::vector<char> bytes(size);
    for (;;) {
      receive(fd, bytes.data(), size);
      send(fd, bytes.data(), size);
    }
  });
  std::vector<char> bytes(size, 1);
  std::vector<double> taken;
  for (int round = 0; round < rounds; ++round) {
    const double begin = now();
    send(peer.fd, bytes.data(), size);
    receive(peer.fd, bytes.data(), size);
    taken.push_back(now() - begin);
  }
  peer.stop();
  put(name + "_socket_mb_s", 2.0 * static_cast<double>(size) / percentile(taken, 0.5) / 1e6);

  const auto protection = PROT_READ | PROT_WRITE;
  void* mapped = mmap(nullptr, size, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail("mmap");
  std::memset(mapped, 1, size);
  taken.clear();
  for (int round = 0; round < rounds; ++round) {
    const double begin = now();
    std::memcpy(mapped, bytes.data(), size);
    std::memcpy(bytes.data(), mapped, size);
    taken.push_back(now() - begin);
  }
  munmap(mapped, size);
  put(name + "_shared_mb_s", 2.0 * static_cast<double>(size) / percentile(taken, 0.5) / 1e6);
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  if (what == "ping" && count == 3) {
    ping(std::max(10, std::atoi(words[2])));
  } else if (what == "all" && count == 2) {
    ping(20000);
    pipelined(200000);
    mesh(8, 1000);
    mesh(32, 300);
    payload("mib", 1U << 20U, 60);
    payload("mib64", 64U << 20U, 5);
  } else {
    std::fputs("usage: limit ping COUNT | limit all\n", stderr);
    return 2;
  }
  std::printf("{%s}\n", result.c_str());
  return 0;
}
