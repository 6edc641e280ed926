#include "sim/network.hpp"

#include <algorithm>
#include <memory>

namespace monarch::sim {
namespace {

constexpr Duration kSyn = seconds(1);  // between two tries to reach a host that does not answer

}  // namespace

bool Network::alive(Id id) const {
  const auto found = members_.find(id);
  return found != members_.end() && !found->second.dead;
}

bool Network::stopped(Id id) const { return members_.at(id).stopped; }

void Network::deliver(Id id, std::function<void()> what) {
  Member& member = members_.at(id);
  if (member.dead) return;
  if (member.stopped) {
    member.held.push_back(std::move(what));
  } else {
    what();
  }
}

void Network::later(Id id, Duration delay, std::function<void()> what) {
  world_.after(delay, [this, id, what = std::move(what)] { deliver(id, what); });
}

void Network::kill(Id id) {
  Member& member = members_.at(id);
  if (std::exchange(member.dead, true)) return;
  member.held.clear();
  const bool silent = dark_.contains(member.host);
  std::vector<Conn> own;
  for (const auto& [conn, connection] : connections_) {
    if (connection.ends[0] == id || connection.ends[1] == id) own.push_back(conn);
  }
  for (const Conn conn : own) {
    if (!silent) {
      close(conn, id);
    } else {
      Connection& connection = connections_.at(conn);
      connection.open[side_of(connection, id)] = false;
    }
  }
}

void Network::stop(Id id) { members_.at(id).stopped = true; }

void Network::go_on(Id id) {
  Member& member = members_.at(id);
  member.stopped = false;
  for (auto& what : std::exchange(member.held, {})) deliver(id, std::move(what));
}

void Network::power_off(Host host) {
  dark_.insert(host);
  std::vector<Id> there;
  for (const auto& [id, member] : members_) {
    if (member.host == host && !member.dead) there.push_back(id);
  }
  std::ranges::sort(there);
  for (const Id id : there) kill(id);
}

bool Network::is_far(const Connection& connection) const {
  return members_.at(connection.ends[0]).host != members_.at(connection.ends[1]).host;
}

bool Network::blocked(const Connection& connection, int side) const {
  const Host from = members_.at(connection.ends[side]).host;
  const Host to = members_.at(connection.ends[1 - side]).host;
  return is_cut(from, to) || dark_.contains(to) || dark_.contains(from);
}

Duration Network::delay(const Connection& connection) {
  return is_far(connection) ? world_.random.between(options_.far_least, options_.far_most)
                            : world_.random.between(options_.local_least, options_.local_most);
}

Conn Network::connect(Id from, Id to) {
  const Conn conn = next_++;
  Connection& connection = connections_[conn];
  connection.ends[0] = from;
  connection.ends[1] = to;
  connection.open[0] = true;
  world_.after(delay(connection), [this, conn] { knock(conn); });
  return conn;
}

void Network::knock(Conn conn) {
  const auto found = connections_.find(conn);
  if (found == connections_.end()) return;  // given up
  Connection& connection = found->second;
  if (blocked(connection, 0) || blocked(connection, 1)) {
    world_.after(kSyn, [this, conn] { knock(conn); });
    return;
  }
  const Id from = connection.ends[0];
  const Id to = connection.ends[1];
  if (!alive(to)) {
    forget(conn);
    world_.after(microseconds(50), [this, conn, from] {
      deliver(from, [this, conn, from] { members_.at(from).process->refused(conn); });
    });
    return;
  }
  connection.open[1] = true;
  deliver(to, [this, conn, to] {
    if (connections_.contains(conn)) members_.at(to).process->accepted(conn);
  });
  world_.after(delay(connection), [this, conn, from] {
    deliver(from, [this, conn, from] {
      if (connections_.contains(conn)) members_.at(from).process->connected(conn);
    });
  });
}

Instant Network::arrival(Connection& connection, int side, std::size_t size) {
  Way& way = connection.ways[side];
  Instant at = world_.now();
  if (options_.bytes_per_second != 0) {
    const Duration takes =
        options_.per_write +
        Duration(static_cast<std::int64_t>(size * 1'000'000'000 / options_.bytes_per_second));
    Member& from = members_.at(connection.ends[side]);
    Member& to = members_.at(connection.ends[1 - side]);
    from.sends = std::max(from.sends, at) + takes;
    to.takes = std::max(to.takes + takes, from.sends + delay(connection));
    at = to.takes;
  } else {
    at += delay(connection);
  }
  way.last = std::max(way.last, at);
  return way.last;
}

std::size_t Network::write(Conn conn, Id from, base::Bytes bytes) {
  const auto found = connections_.find(conn);
  if (found == connections_.end()) return bytes.size();
  Connection& connection = found->second;
  const int side = side_of(connection, from);
  Way& way = connection.ways[side];
  if (!connection.open[side] || way.fin) return bytes.size();  // the end is about to be heard of
  const std::size_t size = std::min(bytes.size(), options_.window - std::min(options_.window, way.bytes));
  way.full = size < bytes.size();
  if (size == 0) return 0;
  way.chunks.emplace_back(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  way.bytes += size;
  members_.at(from).traffic.bytes_out += size;
  world_.at(arrival(connection, side, size), [this, conn, side] { arrive(conn, side); });
  return size;
}

void Network::arrive(Conn conn, int side) {
  const auto found = connections_.find(conn);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  Way& way = connection.ways[side];
  if (way.stuck || way.chunks.empty()) return;
  if (blocked(connection, side)) {
    way.stuck = true;
    return;
  }
  const Id to = connection.ends[1 - side];
  auto chunk = std::make_shared<std::vector<std::byte>>(std::move(way.chunks.front()));
  way.chunks.pop_front();
  const auto take = [this, conn, side, to, chunk] {
    const auto there = connections_.find(conn);
    if (there == connections_.end() || !there->second.open[1 - side]) return;
    Way& own = there->second.ways[side];
    own.bytes -= chunk->size();
    const Id writer = there->second.ends[side];
    if (std::exchange(own.full, false)) {
      world_.after(microseconds(1), [this, conn, writer] {
        deliver(writer, [this, conn, writer] {
          if (connections_.contains(conn)) members_.at(writer).process->writable(conn);
        });
      });
    }
    members_.at(to).traffic.bytes_in += chunk->size();
    members_.at(to).process->received(conn, base::Bytes(*chunk));
    if (options_.repeat_bytes && world_.random.chance(5) && connections_.contains(conn) &&
        alive(to)) {
      members_.at(to).process->received(conn, base::Bytes(*chunk));
    }
  };
  if (alive(to) && connection.open[1 - side]) {
    deliver(to, take);
  } else {
    end_at(conn, side, delay(connection));  // nobody is there: the answer is a reset
  }
}

void Network::arrive_all(Conn conn, int side) {
  Connection& connection = connections_.at(conn);
  Way& way = connection.ways[side];
  way.stuck = false;
  for (std::size_t i = 0; i < way.chunks.size(); ++i) {
    world_.at(arrival(connection, side, 0), [this, conn, side] { arrive(conn, side); });
  }
  if (way.fin) end_at(conn, 1 - side, milliseconds(3));
}

// The end `side` gets to know that the connection is over.
void Network::end_at(Conn conn, int side, Duration delay) {
  world_.after(delay, [this, conn, side] {
    const auto found = connections_.find(conn);
    if (found == connections_.end() || !found->second.open[side]) return;
    if (blocked(found->second, 1 - side)) return;  // it comes when the cut is healed
    const Id id = found->second.ends[side];
    deliver(id, [this, conn, side, id] {
      const auto there = connections_.find(conn);
      if (there == connections_.end() || !there->second.open[side]) return;
      there->second.open[side] = false;
      if (!there->second.open[1 - side]) forget(conn);
      members_.at(id).process->ended(conn);
    });
  });
}

void Network::close(Conn conn, Id from) {
  const auto found = connections_.find(conn);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  const int side = side_of(connection, from);
  connection.open[side] = false;
  connection.ways[side].fin = true;
  if (!connection.open[1 - side]) {
    forget(conn);
    return;
  }
  // After what was written before.
  const Instant last = std::max(connection.ways[side].last, world_.now());
  end_at(conn, 1 - side, last - world_.now() + delay(connection));
}

void Network::reset(Conn conn) {
  const auto found = connections_.find(conn);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  for (const int side : {0, 1}) {
    Way& way = connection.ways[side];
    way.fin = true;
    std::size_t left = 0;
    for (const auto& chunk : way.chunks) left += chunk.size();
    left = world_.random.below(left + 1);
    for (auto chunk = way.chunks.begin(); chunk != way.chunks.end(); ++chunk) {
      if (left >= chunk->size()) {
        left -= chunk->size();
        continue;
      }
      chunk->resize(left);
      way.chunks.erase(left == 0 ? chunk : std::next(chunk), way.chunks.end());
      break;
    }
    const Instant last = std::max(way.last, world_.now());
    end_at(conn, 1 - side, last - world_.now() + delay(connection));
  }
}

std::vector<Conn> Network::between_hosts() const {
  std::vector<Conn> found;
  for (const auto& [conn, connection] : connections_) {
    if (connection.open[0] && connection.open[1] && is_far(connection)) found.push_back(conn);
  }
  return found;
}

void Network::heal(Host from, Host to) {
  if (cuts_.erase({from, to}) == 0) return;
  std::vector<std::pair<Conn, int>> waiting;
  for (const auto& [conn, connection] : connections_) {
    for (const int side : {0, 1}) {
      if (members_.at(connection.ends[side]).host == from &&
          members_.at(connection.ends[1 - side]).host == to) {
        waiting.emplace_back(conn, side);
      }
    }
  }
  for (const auto& [conn, side] : waiting) arrive_all(conn, side);
}

void Network::forget(Conn conn) { connections_.erase(conn); }

}  // namespace monarch::sim
