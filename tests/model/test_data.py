"""Text from the reader's disk: the same bytes in the same order, and batches that depend on seed and step alone."""

import numpy as np
import pytest

import mtfcore as mtf
from mtfcore.model.data import Batches, Text, decode, encode, padded_vocab, python_sources


@pytest.fixture
def folder(tmp_path):
    for name, text in {"b.py": "bb", "a/z.py": "zzz", "a.py": "a", "test/t.py": "no", "c.txt": "no"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def test_the_standard_library_is_found_and_is_python():
    text = python_sources(limit_bytes=50_000)
    assert text.data.size == 50_000 and text.data.dtype == np.uint8
    assert "import" in decode(text.data) and text.files == tuple(sorted(text.files))
    np.testing.assert_array_equal(python_sources(limit_bytes=20_000).data, text.data[:20_000])


def test_files_come_by_name_without_tests_and_up_to_the_limit(folder):
    text = python_sources(folder=folder)
    assert text.files == ("a.py", "a/z.py", "b.py") and decode(text.data) == "azzzbb"
    assert decode(python_sources(3, folder).data) == "azz"


def test_what_cannot_be_read_is_skipped_and_named(folder):
    (folder / "aa.py").symlink_to(folder / "gone.py")
    text = python_sources(folder=folder)
    assert text.skipped == ("aa.py",) and decode(text.data) == "azzzbb"


def test_a_folder_without_sources_is_refused(tmp_path):
    with pytest.raises(mtf.LayoutError, match="no Python sources to read in"):
        python_sources(folder=tmp_path)


def test_a_batch_is_a_function_of_seed_and_step():
    text = Text(np.arange(200, dtype=np.uint8))
    batches, again = Batches(text, 4, 8, seed=5), Batches(text, 4, 8, seed=5)
    again(0), again(1)
    for name in ("inputs", "targets"):
        np.testing.assert_array_equal(batches(7)[name], again(7)[name])
    assert not np.array_equal(batches(7)["inputs"], batches(8)["inputs"])
    assert not np.array_equal(batches(7)["inputs"], Batches(text, 4, 8, seed=6)(7)["inputs"])


def test_targets_are_the_next_tokens():
    made = Batches(Text(np.arange(200, dtype=np.uint8)), 16, 32)(3)
    assert made["inputs"].shape == (16, 32) and made["inputs"].dtype == np.int32
    np.testing.assert_array_equal(made["targets"], made["inputs"] + 1)


def test_a_source_is_what_stands_before():
    made = Batches(Text(np.arange(200, dtype=np.uint8)), 16, 8, source_length=5)(3)
    assert made["source"].shape == (16, 5)
    np.testing.assert_array_equal(made["source"][:, -1] + 1, made["inputs"][:, 0])


def test_every_window_is_drawn_the_last_included():
    text = Text(np.arange(12, dtype=np.uint8))
    seen = {int(start) for step in range(40) for start in Batches(text, 4, 8)(step)["inputs"][:, 0]}
    assert seen == {0, 1, 2, 3}


def test_unigram_entropy_of_known_frequencies():
    assert Text(np.frombuffer(b"aabb", np.uint8)).unigram_nats == pytest.approx(np.log(2))
    assert Text(np.frombuffer(b"aaaa", np.uint8)).unigram_nats == 0


def test_split_keeps_every_byte():
    train, test = Text(np.arange(100, dtype=np.uint8)).split(0.8)
    assert (train.data.size, test.data.size) == (80, 20) and test.data[0] == 80


def test_text_and_tokens_both_ways():
    assert decode(encode("def f(): return 'ü'\n")) == "def f(): return 'ü'\n"
    assert decode(np.array([97, 300, 98])) == "a\ufffdb"


@pytest.mark.parametrize(("parts", "vocab"), [(1, 256), (8, 256), (3, 258), (7, 259), (512, 512)])
def test_padded_vocabularies(parts, vocab):
    assert padded_vocab(parts) == vocab


def test_faults_of_batches_all_at_once():
    with pytest.raises(mtf.LayoutError) as error:
        Batches(Text(np.arange(8, dtype=np.uint8)), 0, 8, seed=-1)
    for part in ("3 faults", "batch is 0", "seed is -1", "the text has 8 bytes, a window of length 8 needs more"):
        assert part in str(error.value)
