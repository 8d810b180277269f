"""Near texts are found, with the Jaccard index that one works out by hand."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from deliberation.nearness import (
    NearIndex,
    NearPair,
    bands_for,
    jaccard,
    passage_shingles,
    skeleton_shingles,
    skeleton_words,
    word_shingles,
    words,
)

FIRST_FILLING = (
    "Maria Lopez, a nurse in Lima, has learned that her colleague Pedro has been stealing drugs "
    "for six months. If Maria tells the director, Pedro will lose the licence and may never "
    "practise again. If Maria says nothing, the patients could suffer and others will pay for it. "
    "Pedro has asked for a second chance and promises to stop. The decision must be made before "
    "Monday."
)
SECOND_FILLING = (
    "Tom, a senior site engineer in the north of Norway, has learned that his foreman has been "
    "faking the load tests for a whole year. If Tom tells the board, the foreman will lose his job "
    "and may never build again. If Tom says nothing, the new bridge could fail and others will pay "
    "for it. The foreman has asked for time and promises to repeat every test. The decision must "
    "be made before the opening."
)
INDEPENDENT = (
    "For four generations the widow Ayşe's orchard has shaded the only footpath between the school "
    "and the well. Surveyors now say that roots have lifted the cistern wall, and repairs would "
    "swallow what the village set aside for a teacher. Nobody wants to fell trees that people were "
    "married under, yet two mothers refuse to let their children walk by until somebody decides."
)


class TestShingles:
    def test_two_short_texts_have_the_index_worked_out_by_hand(self) -> None:
        """Shingles abcde bcdef cdefg, and bcdef cdefg defgh: two of four are shared."""
        first, second = word_shingles("a b c d e f g"), word_shingles("b c d e f g h")
        assert (len(first), len(second)) == (3, 3)
        assert jaccard(first, second) == 2 / 4

    def test_case_punctuation_and_layout_do_not_count(self) -> None:
        plain = word_shingles("the old man went home again")
        assert jaccard(plain, word_shingles("The old man --\n went “home”, again!")) == 1.0

    def test_a_text_of_fewer_than_five_words_is_one_shingle(self) -> None:
        assert len(word_shingles("two words")) == 1
        assert jaccard(word_shingles("two words"), word_shingles("two other")) == 0.0

    def test_texts_without_words_are_near_to_nothing(self) -> None:
        assert len(word_shingles(" … ")) == 0
        assert jaccard(word_shingles(""), word_shingles("")) == 0.0

    def test_shingles_of_a_passage_do_not_reach_from_text_to_text(self) -> None:
        one = set(passage_shingles(["a b c d e f", "g h i j"]).tolist())
        assert one == set(word_shingles("a b c d e f").tolist())
        assert len(passage_shingles(["a b", "c d", "e f"])) == 0

    def test_texts_without_spaces_are_cut_into_characters(self) -> None:
        japanese = "町の図書館は来年閉まると市長が言いました。"
        assert words(japanese)[:4] == ["町", "の", "図", "書"]
        changed = japanese.replace("来年", "今年")
        assert 0.3 < jaccard(word_shingles(japanese), word_shingles(changed)) < 1.0
        assert len(passage_shingles([japanese, japanese])) == len(word_shingles(japanese))

    def test_korean_and_long_german_words_stay_words(self) -> None:
        assert words("도서관은 내년에 문을 닫습니다.") == ["도서관은", "내년에", "문을", "닫습니다"]
        german = "Die Landesversicherungsanstalt lehnt den Antrag ab."
        assert words(german)[1] == "landesversicherungsanstalt"

    def test_shingles_are_the_same_in_every_process(self) -> None:
        code = (
            "from deliberation.nearness import word_shingles as w; print(w('a b c d e f').tolist())"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == str(word_shingles("a b c d e f").tolist())


class TestSkeletons:
    def test_names_numbers_and_content_words_are_masked_as_phrases(self) -> None:
        told = "In Lima the 12 old nurses of the ward told Maria that nothing will change."
        assert skeleton_words(told) == ["in", "_", "told", "_", "that", "nothing", "will", "_", "."]

    def test_fillings_of_one_template_share_their_skeleton_and_not_their_words(self) -> None:
        skeletons = [skeleton_shingles(text) for text in (FIRST_FILLING, SECOND_FILLING)]
        assert jaccard(*skeletons) > 0.5
        assert jaccard(word_shingles(FIRST_FILLING), word_shingles(SECOND_FILLING)) < 0.25

    def test_texts_written_independently_are_far_apart(self) -> None:
        for filling in (FIRST_FILLING, SECOND_FILLING):
            assert jaccard(skeleton_shingles(filling), skeleton_shingles(INDEPENDENT)) < 0.1

    def test_another_language_has_no_skeleton(self) -> None:
        german = "Die Stadt will das alte Bad schließen, weil das Geld für die Heizung fehlt."
        assert skeleton_words(german) == []
        assert len(skeleton_shingles(german)) == 0


class TestBands:
    @pytest.mark.parametrize("threshold", [0.05, 0.1, 0.25, 0.5, 0.8, 0.99])
    def test_a_pair_at_the_threshold_is_found_with_the_chance_asked_for(
        self, threshold: float
    ) -> None:
        bands, rows = bands_for(threshold)
        assert 1 - (1 - threshold**rows) ** bands >= 0.99

    def test_bands_for_the_two_limits_are_those_worked_out_by_hand(self) -> None:
        """log 0.01 / log(1 - 1/16) = 71.4 and log 0.01 / log(1 - 1/8) = 34.5."""
        assert bands_for(0.25) == (72, 2)
        assert bands_for(0.5) == (35, 3)

    def test_equal_texts_need_one_band(self) -> None:
        assert bands_for(1.0)[0] == 1


def random_text(source: random.Random, count: int = 80) -> list[str]:
    return [f"w{source.randrange(10_000)}" for _ in range(count)]


class TestIndex:
    def test_at_least_99_in_a_hundred_planted_pairs_are_found(self) -> None:
        """Every pair above the limit, in an order of its own; the oracle compares all."""
        source = random.Random(3)
        texts = []
        for _ in range(600):
            original = random_text(source)
            copy = [f"x{source.randrange(9999)}" if source.random() < 0.12 else w for w in original]
            texts += [" ".join(original), " ".join(copy)]
        index = NearIndex(0.25)
        for place, text in enumerate(texts):
            index.add(str(place), text)
        sets = [word_shingles(text) for text in texts]
        wanted = {
            (place, place + 1): value
            for place in range(0, len(texts), 2)
            if (value := jaccard(sets[place], sets[place + 1])) > 0.25
        }
        found = {(int(pair.first), int(pair.second)): pair.jaccard for pair in index.pairs()}
        assert 300 < len(wanted) < 600
        assert set(found) <= set(wanted)
        assert len(found) >= 0.99 * len(wanted)
        assert all(value == pytest.approx(wanted[pair]) for pair, value in found.items())

    def test_what_is_at_the_threshold_is_not_above_it(self) -> None:
        for threshold, pairs in ((0.5, 0), (0.49, 1)):
            index = NearIndex(threshold)
            index.add("first", "a b c d e f g")
            index.add("second", "b c d e f g h")
            assert len(index.pairs()) == pairs

    def test_a_new_text_is_told_its_nearest(self) -> None:
        index = NearIndex(0.2)
        assert index.nearest("a b c d e f g") is None
        index.add("far", "q r s t u v w")
        index.add("near", "a b c d e f g h i")
        index.add("nearer", "a b c d e f g h")
        near = index.nearest("a b c d e f g")
        assert near is not None
        assert (near.id, near.jaccard) == ("nearer", 3 / 4)
        assert index.nearest("k l m n o p q") is None
        index.add("equal", "a b c d e f g")
        assert index.nearest("a b c d e f g").id == "equal"  # type: ignore[union-attr]
        assert len(index) == 4

    def test_pairs_stand_in_the_order_of_their_texts(self) -> None:
        index = NearIndex(0.9)
        for id in ("one", "two", "three"):
            index.add(id, "the same five words here")
        assert index.pairs() == [
            NearPair("one", "two", 1.0),
            NearPair("one", "three", 1.0),
            NearPair("two", "three", 1.0),
        ]

    def test_a_text_without_shingles_is_not_taken(self) -> None:
        index = NearIndex(0.5)
        assert not index.add("empty", "…")
        assert index.nearest("…") is None
        assert index.pairs() == []

    @pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5])
    def test_a_threshold_that_means_nothing_is_refused(self, threshold: float) -> None:
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            NearIndex(threshold)

    def test_a_set_of_copies_stays_small_and_names_every_text(self) -> None:
        """3,000 copies have 4.5 million pairs; some are enough, as long as all texts are in one."""
        index = NearIndex(0.5)
        for place in range(3000):
            index.add(str(place), f"these words are the same in all of them but {place}")
        pairs = index.pairs()
        assert {id for pair in pairs for id in (pair.first, pair.second)} == set(
            map(str, range(3000))
        )
        assert len(pairs) < 100 * 3000
