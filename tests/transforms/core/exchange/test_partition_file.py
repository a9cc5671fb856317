"""Partition files: what is written by key comes back by key, whatever the sizes; damage is never handed on."""

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.exchange import partition_file
from refinery.transforms.core.exchange.partition_file import PartitionWriter, read_groups, read_index
from refinery.transforms.core.exchange.tally import ExchangeError, Tally, dump_key, load_key

keys = st.one_of(st.integers(0, 9), st.text(max_size=3), st.binary(max_size=3))
elements = st.lists(st.tuples(keys, st.binary(max_size=40)), max_size=60)


@given(keys)
def test_keys_survive(key: object) -> None:
    assert load_key(dump_key(key)) == key


def test_other_keys_are_refused() -> None:
    with pytest.raises(TypeError, match="float given, int, str or bytes is allowed"):
        dump_key(1.5)


@given(st.lists(elements, min_size=1, max_size=3), st.integers(1, 400), st.integers(0, 9))
def test_groups_of_several_files(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[object, bytes]]], flush: int, most: int
) -> None:
    """Flushed after any number of bytes, written once more or not: the same groups."""
    folder = tmp_path_factory.mktemp("files")
    expected: defaultdict[bytes, list[bytes]] = defaultdict(list)
    paths, total = [], Tally()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_file, "FLUSH_BYTES", flush)
        patch.setattr(partition_file, "MOST_SEGMENTS", most)
        for number, given_elements in enumerate(files):
            writer = PartitionWriter(folder / f"{number}.partition")
            for key, value in given_elements:
                writer.add(dump_key(key), value)
                expected[dump_key(key)].append(value)
            writer.close()
            paths.append(writer.path)
            total.merge(writer.tally)
    groups = read_groups(paths)
    assert {key: list(group) for key, group in groups.items()} == expected  # values of a key keep their order, too
    assert {key: group.count for key, group in groups.items()} == {key: len(values) for key, values in expected.items()}
    again = Tally()
    for key, group in groups.items():
        for value in group:
            again.add(key, value)
    assert again == total
    assert {path.name for path in folder.iterdir()} == {path.name for path in paths}  # nothing unfinished is left


def test_many_segments_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_file, "FLUSH_BYTES", 1_000)
    monkeypatch.setattr(partition_file, "MOST_SEGMENTS", 50)
    writer = PartitionWriter(tmp_path / "a.partition")
    for number in range(2_000):
        writer.add(b"i%d" % (number % 7), b"%04d" % number * 10)
    assert sum(map(len, writer.segments)) > 500
    writer.close()
    _, segments = read_index(writer.path)
    assert 7 < len(segments) < 150  # of FLUSH_BYTES or a little more, instead of a seventh of it
    groups = read_groups([writer.path])
    assert [value[:4] for value in groups[b"i3"]] == [b"%04d" % number for number in range(3, 2_000, 7)]


def test_a_file_is_full_at_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_file, "FLUSH_BYTES", 100)
    monkeypatch.setattr(partition_file, "FILE_BYTES", 1_000)
    writer = PartitionWriter(tmp_path / "a.partition")
    count = 0
    while not writer.is_full:
        writer.add(b"i0", bytes(30))
        count += 1
    assert 20 < count < 60


@given(st.data())
def test_any_damage_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A byte flipped anywhere, the end cut off anywhere: an error, or exactly what was written."""
    folder = tmp_path_factory.mktemp("damage")
    writer = PartitionWriter(folder / "a.partition")
    for number in range(20):
        writer.add(b"i%d" % (number % 3), bytes([number]) * number)
    writer.close()
    good = {key: list(group) for key, group in read_groups([writer.path]).items()}
    whole = writer.path.read_bytes()
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(whole) - 1))
        bad = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    else:
        bad = whole[: data.draw(st.integers(0, len(whole) - 1))]
    writer.path.write_bytes(bad)
    with pytest.raises(ExchangeError, match=r"a\.partition"):
        found = {key: list(group) for key, group in read_groups([writer.path]).items()}
        assert found == good
        raise ExchangeError("a.partition: unharmed")
