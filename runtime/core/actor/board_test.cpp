#include "actor/board.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "actor/engine_world.hpp"

using monarch::actor::Board;
using monarch::base::Instant;

namespace {

// A file of one page, and the page as a reader maps it.
class Page {
 public:
  Page() : file_(std::tmpfile()) {
    REQUIRE(file_ != nullptr);
    REQUIRE(ftruncate(fd(), Board::k_size) == 0);
    at_ = mmap(nullptr, Board::k_size, PROT_READ, MAP_SHARED, fd(), 0);
    REQUIRE(at_ != MAP_FAILED);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() {
    munmap(at_, Board::k_size);
    std::fclose(file_);
  }

  [[nodiscard]] int fd() const { return fileno(file_); }
  [[nodiscard]] std::vector<Board::Entry> read() const {
    return Board::read({static_cast<const std::byte*>(at_), Board::k_size});
  }

 private:
  std::FILE* file_;
  void* at_ = nullptr;
};

Instant at(int seconds) { return Instant(std::chrono::seconds(seconds)); }

}  // namespace

TEST_CASE("what is being handled is read from outside, oldest first, and gone when it is over") {
  const Page page;
  Board board(page.fd());
  REQUIRE(board.mapped());
  CHECK(page.read().empty());
  const int first = board.enter(7, "train_step", at(2));
  const int second = board.enter(8, "load", at(1));
  auto entries = page.read();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].endpoint == "load");
  CHECK(entries[0].actor == 8);
  CHECK(entries[1].endpoint == "train_step");
  CHECK(entries[1].since == at(2));
  board.leave(second);
  entries = page.read();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].actor == 7);
  board.leave(first);
  CHECK(page.read().empty());
}

TEST_CASE("a long name is cut and a shorter one in its place is whole") {
  const Page page;
  Board board(page.fd());
  const int line = board.enter(1, std::string(1000, 'x'), at(1));
  CHECK(page.read().at(0).endpoint == std::string(Board::k_line - 17, 'x'));
  board.leave(line);
  CHECK(board.enter(1, "ab", at(1)) == line);
  CHECK(page.read().at(0).endpoint == "ab");
}

TEST_CASE("more entries than lines are left out and harm nothing") {
  const Page page;
  Board board(page.fd());
  for (int i = 0; i < Board::k_lines; ++i) CHECK(board.enter(1, "a", at(1)) == i);
  CHECK(board.enter(1, "b", at(1)) == Board::k_none);
  board.leave(Board::k_none);
  CHECK(page.read().size() == Board::k_lines);
  board.leave(5);
  CHECK(board.enter(1, "c", at(1)) == 5);
}

TEST_CASE("without a page nothing is kept") {
  Board none;
  CHECK_FALSE(none.mapped());
  CHECK(none.enter(1, "a", at(1)) == Board::k_none);
  const Page page;
  Board beyond(page.fd(), 1);
  CHECK_FALSE(beyond.mapped());
  Board bad(-1);
  CHECK_FALSE(bad.mapped());
  CHECK(bad.enter(1, "a", at(1)) == Board::k_none);
}

TEST_CASE("the page tells what ran in a process that was killed") {
  const Page page;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Board board(page.fd());
    static_cast<void>(board.enter(9, "train_step", at(3)));
    static_cast<void>(kill(getpid(), SIGKILL));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  const auto entries = page.read();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].actor == 9);
  CHECK(entries[0].endpoint == "train_step");
}

TEST_CASE("by the time an answer goes out, its call is told of no more") {
  namespace world = monarch::actor::world;
  const Page page;
  monarch::actor::Engine engine(1);
  monarch::actor::Worker& worker = engine.main_worker();
  engine.keep_board(page.fd(), 0);
  const auto targets = world::target(engine, 1, 7);
  world::create(engine, *targets);
  const auto taken = [&] {
    const auto work = engine.next_ready(worker);
    REQUIRE(work.has_value());
    REQUIRE(work->request != nullptr);
    return work->request;
  };
  engine.finish(taken());
  const auto inbox = world::call(engine, targets, "pid", "");
  const auto request = taken();
  REQUIRE(page.read().size() == 1);
  CHECK(page.read()[0].endpoint == "pid");
  REQUIRE(engine.reply(request, 0, {}, {}).ok());
  CHECK(page.read().empty());
  engine.finish(request);
}
