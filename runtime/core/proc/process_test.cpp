#include "proc/process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

namespace proc = monarch::proc;

namespace {

bool open_now(int fd) { return fcntl(fd, F_GETFD) != -1; }

}  // namespace

TEST_CASE("a range of descriptors is closed, its ends included, and nothing beside it") {
  std::array<int, 4> fds{};
  for (int& fd : fds) {
    const int source = open("/dev/null", O_RDONLY);
    fd = fcntl(source, F_DUPFD, 900 + static_cast<int>(&fd - fds.data()));
    close(source);
  }
  REQUIRE(fds[3] == fds[0] + 3);
  CHECK(proc::close_range(static_cast<unsigned>(fds[1]), static_cast<unsigned>(fds[2])) == 0);
  CHECK(open_now(fds[0]));
  CHECK_FALSE(open_now(fds[1]));
  CHECK_FALSE(open_now(fds[2]));
  CHECK(open_now(fds[3]));
  close(fds[0]);
  close(fds[3]);
}

TEST_CASE("a range that ends before it starts is refused") {
  CHECK(proc::close_range(5, 4) == -EINVAL);
}

TEST_CASE("threads are counted, this one included") {
  const int before = proc::count_threads();
  CHECK(before >= 1);
  int during = 0;
  std::thread([&] { during = proc::count_threads(); }).join();
  CHECK(during == before + 1);
}

TEST_CASE("memory bound to no node, or to one that cannot be, is refused") {
  CHECK(proc::bind_memory({}) < 0);
  const std::array<std::uint32_t, 1> absurd{1U << 20};
  CHECK(proc::bind_memory(absurd) < 0);
}

#ifdef __linux__

TEST_CASE("a pidfd tells the end of its process and reaches no other") {
  std::array<int, 2> gate{};
  REQUIRE(pipe(gate.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(gate[1]);
    (void)!read(gate[0], &byte, 1);
    _exit(0);
  }
  close(gate[0]);
  const int pidfd = proc::open_pidfd(child);
  REQUIRE(pidfd >= 0);
  CHECK((fcntl(pidfd, F_GETFD) & FD_CLOEXEC) != 0);
  pollfd waiting{pidfd, POLLIN, 0};
  CHECK(poll(&waiting, 1, 0) == 0);
  CHECK(proc::signal_pidfd(pidfd, SIGKILL) == 0);
  CHECK(poll(&waiting, 1, 5000) == 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(proc::signal_pidfd(pidfd, SIGKILL) == -ESRCH);
  close(pidfd);
  close(gate[1]);
}

TEST_CASE("a pidfd of a process that does not exist is an error") {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(proc::open_pidfd(child) == -ESRCH);
}

TEST_CASE("orphans of a subreaper become its children, and a death signal follows the parent") {
  // A helper process is the subreaper, so that the test process stays as it is.
  const pid_t helper = fork();
  if (helper == 0) {
    if (proc::become_subreaper() != 0) _exit(10);
    std::array<int, 2> ready{};
    if (pipe(ready.data()) != 0) _exit(11);
    const pid_t middle = fork();
    if (middle == 0) {
      const pid_t last = fork();
      if (last == 0) {
        if (proc::set_parent_death_signal(SIGKILL) != 0) _exit(12);
        (void)!write(ready[1], "x", 1);
        for (;;) pause();
      }
      char byte = 0;
      (void)!read(ready[0], &byte, 1);
      _exit(0);
    }
    if (waitpid(middle, nullptr, 0) != middle) _exit(13);
    int status = 0;
    const pid_t orphan = waitpid(-1, &status, 0);
    _exit(orphan > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 14);
  }
  int status = 0;
  REQUIRE(waitpid(helper, &status, 0) == helper);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

#endif

TEST_CASE("a request that this system cannot serve is named") {
#if defined(__linux__)
  CHECK(proc::open_pidfd(-1) == -EINVAL);
#else
  CHECK(proc::set_parent_death_signal(SIGKILL) == -ENOTSUP);
  CHECK(proc::become_subreaper() == -ENOTSUP);
  CHECK(proc::open_pidfd(1) == -ENOTSUP);
  CHECK(proc::signal_pidfd(0, SIGKILL) == -ENOTSUP);
#endif
}
