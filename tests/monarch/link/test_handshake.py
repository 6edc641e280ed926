"""The handshake: honest peers meet, and every other stream of bytes is refused."""

from __future__ import annotations

import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._link import handshake
from monarch._link.handshake import CLIENT, HOST, PROC, Dialer, HandshakeError, Listener
from monarch._link.secret import Secret
from monarch.errors import LinkError

_SECRET = Secret(b"a" * 32, "file a")
_OTHER = Secret(b"b" * 32, "file b")
_CHANNEL = b"unix \0monarch"
_DIALER, _LISTENER = 0x11, 0x22


def dialer(**changes):
    values = {"secret": _SECRET, "own": _DIALER, "channel": _CHANNEL, **changes}
    return Dialer(values.pop("secret"), values.pop("own"), values.pop("channel"), **values)


def listener(**changes):
    values = {"secret": _SECRET, "own": _LISTENER, "channel": _CHANNEL, **changes}
    return Listener(values.pop("secret"), values.pop("own"), values.pop("channel"), **values)


def meet(one, two):
    """Run both sides against each other; what the dialer and the listener sent."""
    sent = [one.start()], []
    sent[1].append(feed(two, sent[0][0]))
    sent[0].append(feed(one, sent[1][0]))
    assert feed(two, sent[0][1]) == b""
    sent[1].append(two.accept())
    assert feed(one, sent[1][1]) == b""
    return sent


def feed(side, data, piece=handshake.BUFFER):
    """Give a side its bytes as its `need` asks for them."""
    out = b""
    while data:
        size = min(side.need, piece, len(data))
        assert size, "bytes after the end"
        out += side.feed(data[:size])
        data = data[size:]
    return out


def test_two_of_one_secret_meet_and_know_each_other():
    one, two = dialer(peer=_LISTENER, role=CLIENT), listener(role=HOST, roles=frozenset({CLIENT}))
    meet(one, two)
    assert one.done
    assert two.done
    assert (one.peer, one.peer_role) == (_LISTENER, HOST)
    assert (two.peer, two.peer_role) == (_DIALER, CLIENT)
    assert one.need == two.need == 0


def test_who_listens_may_be_unknown():
    one = dialer()
    meet(one, listener())
    assert one.peer == _LISTENER


def test_bytes_may_come_one_by_one():
    one, two = dialer(), listener()
    challenge = feed(two, one.start(), 1)
    feed(two, feed(one, challenge, 1), 1)
    feed(one, two.accept(), 1)
    assert one.done


def test_nothing_is_read_beyond_the_handshake():
    """The engine's frames may follow at once; they must stay in the socket."""
    one, two = dialer(), listener()
    challenge = feed(two, one.start())
    feed(two, feed(one, challenge))
    stream = two.accept() + b"frames"
    taken = 0
    while one.need:
        size = one.need
        one.feed(stream[taken : taken + size])
        taken += size
    assert stream[taken:] == b"frames"


@pytest.mark.promise("X05")
def test_messages_do_not_carry_the_secret():
    sent = meet(dialer(), listener())
    assert not any(b"aaaa" in message for message in itertools.chain(*sent))


def test_no_message_is_longer_than_the_bound():
    assert max(len(m) for m in itertools.chain(*meet(dialer(), listener()))) <= handshake.BUFFER


def refused(action, *args):
    with pytest.raises(HandshakeError) as caught:
        action(*args)
    return caught.value


def test_another_secret_is_refused_by_the_dialer_before_it_proves_anything():
    one, two = dialer(), listener(secret=_OTHER)
    error = refused(feed, one, feed(two, one.start()))
    assert error.code == "secret"
    assert "file a" in str(error)
    told = refused(feed, two, error.farewell)
    assert told.code == "secret"
    assert "file b" in str(told)
    assert not two.proven


def test_another_secret_is_refused_by_the_listener():
    """A dialer that does not care for the listener's proof."""
    one, two = dialer(secret=_OTHER), listener()
    challenge = feed(two, one.start())
    forged = handshake._HEAD.pack(b"MNRL", 1, 3, PROC)
    forged += _OTHER.mac(handshake._DIALER, one._hello, challenge, forged)
    assert refused(feed, two, forged).code == "secret"
    assert not two.proven
    with pytest.raises(RuntimeError, match="proven"):
        two.accept()


@pytest.mark.parametrize(
    ("one", "two", "code"),
    [
        ({"channel": b"unix \0other"}, {}, "channel"),
        ({"peer": 0x99}, {}, "identity"),
        ({"own": _LISTENER}, {}, "identity"),
        ({"own": 0}, {}, "identity"),
        ({"role": CLIENT}, {"roles": frozenset({PROC})}, "role"),
    ],
)
def test_a_listener_refuses_who_wants_something_else(one, two, code):
    calling, called = dialer(**one), listener(**two)
    error = refused(feed, called, calling.start())
    assert error.code == code
    assert refused(feed, calling, error.farewell).code == code


@pytest.mark.parametrize("change", [{"peer": 0x33}, {"own": 0x44}])
def test_a_dialer_refuses_who_is_not_the_one_it_asked_for(change):
    """One that knows the secret, but answers for another proc or to another dialer."""
    one = dialer(peer=change.get("peer", 0))
    hello = one.start()
    honest = listener()
    challenge = feed(honest, hello[:16] + (0).to_bytes(8, "big") + hello[24:])
    head = challenge[:-32]
    if "own" in change:
        head = head[:16] + change["own"].to_bytes(8, "big") + head[24:]
    proven = head + _SECRET.mac(handshake._LISTENER, hello, head)
    assert refused(feed, one, proven).code == "identity"


def test_another_version_names_both():
    one = dialer()
    hello = one.start()
    error = refused(feed, listener(), hello[:4] + b"\x00\x07" + hello[6:])
    assert error.code == "version"
    assert "version 7" in str(error)
    assert "this is 1" in str(error)
    told = refused(feed, one, handshake._HEAD.pack(b"MNRL", 9, 5, 2))
    assert told.code == "version"
    assert "(9; this is 1)" in str(told)


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\xff" * 100])
def test_garbage_is_refused_at_its_eighth_byte(first):
    assert refused(listener().feed, first[:8]).code == "malformed"


def test_an_end_in_the_middle_is_told_as_one():
    side = listener()
    assert side.feed(b"MNR") == b""
    assert refused(side.feed, b"").code == "closed"


def test_more_than_was_asked_for_is_refused():
    assert refused(listener().feed, b"x" * 9).code == "malformed"


@pytest.mark.parametrize("code", [name for name, _ in handshake.REASONS.values()])
def test_every_reason_arrives(code):
    error = refused(feed, dialer(), handshake.refusal(code))
    assert error.code == code
    assert str(error).startswith("the other side ")


def test_an_unknown_reason_is_no_crash():
    assert "reason 77" in str(refused(feed, dialer(), handshake._HEAD.pack(b"MNRL", 1, 5, 77)))


def test_a_recorded_dialer_cannot_be_replayed():
    recorded, _ = meet(dialer(), listener())
    again = listener()
    feed(again, recorded[0])
    assert refused(feed, again, recorded[1]).code == "secret"


def test_a_recorded_listener_cannot_be_replayed():
    _, recorded = meet(dialer(), listener())
    one = dialer()
    one.start()
    assert refused(feed, one, recorded[0]).code == "secret"


def test_a_recorded_decision_cannot_be_spliced_in():
    _, recorded = meet(dialer(), listener())
    one, two = dialer(), listener()
    feed(one, feed(two, one.start()))
    assert refused(feed, one, recorded[1]).code == "secret"


def test_what_a_side_sent_cannot_be_reflected_to_it():
    one = dialer()
    assert refused(feed, one, one.start()).code == "malformed"
    two = listener()
    challenge = feed(two, dialer().start())
    assert refused(feed, two, challenge).code == "malformed"


def test_a_proof_of_one_side_is_none_of_the_other():
    """A stranger lets a listener prove itself, and offers that proof as its own."""
    one, two = dialer(), listener()
    challenge = feed(two, one.start())
    as_proof = handshake._HEAD.pack(b"MNRL", 1, 3, PROC) + challenge[-32:]
    assert refused(feed, two, as_proof).code == "secret"


def test_a_message_out_of_order_is_refused():
    one, two = dialer(), listener()
    hello = one.start()
    challenge = feed(two, hello)
    proof = feed(one, challenge)
    for message in (proof, challenge):
        assert refused(feed, listener(), message).code == "malformed"
    assert refused(feed, two, hello).code == "malformed"


def _streams():
    """Both streams of one run with fixed nonces, so that they repeat."""
    sent = meet(dialer(nonce=b"1" * 32), listener(nonce=b"2" * 32))
    return b"".join(sent[0]), b"".join(sent[1])


_FROM_DIALER, _FROM_LISTENER = _streams()


def _run(to_listener, data, piece):
    """Feed one side of the recorded run; whether it ends authenticated."""
    side = listener(nonce=b"2" * 32) if to_listener else dialer(nonce=b"1" * 32)
    if not to_listener:
        side.start()
    while data and side.need:
        size = min(side.need, piece)
        try:
            side.feed(data[:size])
        except HandshakeError:
            return False
        data = data[size:]
        assert len(side._buffer) < handshake.BUFFER
    return side.proven if to_listener else side.done


@pytest.mark.parametrize("to_listener", [True, False])
def test_the_recorded_run_ends_authenticated(to_listener):
    assert _run(to_listener, _FROM_DIALER if to_listener else _FROM_LISTENER, 88)


@pytest.mark.promise("R07")
@pytest.mark.parametrize("to_listener", [True, False])
def test_a_stream_cut_anywhere_never_authenticates(to_listener):
    whole = _FROM_DIALER if to_listener else _FROM_LISTENER
    for size in range(len(whole)):
        assert not _run(to_listener, whole[:size], 88)


@pytest.mark.promise("R07")
@pytest.mark.parametrize("to_listener", [True, False])
def test_a_stream_with_any_bit_flipped_never_authenticates(to_listener):
    whole = _FROM_DIALER if to_listener else _FROM_LISTENER
    for place, bit in itertools.product(range(len(whole)), range(8)):
        changed = bytearray(whole)
        changed[place] ^= 1 << bit
        assert not _run(to_listener, bytes(changed), 88), (place, bit)


@pytest.mark.promise("R07")
@given(st.booleans(), st.data(), st.integers(1, 88))
def test_an_edited_stream_never_authenticates(to_listener, data, piece):
    whole = _FROM_DIALER if to_listener else _FROM_LISTENER
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    changed = whole[:start] + data.draw(st.binary(max_size=100)) + whole[end:]
    if not changed.startswith(whole):
        assert not _run(to_listener, changed, piece)


@pytest.mark.promise("R07")
@given(st.booleans(), st.binary(max_size=300), st.integers(1, 88))
def test_random_bytes_never_authenticate(to_listener, data, piece):
    assert not _run(to_listener, data, piece)


def copied(error):
    return pickle.loads(pickle.dumps(error))  # noqa: S301 - made here


def test_its_errors_survive_pickling():
    error = copied(HandshakeError("secret", "text", b"bye"))
    assert (error.code, str(error), error.farewell) == ("secret", "text", b"bye")
    plain = copied(LinkError("full", "text"))
    assert (plain.code, str(plain)) == ("full", "text")
