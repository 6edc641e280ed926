#include "wire/message.hpp"

#include <string>

namespace monarch::wire {
namespace {

using base::Bytes;
using base::Code;
using base::Error;

template <typename Integer>
Integer take(Bytes& bytes) noexcept {
  const Bytes part = bytes.first(sizeof(Integer));
  bytes = bytes.subspan(sizeof(Integer));
  return base::load_little<Integer>(part);
}

std::string_view take_text(Bytes& bytes, std::size_t size) noexcept {
  const Bytes part = bytes.first(size);
  bytes = bytes.subspan(size);
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

Error too_short(std::string_view what, std::size_t size, std::size_t wanted) {
  return Error{Code::kMalformed, std::string(what) + " of " + std::to_string(size) +
                                     " bytes, wanted at least " + std::to_string(wanted)};
}

Error reserved(std::string_view what) {
  return Error{Code::kMalformed, std::string(what) + " with reserved bytes that are not zero"};
}

}  // namespace

void write_call(const Call& call, base::MutableBytes head) noexcept {
  base::LittleWriter out(head);
  out.put(call.actor);
  out.put(call.sender);
  out.put(call.reply_proc);
  out.put(call.inbox);
  out.put(call.rank);
  out.put(call.flags);
  out.put(static_cast<std::uint16_t>(call.endpoint.size()));
  out.put(static_cast<std::uint16_t>(call.extent.size()));
  out.put(std::uint16_t{0});
}

void write_reply(const Reply& reply, base::MutableBytes head) noexcept {
  base::LittleWriter out(head);
  out.put(reply.inbox);
  out.put(reply.rank);
  out.put(std::uint32_t{reply.status});
}

void write_cancel(const Cancel& cancel, base::MutableBytes head) noexcept {
  base::LittleWriter out(head);
  out.put(cancel.actor);
  out.put(cancel.inbox);
}

void write_credit(const Credit& credit, base::MutableBytes head) noexcept {
  base::LittleWriter out(head);
  out.put(credit.target);
  out.put(credit.bytes);
}

base::Result<Call> read_call(Bytes& message) {
  if (message.size() < k_call_head) return too_short("a call", message.size(), k_call_head);
  const std::size_t size = message.size();
  Call call;
  call.actor = take<std::uint64_t>(message);
  call.sender = take<std::uint64_t>(message);
  call.reply_proc = take<std::uint64_t>(message);
  call.inbox = take<std::uint64_t>(message);
  call.rank = take<std::uint32_t>(message);
  call.flags = take<std::uint16_t>(message);
  const std::size_t endpoint = take<std::uint16_t>(message);
  const std::size_t extent = take<std::uint16_t>(message);
  if (take<std::uint16_t>(message) != 0) return reserved("a call");
  if (message.size() < endpoint + extent) {
    return too_short("a call", size, k_call_head + endpoint + extent);
  }
  call.endpoint = take_text(message, endpoint);
  call.extent = take_text(message, extent);
  return call;
}

base::Result<Reply> read_reply(Bytes& message) {
  if (message.size() < k_reply_head) return too_short("a reply", message.size(), k_reply_head);
  Reply reply;
  reply.inbox = take<std::uint64_t>(message);
  reply.rank = take<std::uint32_t>(message);
  const auto status = take<std::uint32_t>(message);
  if (status > 0xFF) return reserved("a reply");
  reply.status = static_cast<std::uint8_t>(status);
  return reply;
}

base::Result<Cancel> read_cancel(Bytes& message) {
  if (message.size() < k_pair_head) return too_short("a cancel", message.size(), k_pair_head);
  Cancel cancel;
  cancel.actor = take<std::uint64_t>(message);
  cancel.inbox = take<std::uint64_t>(message);
  return cancel;
}

base::Result<Credit> read_credit(Bytes& message) {
  if (message.size() < k_pair_head) return too_short("a credit", message.size(), k_pair_head);
  Credit credit;
  credit.target = take<std::uint64_t>(message);
  credit.bytes = take<std::uint64_t>(message);
  return credit;
}

}  // namespace monarch::wire
