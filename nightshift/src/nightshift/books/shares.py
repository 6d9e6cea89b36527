"""Splits a number of things over tenants as customers are: a few large ones, many small ones."""

from collections.abc import Sequence

ZIPF_EXPONENT = 1.1


def zipf_shares(total: int, parts: int, *, at_least: int = 0) -> tuple[int, ...]:
    """Split `total` things over `parts` owners by Zipf's law with exponent 1.1, the largest first.

    Args:
        total: How many things; at least `parts * at_least`.
        parts: How many owners, one or more.
        at_least: What every owner has in any case.

    Returns:
        `parts` counts that add up to `total`, never rising.

    Raises:
        ValueError: there is too little to give every owner its least.
    """
    free = total - parts * at_least
    if parts < 1 or free < 0:
        raise ValueError(
            f"{total} cannot be split over {parts} with {at_least} each; ask for more things or fewer tenants"
        )
    weights = [rank**-ZIPF_EXPONENT for rank in range(1, parts + 1)]
    return tuple(at_least + share for share in _apportioned(free, weights))


def _apportioned(total: int, weights: Sequence[float]) -> list[int]:
    """Round quotas to whole numbers by largest remainders (Hamilton's method)."""
    quotas = [total * weight / sum(weights) for weight in weights]
    shares = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(quotas)), key=lambda i: (shares[i] - quotas[i], i))
    for index in by_remainder[: total - sum(shares)]:
        shares[index] += 1
    return sorted(shares, reverse=True)
