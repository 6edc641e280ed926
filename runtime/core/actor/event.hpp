// What the engine tells its user: what has happened, and who waits for whom.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actor/inbox.hpp"
#include "actor/mailbox.hpp"
#include "net/shared_memory.hpp"

namespace monarch::actor {

struct Event {
  enum class Kind {
    kLinkLost,
    kBroken,  // the connection of a session has ended: it is lost unless it is resumed soon
    kDial,
    kReadable,
    kWorker,
    kControl,
    kCancel,
    kStalled,
    kAlive,
    kReturned,  // `request` asked for no reply, and was not delivered to `peer`; `status` says why
    kStuck,  // a call by an actor (in `peer`) has been waited for over a second
    kWarning,
    kHandedOver,  // a connection, with what came with it in `payload`
  } kind;
  std::uint64_t peer = 0;  // or the token of kReadable
  double seconds = 0;
  std::string text = {};   // why a link was lost, or the warning
  Payload payload = {};
  std::shared_ptr<Request> request = {};
  Worker* worker = nullptr;
  std::uint8_t status = 0;
  std::shared_ptr<net::Descriptor> handed = {};
};

// An endpoint that holds its actor while it waits for answers of others, and for nothing else.
struct Awaited {
  std::uint64_t inbox = 0;
  std::uint32_t rank = 0;  // the first that has not answered
  bool by_thread = false;  // a thread is blocked for it
  std::vector<Token> tokens;  // of those that subscribed to it
  // Process and actor of each that has not answered; none where not all answers of a call are
  // waited for.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> missing;
};

struct Blocked {
  std::string running;
  std::string called;  // the endpoint that cannot begin, or is the one that waits
  std::vector<Awaited> awaited;
};

}  // namespace monarch::actor
