import pytest

from nightshift.books.shares import zipf_shares


@pytest.mark.parametrize(
    ("total", "parts", "at_least"), [(400, 40, 1), (60, 40, 0), (240, 40, 0), (7, 7, 1), (0, 3, 0)]
)
def test_shares_add_up_fall_and_leave_nobody_short(total: int, parts: int, at_least: int) -> None:
    shares = zipf_shares(total, parts, at_least=at_least)
    assert sum(shares) == total
    assert len(shares) == parts
    assert list(shares) == sorted(shares, reverse=True)
    assert shares[-1] >= at_least


def test_the_largest_has_twice_the_second_as_zipf_says() -> None:
    shares = zipf_shares(100_000, 40)
    assert shares[0] / shares[1] == pytest.approx(2**1.1, rel=0.01)
    assert shares[0] / shares[9] == pytest.approx(10**1.1, rel=0.01)


@pytest.mark.parametrize(("total", "parts"), [(3, 4), (1, 0)])
def test_too_little_for_all_is_refused(total: int, parts: int) -> None:
    with pytest.raises(ValueError, match="cannot be split"):
        zipf_shares(total, parts, at_least=1)
