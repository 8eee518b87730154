#!/usr/bin/env python3
"""Compared numbers without rows, rows that others disturbed, and what scripts/measure writes from rows."""

import importlib.machinery
import importlib.util
import json
import sys
import unittest
from unittest import mock

import measured
from base.small_tree import Tree
from base.tree import ROOT

_loader = importlib.machinery.SourceFileLoader("measure", str(ROOT / "scripts/measure"))
measure = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure", _loader))
sys.modules["measure"] = measure  # where its dataclass looks for its own module
_loader.exec_module(measure)

ABOUT = {"table": "step_mlp", "run": "r", "turn": 1, "date": "2026-01-01", "commit": "abc", "machine": "m", "command": "syncopate bench",
         "elsewhere_cores": 0.1}


def step(contender, median, turn=1, run="r", codec="none"):
    return ABOUT | {"run": run, "turn": turn, "contender": contender, "codec": codec, "exchange": "none" if contender == "alone" else "allreduce",
                    "step_seconds": {"median": median, "min": median / 2, "max": median * 2}}


def turn(number, run="r", ours=0.5, gloo=1.0):
    return [step("alone", 0.25, number, run), step("ddp-gloo", gloo, number, run), step("syncopate-ddp", ours, number, run)]


def timed(quantity, median, number=1, **keys):
    return ABOUT | {"turn": number, quantity: {"median": median, "min": median, "max": median}} | keys


class Measured(Tree):
    def pages(self, text):
        self.write("README.md", text)
        return measured.page_findings(self.root)

    def test_a_peer_and_a_quantity_outside_a_block_are_found(self):
        self.finds(self.pages("# a\n\nGloo takes 12 ms.\n"), "README.md", 3, "Gloo (12 ms)")
        self.finds(self.pages("# a\n\n- ours\n- MPICH x1.20\n"), "README.md", 4, "MPICH")
        self.finds(self.pages("| a | Gloo |\n|---|---|\n| 1 | 3.5 us |\n"), "README.md", 3, "3.5 us")

    def test_a_quantity_of_our_own_and_a_peer_without_one_pass(self):
        self.finds_nothing(self.pages("Ours takes 12 ms.\n\nGloo has two algorithms.\n\n- Gloo\n- 12 ms\n\n| a |\n|---|\n| Gloo |\n| 5 s |\n"))

    def test_blocks_and_fences_pass(self):
        self.finds_nothing(self.pages("<!-- measured: a -->\nGloo 12 ms\n<!-- end of measured -->\n\n```sh\nGloo 12 ms\n```\n"))

    def test_rows_that_others_disturbed_or_that_lack_their_origin_are_found(self):
        self.write("data/measured/a.jsonl", json.dumps(ABOUT | {"elsewhere_cores": 1.2}) + "\n" + json.dumps({"table": "a"}) + "\n")
        self.finds(measured.row_findings(self.root), "data/measured/a.jsonl", 1, "1.2 cores")
        self.finds(measured.row_findings(self.root), "data/measured/a.jsonl", 2, "lacks run")


class Written(unittest.TestCase):
    def newest(self, rows):
        with mock.patch.object(measure, "rows_of", lambda name: rows):
            return measure.newest_complete("step_mlp")

    def test_only_a_complete_run_counts_and_runs_are_not_mixed(self):
        first, second = [row for i in range(1, 6) for row in turn(i)], [row for i in range(1, 5) for row in turn(i, run="s")]
        self.assertEqual(first, self.newest(first + second))
        second += turn(5, run="s")
        self.assertEqual(second, self.newest(first + second))
        self.assertEqual([], self.newest(second[:-3]))

    def test_ratios_are_paired_within_turns(self):
        rows = [row for i, (ours, gloo) in enumerate([(1, 2), (10, 40), (3, 3)], 1) for row in turn(i, ours=ours, gloo=gloo)]
        line = next(line for line in measure.step_table(rows).splitlines() if "`syncopate-ddp`" in line)
        self.assertTrue(line.endswith("| 0.50 |"), line)  # the medians alone give 3 / 3
        self.assertIn("3 s (500 ms..20 s)", line)

    def test_a_contender_that_misses_a_turn_is_refused(self):
        with self.assertRaises(SystemExit):
            measure.step_table(turn(1) + turn(2)[:-1])

    def test_selections_are_compared_within_a_size_and_a_turn(self):
        names, turns = ("topk:0.001", "dgc:0.001", "mstopk:0.001"), {1: (1, 2, 8), 2: (4, 4, 4), 3: (1, 3, 9)}
        rows = [timed("encode_seconds", seconds * size / 2**20, number, codec=codec, elements=size)
                for size in (2**21, 2**18) for number, times in turns.items() for codec, seconds in zip(names, times, strict=True)]
        small, large = measure.selections_by_size(rows).splitlines()[2:]
        self.assertEqual("| 256 Ki | 250 ms (250 ms..1 s) | 750 ms (500 ms..1 s) | 2 s (1 s..2.25 s) | 2.00 | 8.00 |", small)
        self.assertTrue(large.startswith("| 2 Mi | 2 s "), large)

    def test_parts_of_an_iteration_are_those_of_the_computer_that_is_not_dilated(self):
        seconds = {"mst": 20, "bidirectional_exchange": 18, "linear_pipeline": 16}
        rows = [timed("step_seconds", of + (policy == "wfbp"), algorithm=algorithm, exchange=exchange, policy=policy, dilation=8.0, compute_s=8.0,
                      simulated_s=15.0)
                for algorithm, of in seconds.items()
                for exchange, policy in (("reduce_broadcast", "single"), ("allreduce", "single"), ("allreduce", "wfbp"))]
        lines = measure.iterations(rows).splitlines()[2:]
        self.assertEqual("| Alg. 1 | MST | 20 s (20 s..20 s) | 1.5 s, 1 s, 60.0 % | 1.25 | 15 s |", lines[0])
        self.assertEqual(["Alg. 1", "Alg. 1", "Alg. 1", "Alg. 2", "Alg. 2", "Alg. 2", "Alg. 3", "Alg. 3", "Alg. 3"],
                         [line.split(" | ")[0].strip("| ") for line in lines])
        self.assertIn("| 17 s (17 s..17 s) |", lines[8])

    def test_policies_are_compared_within_their_model(self):
        rows = [timed("step_seconds", scale * seconds, model=model, policy=policy, simulated_s=scale * seconds / 2)
                for model, scale in (("GoogLeNet with both", 1), ("ResNet-50, 32 images", 10))
                for policy, seconds in (("wfbp", 6), ("mg_wfbp", 4))]
        lines = measure.replayed(rows).splitlines()[2:]
        self.assertEqual("| GoogLeNet | `wfbp` | 6 s (6 s..6 s) | 3 s | 1.50 | 1.50 |", lines[0])
        self.assertEqual("| ResNet-50 | `mg_wfbp` | 40 s (40 s..40 s) | 20 s | 1.00 | 1.00 |", lines[3])

    def test_placements_share_the_machine_alone_of_their_turn(self):
        row = lambda number, contender, placement, seconds: timed(
            "step_seconds", seconds, number, model="m", contender=contender, placement=placement, workers=1 if contender == "alone" else 4,
            predicted_speedup=2.0, load_variation=0.5)
        rows = [each for number, alone in enumerate((1, 2, 3), 1)
                for each in (row(number, "alone", "uniform", alone), row(number, "traditional", "uniform", 2), row(number, "traditional", "lpt", 4))]
        self.assertEqual(["| m | `uniform` | 2 s (2 s..2 s) | 4.00 | 2.00 | 0.500 |", "| m | `lpt` | 4 s (4 s..4 s) | 2.00 | 2.00 | 0.500 |"],
                         measure.placements(rows).splitlines()[2:])

    def test_rows_of_no_contender_are_left_out(self):
        printed = "\n".join(json.dumps({"benchmark": name}) for name in ("cost", "replay", "replay ratios"))
        done = measure.subprocess.CompletedProcess([], 0, stdout=f"text\n{printed}\n", stderr="")
        with mock.patch.object(measure.subprocess, "run", lambda *words, **options: done):
            self.assertEqual([{"benchmark": "replay", "command": "syncopate bench replay a"}], measure.rows_printed(["bench replay a"]))

    def test_a_block_without_a_complete_run_says_what_measures_it(self):
        page = "docs/papers/mg-wfbp.md"
        with mock.patch.object(measure, "rows_of", lambda name: []):
            text = measure.with_blocks(page, "a\n<!-- measured: mg_wfbp -->\nold 1 s\n<!-- end of measured -->\nb\n")
        self.assertIn("Not measured", text)
        self.assertIn("`scripts/measure mg_wfbp`", text)
        for command in measure.TABLES["mg_wfbp"].commands:
            self.assertIn(f"`syncopate {command}`", text)
        self.assertNotIn("old", text)
        self.assertTrue(text.startswith("a\n<!--") and text.endswith("<!-- end of measured -->\nb\n"), text)

    def test_the_page_of_each_block_has_its_mark(self):
        for page in measure.pages():
            measure.with_blocks(page, (ROOT / page).read_text())


if __name__ == "__main__":
    unittest.main()
