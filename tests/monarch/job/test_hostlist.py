"""Compact host lists, as schedulers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._job.hostlist import LIMIT, expand


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", "a"),
        (" a , b ", "a b"),
        pytest.param(
            "nodeA,nodeB[001,003],nodeC",
            "nodeA nodeB001 nodeB003 nodeC",
            marks=pytest.mark.report("106"),
        ),
        pytest.param(
            "rack[0-1]_blade[0-1]",
            "rack0_blade0 rack0_blade1 rack1_blade0 rack1_blade1",
            marks=pytest.mark.report("107"),
        ),
        pytest.param("c1001a-s[11,17]", "c1001a-s11 c1001a-s17", marks=pytest.mark.report("108")),
        pytest.param(
            "host[001,003-004,006]",
            "host001 host003 host004 host006",
            marks=pytest.mark.report("109"),
        ),
        pytest.param("n[08-11]", "n08 n09 n10 n11", marks=pytest.mark.report("109")),
        pytest.param(
            "ml-16-node-[001-002,004],ml-17-node-[001-003]",
            "ml-16-node-001 ml-16-node-002 ml-16-node-004 "
            "ml-17-node-001 ml-17-node-002 ml-17-node-003",
            marks=pytest.mark.report("110"),
        ),
        ("n[9-11]", "n9 n10 n11"),
        ("[1-2]x", "1x 2x"),
        ("a[1-2].b[3]", "a1.b3 a2.b3"),
        ("n[1]", "n1"),
        ("n1,n1", "n1 n1"),
    ],
)
def test_a_list_is_expanded_in_its_order(text, hosts):
    assert expand(text) == hosts.split()


@pytest.mark.report("110")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n[1-2", "do not pair"),
        ("n1-2]", "do not pair"),
        ("n[[1-2]]", "do not pair"),
        ("n]1[", "do not pair"),
        ("", "it is empty"),
        ("a,,b", "a host is missing"),
        ("a,", "a host is missing"),
        ("n[]", "needs numbers"),
        ("n[1,]", "needs numbers"),
        ("n[a-b]", "needs numbers"),
        ("n[1-2-3]", "needs numbers"),
        ("n[-1]", "needs numbers"),
        ("n[3-1]", "lower to a higher"),
        ("n[1-08]", "lower to a higher"),
        ("a b", "has a space"),
        (f"n[0-{LIMIT}]", "more than"),
        ("a[0-999]b[0-999]", "more than"),
        ("n[0-99999999999999999999]", "more than"),
        pytest.param(f"n[{'1' * 9999}]", "needs numbers", id="long"),
        ("n[²]", "needs numbers"),
    ],
)
def test_text_that_is_no_list_is_refused_with_the_text(text, why):
    with pytest.raises(ValueError, match=why) as caught:
        expand(text)
    assert repr(text)[:100] in str(caught.value)


@given(st.text(alphabet="an[]0123456789,- ", max_size=24))
def test_any_text_is_a_list_or_refused(text):
    try:
        hosts = expand(text)
    except ValueError as error:
        assert repr(text) in str(error)  # noqa: PT017 - either way is right
    else:
        assert hosts
        assert all(host and not set(host) & set("[], ") for host in hosts)


@given(st.lists(st.integers(0, 9999), min_size=1, max_size=8), st.integers(1, 6))
def test_numbers_keep_their_width(numbers, width):
    names = [str(number).zfill(width) for number in numbers]
    assert expand(f"n[{','.join(names)}]") == [f"n{name}" for name in names]
