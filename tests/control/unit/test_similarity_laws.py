"""Near-identical texts are found, others are not, whatever words they are made of."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.control.similarity import ALIKE, bands, likeness, name_skeleton, signature, skeleton

words = st.lists(
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9),
    min_size=60,
    max_size=200,
    unique=True,
)


@given(words, st.randoms())
def test_order_of_texts_case_and_numbers_change_nothing(
    found: list[str], order: random.Random
) -> None:
    texts = [" ".join(found[at : at + 10]) for at in range(0, len(found), 10)]
    mixed = [f"{text.upper()} 17 https://x.example/{at}" for at, text in enumerate(texts)]
    order.shuffle(mixed)
    assert signature(mixed) == signature(texts)


@given(words)
@settings(max_examples=50)
def test_a_copy_with_one_word_in_sixty_changed_shares_a_band(found: list[str]) -> None:
    changed = list(found)
    changed[len(found) // 2] = "qqqqqqqqqqqq"
    one, other = signature([" ".join(found)]), signature([" ".join(changed)])
    assert likeness(one, other) > ALIKE - 0.15
    assert set(bands(one)) & set(bands(other))


@given(words)
@settings(max_examples=50)
def test_other_words_are_not_alike(found: list[str]) -> None:
    other = [word[::-1] + "z" for word in found]
    assert likeness(signature([" ".join(found)]), signature([" ".join(other)])) < 0.5


@given(st.text(max_size=400))
def test_any_text_has_a_signature_of_one_size_or_none(text: str) -> None:
    assert len(signature([text])) in {0, 512}
    assert likeness(signature([text]), signature([text])) in {0.0, 1.0}


@given(st.text(max_size=60))
def test_a_skeleton_is_its_own_skeleton(text: str) -> None:
    assert skeleton(skeleton(text)) == skeleton(text)


@given(st.text(max_size=500))
def test_skeletons_of_names_have_a_bound(name: str) -> None:
    assert len(name_skeleton(name)) <= 200
