"""The list of phase 3: a line for each part, which workers turn into its row groups."""

from pathlib import Path

from refinery.transforms.core.job.task_list import read_task_list
from refinery.transforms.write.deal_kept_documents import list_groups, read_group
from refinery.transforms.write.kept_documents import PartPair, write_pairs
from tests.transforms.write.test_removals import make_rows, write_parts


def test_a_part_is_one_line_and_every_row_group_is_read_once(tmp_path: Path) -> None:
    layout = [make_rows(7, 1), make_rows(3, 2), []]
    pairs = write_parts(tmp_path, layout, 3)
    lines = read_task_list(write_pairs(str(tmp_path), pairs))
    assert len(lines) == len(layout)
    groups = [list(list_groups(line)) for line in lines]
    assert [len(found) for found in groups] == [3, 1, 0]
    read = [doc.id for found in groups for line in found for doc in read_group(line, ())]
    assert read == [row["id"] for rows in layout for row in rows if not row["removed"]]
    assert 0 < len(read) < 10


def test_row_groups_do_not_make_the_list_longer(tmp_path: Path) -> None:
    few, many = (write_pairs(str(tmp_path), [PartPair("r", "d", "r", "v", groups)]) for groups in (1, 1_000_000))
    assert (few.items, many.items) == (1, 1)
