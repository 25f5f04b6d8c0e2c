"""What was put in comes out again while it is fresh and among the latest, and never after."""

from hypothesis import given
from hypothesis import strategies as st

from bythebook.ttl_cache import TTLCache

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5)),
        st.tuples(st.just("get"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.integers(1, 7)),
    ),
    max_size=60,
)


@given(steps=_STEPS, most=st.integers(1, 4))
def test_nothing_is_kept_too_long_nor_too_much(steps: list[tuple[str, int]], most: int) -> None:
    now, put_at = 0, {}
    recent: TTLCache[int, str] = TTLCache(most, fresh_s=10, clock=lambda: now)
    used: list[int] = []  # the latest last
    for number, (step, key) in enumerate(steps):
        if step == "wait":
            now += key
        elif step == "put":
            recent.put(key, f"{key} {number}")
            put_at[key] = now, number
            used = [*(one for one in used if one != key), key][-most:]
        else:
            fresh = key in used and now - put_at[key][0] < 10
            assert recent.get(key) == (f"{key} {put_at[key][1]}" if fresh else None)
            used = [one for one in used if one != key] + ([key] if fresh else [])
        assert len(recent) <= most
