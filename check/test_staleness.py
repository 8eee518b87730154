#!/usr/bin/env python3
"""Tables of scripts/staleness: pairs of seeds, times without evaluations, and cells that lack data."""

import functools
import importlib.machinery
import importlib.util
import sys
import unittest

from base.tree import ROOT
from test_convergence import convergence  # loaded once, as scripts/staleness uses it

_loader = importlib.machinery.SourceFileLoader("staleness", str(ROOT / "scripts/staleness"))
staleness = importlib.util.module_from_spec(importlib.util.spec_from_loader("staleness", _loader))
sys.modules["staleness"] = staleness
_loader.exec_module(staleness)


def run(contender, seed, final, times=(10, 20, 30, 40), slow="", **more):
    curve = [[step, final - 0.01 * (40 - step) / 10] for step in (10, 20, 30, 40)]
    return {"model": "mlp", "contender": contender, "slow": slow, "seed": seed, "steps": 40, "metric": "accuracy", "final": final,
            "curve": curve, "times": list(times), "seconds": 50.0, "staleness": {"mean": 1.5, "max": 3 + seed},
            "pushed_bytes_per_step": 2048, "other_cores": 0.1, **more}


def cells(text):
    """The cells of each line of the first table, by the first one and, if it is an option, the slow worker."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]
    return {line[0].strip("`") + ("" if line[1] != "one, `--slow 3:2`" else " slow"): line[1:] for line in lines if "---" not in line[0]}


class Staleness(unittest.TestCase):
    def test_evaluations_do_not_count_as_time_of_training(self):
        rows = [{"event": "begin", "time": 100}]
        for step, trained, evaluated in ((10, 105, 108), (20, 113, 116), (30, 121, 124)):
            rows += [{"event": "step", "step": step, "time": trained}, {"event": "epoch", "step": step, "time": evaluated}]
        self.assertEqual(staleness.seconds_at_evaluations(rows), [5, 10, 15])

    def test_a_model_is_compared_with_bsp_of_the_same_seed_and_workers(self):
        rows = [run("bsp", 1, 0.90), run("bsp", 2, 0.80), run("bsp", 1, 0.50, slow="3:2"), run("tap", 2, 0.79), run("tap", 1, 0.89),
                run("tap", 1, 0.52, slow="3:2", times=(1, 2, 3, 4))]
        found = cells(staleness.staleness_table("mlp", rows))
        self.assertEqual(found["bsp"][1:4], ["2", "85.00 (80.00 to 90.00)", "–"])
        self.assertEqual(found["tap"][3:7], ["-1.00 ± 0.00", "1.5", "5", "2"])
        self.assertEqual(found["tap slow"][1:4], ["1", "52.00", "+2.00 (1 pair)"])
        self.assertEqual(found["tap slow"][-1], "2")  # the target is 50 %, the worst run under bsp
        self.assertEqual(staleness.staleness_table("mlp", [run("tap", 1, 0.9)]), "")

    def test_a_seed_that_misses_the_target_is_counted_and_has_no_time(self):
        rows = [run("bsp", 1, 0.90), run("ssp:5", 1, 0.90), run("ssp:5", 2, 0.85)]
        self.assertEqual(cells(staleness.staleness_table("mlp", rows))["ssp:5"][-1], "1 of 2 seeds")

    def test_the_time_of_a_system_is_relative_to_the_same_seed(self):
        of = [run("traditional", 1, 0.90), run("traditional", 2, 0.92, times=(20, 40, 60, 80))]
        of += [run("full", 1, 0.90, times=(4, 8, 12, 16)), run("full", 2, 0.92, times=(8, 16, 24, 32))]
        steps = [{"contender": name, "step_seconds": seconds} for name, seconds in (("alone", 0.4), ("traditional", 1.0))]
        text = staleness.systems_table("mlp", "200mbit", of, steps)
        self.assertIn("communication is 60 % of a traditional step", text)
        self.assertEqual(cells(text)["full"][-4:], ["16", "40 ± 0 %", "16", "40 ± 0 %"])
        missed = [*of[:2], run("full", 1, 0.7)]
        self.assertEqual(cells(staleness.systems_table("mlp", "200mbit", missed, []))["full"][-2:], ["0 of 1 seeds", "0 of 1 seeds"])

    def test_parts_are_compared_with_neither_by_quarters_of_the_steps(self):
        rows = [run(part, seed, final + 0.01 * seed, pulled_bytes_per_step=4096, staleness={"mean": stale, "max": seed})
                for part, final, stale in (("neither", 0.80, 0), ("both", 0.82, 3.5)) for seed in (1, 2)]
        table = functools.partial(staleness.study_table, staleness.PARTS, "part", "lenet")
        found = cells(table(rows))
        self.assertEqual(found["neither"][:6], ["2", "78.50", "79.50", "80.50", "81.50 (81.00 to 82.00)", "–"])
        self.assertEqual(found["both"][5:], ["+2.00 ± 0.00", "3.5", "2", "2", "4"])
        self.assertEqual(table(rows[2:]), "")

    def test_every_study_names_its_rule_and_no_rate_twice(self):
        for study in (staleness.MODELS_OF_CONSISTENCY, staleness.PARTS, staleness.CODECS, staleness.SYSTEMS):
            for model in staleness.MODELS:
                for contender in study.contenders:
                    options = study.options(model, contender, "").split()
                    self.assertEqual([options.count(word) for word in ("--lr", "--dense-below", "--momentum")], [1, 1, 1])
                self.assertEqual(staleness.SETUPS[model].steps % study.every[model], 0)  # the last step is evaluated


if __name__ == "__main__":
    unittest.main()
