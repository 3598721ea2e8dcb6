"""Joined pairs: disjoint, seeded; links moved along."""

from seq2seq_attn.text.concatenation import concatenate_lines, concatenate_links, equal_groups


def test_groups_are_disjoint_and_seeded():
    groups = equal_groups(20, 3, seed=1)
    flat = [index for group in groups for index in group]
    assert [len(group) for group in groups] == [3] * 6
    assert len(set(flat) & set(range(20))) == 18
    assert equal_groups(20, 3, seed=1) == groups != equal_groups(20, 3, seed=2)


def test_lines_and_links_of_a_group():
    groups = [(2, 0)]
    assert concatenate_lines(["a b", "c", "d e f"], groups) == ["d e f a b"]
    links = concatenate_links(
        ["0-1 1-0", "", "2-2"], groups, source_lengths=[2, 1, 3], target_lengths=[2, 1, 4]
    )
    assert links == ["2-2 3-5 4-4"]
