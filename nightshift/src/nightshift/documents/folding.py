"""Brings words into one form in which they can be compared, whatever the till or the reader made of them."""

import re

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "é": "e", "è": "e"})
_LEGAL_FORM = re.compile(r"\b(?:gmbh|mbh|ag|kg|kgaa|ohg|gbr|ug|e\s?k|e\s?v|haftungsbeschraenkt|co|inh)\b(?!\s*-)")
_NO_WORD = re.compile(r"[^a-z0-9]+")


def fold(text: str) -> str:
    """Fold to lower case ASCII words, one space apart: "Café GROSS & Söhne" is "cafe gross soehne"."""
    return _NO_WORD.sub(" ", text.casefold().translate(_UMLAUTS)).strip()


def has_legal_form(text: str) -> bool:
    """Tell whether a firm's legal form stands in the text (GmbH, KG, e.K. and the like)."""
    return _LEGAL_FORM.search(fold(text)) is not None


def fold_vendor(name: str) -> str:
    """Fold a firm's name without its legal form and without spaces, for comparison only."""
    folded = fold(name)
    bare = _LEGAL_FORM.sub(" ", folded)
    return (bare if bare.strip() else folded).replace(" ", "")
