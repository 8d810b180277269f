"""`check_data` finds what is wrong with a file, says where, and is silent about a file in order."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
from pathlib import Path

import pytest

from deliberation import DataLimits, UserError, check_data
from deliberation.dilemmas.check import with_limits
from deliberation.dilemmas.check.balance import word_count
from deliberation.errors import ConfigError, DataError
from tests.helpers.dilemma_rows import (
    checks,
    near_copy,
    only,
    own_row,
    own_rows,
    own_words,
    said,
    write_rows,
)
from tests.test_nearness import FIRST_FILLING, INDEPENDENT, SECOND_FILLING


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("sound"), own_rows(500))


class TestAFileInOrder:
    def test_nothing_is_found_and_every_check_ran(self, sound: Path) -> None:
        report = check_data([sound], against=[], complete=True)
        assert report.ok
        assert report.findings == ()
        skipped = {check.name: check.skipped for check in report.checks if check.skipped}
        assert skipped == {
            "near skeletons": "no row is English",
            "near embeddings": "no --embeddings model given",
        }
        (file,) = report.files
        assert (file.path, file.kind, file.rows) == (str(sound), "dilemmas", 500)

    def test_the_measured_figures_are_the_worst_of_the_file(self, sound: Path) -> None:
        found = checks(sound)
        assert found["shortest situation"].measured == found["longest situation"].measured == 70
        assert found["5-grams"].measured == found["sentences"].measured == 1
        assert found["classes"].measured == 0.334  # 167 of 500
        assert found["domains"].measured == found["openings"].measured == 1 / 500
        assert found["values"].measured == 16  # 1,000 places for 60 values: 40 have 17, 20 have 16
        assert found["near words"].measured is None

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no such file"):
            check_data([tmp_path / "none.jsonl"])


class TestBytes:
    """What the loader copes with is a warning; what it refuses is an error."""

    def test_a_byte_order_mark_is_a_warning_of_line_1(self, tmp_path: Path) -> None:
        """B88."""
        path = write_rows(tmp_path, own_rows(2))
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        report = check_data([path], against=[])
        assert said(only(report, "encoding")) == [
            ("warning", "1", "Starts with a byte order mark; save without it.")
        ]
        assert report.ok
        assert report.files[0].rows == 2

    def test_windows_and_blank_lines_are_warnings_with_their_first_line(
        self, tmp_path: Path
    ) -> None:
        """B90."""
        first, second = (json.dumps(row) for row in own_rows(2))
        path = tmp_path / "mine.jsonl"
        path.write_bytes(f"{first}\n\r\n   \r\n{second}\n".encode())
        found = checks(path)
        assert said(found["encoding"]) == [
            ("warning", "2", "2 lines are blank, this is the first; remove them."),
            ("warning", "2", "2 lines end with CR LF; save with LF line ends."),
        ]
        assert found["schema"].findings == ()

    @pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85"])
    def test_unusual_line_separators_are_warnings(self, tmp_path: Path, character: str) -> None:
        """B90."""
        rows = own_rows(3)
        rows[1]["title"] = f"one{character}two"
        path = tmp_path / "mine.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        ((severity, line, detail),) = said(checks(path)["encoding"])
        assert (severity, line) == ("warning", "2")
        assert detail.startswith(f"U+{ord(character):04X} stands in this line")

    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_rows_that_lack_fields_are_all_named_in_any_order(
        self, tmp_path: Path, order: tuple[int, ...]
    ) -> None:
        """B91: one lacks what must be there, one what a complete dilemma has."""
        rows = [own_row(0), own_row(1, situation=...), own_row(2, constraints=[], title=...)]
        path = write_rows(tmp_path, [rows[place] for place in order])
        found = checks(path)
        assert said(found["schema"]) == [
            ("error", str(order.index(1) + 1), 'Field "situation" is absent; add it.')
        ]
        lacking = ("warning", str(order.index(2) + 1), '"row-2" lacks title, constraints.')
        assert said(found["fields"]) == [lacking]
        as_error = checks(path, complete=True)["fields"]
        assert said(as_error) == [("error", *lacking[1:])]

    def test_a_shared_id_is_an_error_that_names_both_lines(self, tmp_path: Path) -> None:
        """B92."""
        path = write_rows(tmp_path, [own_row(0), own_row(1), own_row(2, id=" row-0")])
        assert said(checks(path)["ids"]) == [
            ("error", "3", 'Id "row-0" is already taken by line 1; give each row its own.')
        ]

    def test_the_ids_1_and_text_1_are_the_same_and_the_number_is_wrong(
        self, tmp_path: Path
    ) -> None:
        """B92."""
        found = checks(write_rows(tmp_path, [own_row(0, id=1), own_row(1, id="1")]))
        assert said(found["ids"]) == [
            ("error", "2", 'Id "1" is already taken by line 1; give each row its own.')
        ]
        assert said(found["schema"]) == [
            ("error", "1", 'Field "id" must be text, not the number 1; put it in quotes.')
        ]

    def test_every_line_that_is_not_utf8_is_named_and_the_others_are_read(
        self, tmp_path: Path
    ) -> None:
        """B93: the byte AC alone."""
        rows = [json.dumps(row).encode() for row in own_rows(3)]
        path = tmp_path / "mine.jsonl"
        path.write_bytes(b"\n".join([rows[0], b'{"id": "\xac"}', rows[1], b"\xac", rows[2]]))
        report = check_data([path], against=[])
        detail = "Not UTF-8 (byte AC); save the file again as UTF-8."
        assert said(only(report, "encoding")) == [("error", "2", detail), ("error", "4", detail)]
        assert report.files[0].rows == 3
        assert not report.ok

    @pytest.mark.parametrize("name", ["mine.jsonl", "mine.csv", "mine.yaml"])
    def test_gzip_under_a_wrong_name_is_one_error(self, tmp_path: Path, name: str) -> None:
        """B93."""
        path = tmp_path / name
        path.write_bytes(gzip.compress(json.dumps(own_row(0)).encode()))
        report = check_data([path], against=[])
        assert [f.detail for f in report.findings] == [
            "Looks gzipped, not text; unpack it first with gunzip."
        ]
        assert not report.ok

    @pytest.mark.parametrize("content", [b"", b"\n \n"])
    def test_an_empty_file_is_an_error(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "mine.jsonl"
        path.write_bytes(content)
        ((severity, _, detail),) = said(checks(path)["encoding"])
        assert (severity, detail) == ("error", "The file is empty; write its content.")


class TestRows:
    def test_all_bad_lines_are_reported_not_only_the_first(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.jsonl"
        rows = [json.dumps(row) for row in own_rows(2)]
        bad_value = json.dumps(own_row(7, values=["beauty", "fairnes"]))
        path.write_text("\n".join([rows[0], "{", "[1]", bad_value, '{"a": NaN}', rows[1]]))
        lines = [line for _, line, _ in said(checks(path)["schema"])]
        assert sorted(lines) == ["2", "3", "4", "5"]

    def test_an_unknown_key_is_one_warning(self, tmp_path: Path) -> None:
        rows = [own_row(0), own_row(1, note="x"), own_row(2, note="y")]
        assert said(checks(write_rows(tmp_path, rows))["schema"]) == [
            ("warning", "2", 'Key "note" is unknown (2 rows); check its spelling or remove it.')
        ]

    def test_a_table_is_read_too(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.csv"
        path.write_text("id,situation\none,A hedge grows.\none,\n")
        found = checks(path)
        assert said(found["schema"]) == [("error", "3", 'Field "situation" is absent; add it.')]
        assert [line for _, line, _ in said(found["ids"])] == ["3"]
        assert [line for _, line, _ in said(found["fields"])] == ["2"]

    def test_a_broken_table_is_an_error_with_its_line(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.csv"
        path.write_text("id,situation\none,A,B\n")
        ((severity, line, detail),) = said(checks(path)["schema"])
        assert (severity, line) == ("error", "2")
        assert detail.startswith("3 cells under a header of 2")


class TestNearDuplicates:
    @pytest.mark.parametrize(("changed", "errors"), [(25, 1), (38, 0)])
    def test_words_in_common_above_the_limit_are_an_error(
        self, tmp_path: Path, changed: int, errors: int
    ) -> None:
        """Of 77 words (70 and 7) there are 73 shingles; those within the 70 - c kept words are
        66 - c. c = 25: 41 / (146 - 41) = 0.39; c = 38: 28 / (146 - 28) = 0.237."""
        path = write_rows(tmp_path, [own_row(0), own_row(1), near_copy(2, of=0, changed=changed)])
        found = checks(path)["near words"]
        assert found.errors == errors
        if errors:
            assert found.measured == round(41 / 105, 4)
            assert said(found) == [
                ("error", "3", '"row-2" is near to "row-0" in line 1 (Jaccard index 0.39).')
            ]

    def test_a_row_is_told_of_its_nearest_alone(self, tmp_path: Path) -> None:
        """46 / (146 - 46) and 63 / (146 - 63); with each other they have 46 / 100."""
        rows = [own_row(0), near_copy(1, of=0, changed=20), near_copy(2, of=0, changed=3)]
        details = [detail for *_, detail in said(checks(write_rows(tmp_path, rows))["near words"])]
        assert details == [
            '"row-1" is near to "row-0" in line 1 (Jaccard index 0.46).',
            '"row-2" is near to "row-0" in line 1 (Jaccard index 0.76).',
        ]

    def test_a_filled_template_is_an_error_and_an_independent_text_is_none(
        self, tmp_path: Path
    ) -> None:
        texts = [FIRST_FILLING, INDEPENDENT, SECOND_FILLING]
        rows = [own_row(n, situation=text, question=...) for n, text in enumerate(texts)]
        found = checks(write_rows(tmp_path, rows))
        assert [line for _, line, _ in said(found["near skeletons"])] == ["3"]
        assert found["near words"].result == "ok"

    def test_a_limit_can_be_changed(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path, [own_row(0), near_copy(1, of=0, changed=25)])
        assert checks(path, DataLimits(near_words=0.4))["near words"].result == "ok"
        assert checks(path, DataLimits(near_words=0.39))["near words"].result == "1 error"


class TestRepeats:
    @pytest.mark.parametrize(("rows", "errors"), [(40, 0), (41, 1)])
    def test_a_5_gram_may_stand_in_40_rows(self, tmp_path: Path, rows: int, errors: int) -> None:
        """Twice in the same row counts once."""
        phrase = "on the first of may"
        those = own_rows(45)
        for number, row in enumerate(those[:rows]):
            row["constraints"] = [f"{phrase} x{number} {phrase}"]
        found = checks(write_rows(tmp_path, those))["5-grams"]
        assert found.measured == rows
        expected = ("error", "1", f'"{phrase}" stands in {rows} rows.')
        assert said(found) == [expected] * errors

    @pytest.mark.parametrize(("rows", "errors"), [(2, 0), (3, 1)])
    def test_a_sentence_may_stand_in_two_rows(self, tmp_path: Path, rows: int, errors: int) -> None:
        those = own_rows(5)
        for row in those[:rows]:
            row["constraints"] = ["No one here can wait longer."]
        found = checks(write_rows(tmp_path, those))["sentences"]
        expected = ("error", "1", f'"no one here can wait longer" stands in {rows} rows.')
        assert said(found) == [expected] * errors

    def test_a_sentence_of_five_words_may_return(self, tmp_path: Path) -> None:
        rows = own_rows(9, constraints=["No one here can wait."])
        assert checks(write_rows(tmp_path, rows))["sentences"].result == "ok"

    def test_a_sentence_inside_a_situation_is_seen(self, tmp_path: Path) -> None:
        rows = [
            own_row(n, situation=f"{own_words(f's{n}', 60)}. No one here can wait longer! Go {n}.")
            for n in range(3)
        ]
        assert checks(write_rows(tmp_path, rows))["sentences"].errors == 1

    @pytest.mark.parametrize(("rows", "errors"), [(2, 0), (3, 1)])
    def test_an_opening_may_begin_one_in_a_hundred(
        self, tmp_path: Path, rows: int, errors: int
    ) -> None:
        those = own_rows(200)
        for number, row in enumerate(those[:rows]):
            row["situation"] = f"When the old mill {own_words(f'm{number}', 66)}"
        found = checks(write_rows(tmp_path, those))["openings"]
        expected = ("error", "1", f'{rows} of 200 rows begin with "when the old mill …".')
        assert said(found) == [expected] * errors

    def test_openings_of_a_small_set_are_skipped_and_the_table_says_so(
        self, tmp_path: Path
    ) -> None:
        rows = own_rows(12, domain="all the same")
        found = checks(write_rows(tmp_path, rows))
        for name in ("openings", "classes", "domains", "values", "names"):
            assert found[name].result == "skipped: 12 rows"
            assert found[name].findings == ()


class TestBalance:
    @pytest.mark.parametrize(("words", "name"), [(59, "shortest"), (141, "longest")])
    def test_a_situation_may_have_60_to_140_words(
        self, tmp_path: Path, words: int, name: str
    ) -> None:
        inside = 60 if words == 59 else 140
        rows = [
            own_row(n, situation=own_words(f"s{n}", count))
            for n, count in enumerate((inside, words))
        ]
        path = write_rows(tmp_path, rows)
        found = checks(path)[f"{name} situation"]
        detail = f'The situation of "row-1" has {words} words.'
        assert said(found) == [("warning", "2", detail)]
        assert found.measured == words
        assert checks(path, complete=True)[f"{name} situation"].errors == 1

    @pytest.mark.parametrize(("rows", "warnings"), [(6, 0), (7, 1)])
    def test_a_domain_may_be_that_of_3_in_a_hundred(
        self, tmp_path: Path, rows: int, warnings: int
    ) -> None:
        those = own_rows(200)
        for number, row in enumerate(those[:rows]):
            row["domain"] = "Beekeeping" if number % 2 else "beekeeping"
        path = write_rows(tmp_path, those)
        found = checks(path)["domains"]
        assert (found.warnings, found.errors) == (warnings, 0)
        assert found.measured == rows / 200
        assert checks(path, complete=True)["domains"].errors == warnings

    @pytest.mark.parametrize(("rows", "warnings"), [(50, 0), (51, 1)])
    def test_a_class_may_be_that_of_half(self, tmp_path: Path, rows: int, warnings: int) -> None:
        those = own_rows(100)
        for number, row in enumerate(those):
            row["class"] = "everyday" if number < rows else "professional"
        found = checks(write_rows(tmp_path, those))["classes"]
        assert found.warnings == warnings

    @pytest.mark.parametrize(("rows", "warnings"), [(8, 0), (7, 1)])
    def test_each_value_must_be_in_8_rows(self, tmp_path: Path, rows: int, warnings: int) -> None:
        those = own_rows(500)
        left = rows
        for row in those:
            if "welfare" in row["values"]:
                left -= 1
                if left < 0:
                    row["values"] = ["autonomy", "beauty"]
        found = checks(write_rows(tmp_path, those))["values"]
        assert found.measured == rows
        assert [f.detail for f in found.findings] == [
            'The value "welfare" is in 7 rows.'
        ] * warnings

    @pytest.mark.parametrize(("rows", "warnings"), [(3, 0), (4, 1)])
    def test_a_first_name_may_be_in_3_of_200_rows(
        self, tmp_path: Path, rows: int, warnings: int
    ) -> None:
        those = own_rows(200)
        for number, row in enumerate(those[:rows]):
            start = "Renata" if number == 0 else f"then Renata{chr(39)}s"
            row["constraints"] = [f"{start} y{number} waits."]
        found = checks(write_rows(tmp_path, those))["names"]
        assert found.measured == rows / 200
        assert [f.detail for f in found.findings] == [
            'The name "Renata" is in 4 of 200 rows.'
        ] * warnings

    @pytest.mark.parametrize(
        "sentence",
        [
            "we met in Lagos {n}.",
            "we met a Kenyan {n}.",
            "then on Monday {n}.",
            "near northern Spain {n}.",
            "then NATO came {n}.",
        ],
    )
    def test_places_nationalities_weekdays_and_acronyms_are_no_names(
        self, tmp_path: Path, sentence: str
    ) -> None:
        rows = [own_row(n, constraints=[sentence.format(n=n)]) for n in range(100)]
        assert checks(write_rows(tmp_path, rows))["names"].result == "ok"

    def test_a_word_that_is_mostly_small_is_no_name(self, tmp_path: Path) -> None:
        rows = own_rows(100)
        for number, row in enumerate(rows):
            word = "Council" if number < 10 else "council"
            row["constraints"] = [f"then {word} {number}."]
        assert checks(write_rows(tmp_path, rows))["names"].result == "ok"


class TestEmbeddings:
    def test_without_a_model_the_check_is_skipped_and_says_why(self, sound: Path) -> None:
        found = checks(sound)["near embeddings"]
        assert found.result == "skipped: no --embeddings model given"

    def test_a_model_finds_what_means_the_same(self, tmp_path: Path) -> None:
        """The model counts words, so a text in another order has a cosine of 1."""
        package = pytest.importorskip("sentence_transformers")
        from sentence_transformers.models import BoW

        texts = ["red green blue", "blue green red", "red stone"]
        vocabulary = sorted(set(" ".join(texts).split()))
        folder = tmp_path / "model"
        package.SentenceTransformer(modules=[BoW(vocab=vocabulary)], device="cpu").save(str(folder))
        rows = [own_row(n, situation=text, question=...) for n, text in enumerate(texts)]
        found = checks(write_rows(tmp_path, rows), embeddings=str(folder))["near embeddings"]
        assert said(found) == [
            ("warning", "2", '"row-1" is near to "row-0" in line 1 (cosine 1.00).')
        ]
        assert found.measured == pytest.approx(1.0)

    def test_a_model_that_is_not_there_is_refused(self, sound: Path, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="--embeddings"):
            check_data([sound], embeddings=str(tmp_path / "none"))


class TestLimits:
    def test_texts_change_limits(self) -> None:
        changed = with_limits(DataLimits(), ["near_words=0.3", "gram_rows = 5"])
        assert changed == dataclasses.replace(DataLimits(), near_words=0.3, gram_rows=5)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("near_word=0.3", '"near_word" is unknown; the nearest is "near_words"'),
            ("near_words", "write it as key=value"),
            ("gram_rows=2.5", "is not a whole number"),
            ("near_words=2", "above 0 and at most 1"),
            ("near_words=nan", "above 0 and at most 1"),
            ("domain_share=3", "between 0 and 1"),
            ("gram_rows=-1", "not be below 0"),
        ],
    )
    def test_a_limit_that_makes_no_sense_is_refused(self, text: str, words: str) -> None:
        with pytest.raises(ConfigError) as caught:
            with_limits(DataLimits(), [text])
        assert words in str(caught.value)


def test_a_text_without_spaces_counts_by_its_characters() -> None:
    assert word_count("one two three") == 3
    assert word_count("商店街の掲示板に貼られた紙には、朝市の日を変えるとある。" * 10) == 112
    assert word_count("월세는 구십만 원으로 합시다") == 4
