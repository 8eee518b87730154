"""Programs written for torch's own backends find what they expect."""

import torch_job


def run(function, size, **environment):
    return torch_job.run("torch_compatibility.py", function, size, **environment)


def test_the_debug_level_detail():
    for facts in run("debug_detail", 2, TORCH_DISTRIBUTED_DEBUG="DETAIL"):
        assert facts == {"all_reduce": [2, 2], "all_gather": [0, 0, 1, 1], "reduce_scatter": [2, 2], "ddp": [[1.5, 1.5]]}


def test_batches_of_messages_pipelines_and_split_groups():
    for rank, facts in enumerate(run("pipelines", 3)):
        assert facts == {"supports": [False, True, False, False, False, False], "timeout": 1800, "batch": [(rank - 1) % 3] * 2,
                         "pipeline": True, "split": [[1, 2, 2], [0, 1, 1], [0, 2, 2]][rank]}


def test_operations_complete_without_being_waited_for():
    for rank, facts in enumerate(run("works", 3)):
        failed, text = facts.pop("failure")
        assert not failed and text.startswith("Mismatch: "), text
        assert facts.pop("gloo", 2) == 2
        assert facts == {"received": [(rank - 1) % 3] * 2, "sums": [3, 3, 3], "parts": [0, 0, 1, 1, 2, 2], "success": [True] * 5,
                         "result": [3, 3, 3]}


def test_any_layout_of_memory():
    for rank, facts in enumerate(run("layouts", 3)):
        assert "sparse" in facts.pop("sparse refused").lower()
        assert [round(3 * value) for value in facts.pop("embedding")] == [1, 1, 1, 0, 3]
        left = (rank - 1) % 3
        assert facts == {
            "coalesced": [[2 * r, 3 * (10 + r)] for r in range(3)],
            "gaps": [[[3, 12], [6, 15], [9, 18]], [[1, 3], [4, 6]], [3 * i + 3 for i in range(16)]],
            "into gaps": [[1, 4, 2, 5, 3, 6], [0] * 6, [[0, 3], [0, 3]], [[left, 3 + left], [1 + left, 4 + left], [2 + left, 5 + left]]],
            "sparse": [[3, 6], [3, 0], [3, 1], [3, 2], [0, 0]],
            "in place": [rank, 10 + rank, 20 + rank],
        }


def test_wrong_sizes_and_types_are_refused_everywhere_before_anything_is_sent():
    for facts in run("sizes", 2):
        assert facts.pop("then") == 2 and facts.pop("kept") == [7]
        for name in ("scatter", "gather"):
            assert facts[name].startswith(("Misuse: ", "Mismatch: ")) and "allowed: equal lengths" in facts.pop(name)
        for name, text in facts.items():
            assert text.startswith("Misuse: "), name


def test_hooks_that_torch_has_in_cpp():
    for facts in run("built_in_hooks", 2):
        assert facts == {"ALLREDUCE": [1.5] * 4, "FP16_COMPRESS": [1.5] * 4}


def test_ranks_that_are_missing_are_named_within_the_timeout():
    found = run("missing", 3)
    for rank, facts in enumerate(found):
        assert facts["barrier"] == facts["after"] == ""
        assert facts.get("message", 1) == 1
        assert rank == 2 or "within the timeout of 1 s; missing: rank 2" in facts["group"]
    assert "Rank 1 failed to pass monitoredBarrier in 1000 ms" in found[0]["monitored"]
    assert "Ranks 1, 2 failed to pass monitoredBarrier" in found[0]["all"]
    assert "Rank 2 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0" in found[2]["monitored"]
    assert "timeout of 1.0 s" in found[0]["timeout"]
