#!/usr/bin/env python3
"""Tables of scripts/convergence: confidence intervals, pairs of seeds, and cells that lack data."""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from base.tree import ROOT

_loader = importlib.machinery.SourceFileLoader("convergence", str(ROOT / "scripts/convergence"))
convergence = importlib.util.module_from_spec(importlib.util.spec_from_loader("convergence", _loader))
sys.modules["convergence"] = convergence  # where its dataclass looks for its own module
_loader.exec_module(convergence)

SETUP = "--lr 0.05"


def run(codec, seed, final, curve=None, wire=1000, **more):
    return {"model": "mlp", "codec": codec, "seed": seed, "options": f"{SETUP} --codec {codec}", "data": "d", "ranks": 4,
            "steps": 40, "metric": "accuracy", "final": final, "wire_bytes_per_step": wire, "gradient_bytes": 4000,
            "curve": curve or [[20, final - 0.1], [40, final]], **more}


def measured(codec, rate, seconds):
    return {"model": "mlp", "codec": codec, "rate": rate, "options": f"{SETUP} --codec {codec}", "step_seconds": {"median": seconds}}


def cells(runs, steps=(), model="mlp"):
    """The cells of each line of the table, by codec."""
    lines = [line for line in convergence.Table(model, SETUP, runs, steps).text().splitlines() if line.startswith("| `")]
    return {line.split("`")[1]: [cell.strip() for cell in line.split("|")[2:-1]] for line in lines}


def counted(*command, **variables):
    """The output of a command that convergence.COUNTING starts, and its exit status."""
    environment = {name: value for name, value in os.environ.items() if name != "SYNCOPATE_INTERFACE"}
    done = subprocess.run([*convergence.COUNTING, *command], capture_output=True, text=True, check=False, env=environment | variables)
    return done.stdout.splitlines(), done.returncode


class Convergence(unittest.TestCase):
    def test_an_interval_is_students(self):
        mean, half = convergence.interval([1, 2, 3, 4, 5])
        self.assertEqual(mean, 3)
        self.assertAlmostEqual(half, 2.776 * (2.5 / 5) ** 0.5)  # the variance of the sample, four degrees of freedom
        self.assertAlmostEqual(convergence.interval([1, 2])[1], 12.706 * 0.5)
        self.assertAlmostEqual(convergence.interval([0, 1] * 20)[1], 2.228 * (10 / 39 / 40) ** 0.5)  # beyond the list
        self.assertEqual(convergence.interval([7]), (7, None))

    def test_pairs_have_the_same_seed(self):
        dense = [run("none", seed, final) for seed, final in ((1, 0.90), (2, 0.80))]
        rows = [run("bf16", seed, final) for seed, final in ((3, 0.1), (2, 0.79), (1, 0.91))]
        low, high = sorted(convergence.paired(rows, dense))
        self.assertAlmostEqual(low, -0.01)
        self.assertAlmostEqual(high, 0.01)

    def test_a_goal_is_open_while_the_interval_has_both_sides_of_it(self):
        for differences, metric, wanted in (([-0.001, -0.001], "accuracy", "met"), ([0.01, 0.01], "accuracy", "met"),
                                            ([-0.004, -0.004], "accuracy", "missed"), ([-0.001, -0.003], "accuracy", "open"),
                                            ([0.004, 0.004], "loss", "missed"), ([-0.004, -0.004], "loss", "met"),
                                            ([0.0], "loss", "–"), ([], "loss", "–")):
            self.assertEqual(convergence.verdict(differences, metric, 0.003), wanted, (differences, metric))

    def test_a_line_compares_pairs_only_and_counts_seeds(self):
        dense = [run("none", 1, 0.90), run("none", 2, 0.80)]
        found = cells(dense + [run("bf16", 1, 0.89, wire=500), run("bf16", 2, 0.79, wire=500), run("bf16", 3, 0.1, wire=500)])
        self.assertEqual(found["none"], ["2", "85.00 (80.00 to 90.00)", "–", "–", "1", "1.0", "30"])
        self.assertEqual(found["bf16"], ["3", "59.33 (10.00 to 89.00)", "-1.00 ± 0.00 (2 pairs)", "missed", "0", "2.0", "1 of 3 seeds"])
        self.assertEqual(cells(dense + [run("int8", 1, 0.91)])["int8"][1:4], ["91.00", "+1.00 (1 pair)", "–"])
        self.assertEqual(cells(dense + [run("int8", 7, 0.91)])["int8"][2], "no pair")

    def test_a_seed_counts_once(self):
        self.assertEqual(cells([run("none", 1, 0.5), run("none", 1, 0.9)])["none"][:2], ["1", "90.00"])

    def test_the_ratio_of_payloads_is_shown_where_it_is_on_record(self):
        found = cells([run("none", 1, 0.9), run("bf16", 1, 0.9, payload_bytes_per_step=2000)])
        self.assertEqual((found["none"][6], found["bf16"][6]), ("–", "2.0"))

    def test_bytes_of_ranks_are_means_over_the_steps_after_the_warm_up(self):
        ranks = [[(900, 9000), (10, 100), (10, 140)], [(900, 9000), (14, 120), (10, 140)], [(900, 9000), (10, 110), (18, 170)]]
        self.assertEqual(convergence.bytes_of_ranks(ranks, 1), {"least_payload": 10, "most_payload": 16, "sent": 130, "most_sent": 145,
                                                                "sent_with_warmup": 3087})

    def test_ratios_count_the_values_alone_the_payload_with_a_mask_and_what_is_sent(self):
        of = lambda least, most, sent, all_sent: {"bytes_of_ranks": {"least_payload": least, "most_payload": most, "sent": sent,
                                                                     "most_sent": 9 * sent, "sent_with_warmup": all_sent}}
        found = cells([run("none", 1, 0.9, **of(4000, 4000, 8192, 8192)), run("importance", 1, 0.9, **of(80, 100, 256, 512))])
        self.assertEqual(found["none"][4:9], ["8", "1.0", "1.0", "1.0", "1.0"])
        self.assertEqual(found["importance"][4:9], ["0", "50.0", "40.0", "32.0", "16.0"])

    def test_runs_of_eight_ranks_are_never_those_of_four(self):
        options = convergence.options_of("lenet", "none")
        setup = convergence.SETUPS["lenet"]
        four = dict(run("none", 1, 0.9), model="lenet", options=options, setup=setup.options, data=setup.data, steps=setup.steps)
        self.assertTrue(convergence.has([four], "lenet", "none", 1))
        self.assertFalse(convergence.has([four], "lenet_8", "none", 1))
        eight = dict(four, model="lenet_8", ranks=8)
        convergence.rows_of = lambda file: [four, eight] if file == convergence.RUNS else []
        captions = [line for table in convergence.tables() for line in table.text().splitlines() if line.startswith("**")]
        self.assertEqual([caption.split("`")[0] for caption in captions],
                         [f"**lenet**, {setup.steps} steps: ", f"**lenet on 8 ranks**, {setup.steps} steps: "])

    def test_rows_of_a_rank_get_what_its_host_has_sent(self):
        script = """echo '{"step": 1}'; echo 'text {1}'; exit 3"""
        (row, text), status = counted("sh", "-c", script, SYNCOPATE_INTERFACE="lo")
        received_and_sent = next(line.split(":")[1].split() for line in Path("/proc/net/dev").read_text().splitlines() if "lo:" in line)
        self.assertEqual((json.loads(row)["step"], text, status), (1, "text {1}", 3))
        self.assertLessEqual(json.loads(row)["port_bytes"], int(received_and_sent[8]))
        self.assertEqual(counted("sh", "-c", script), (['{"step": 1}', "text {1}"], 3))  # not on an emulated host

    def test_bytes_of_a_port_are_of_the_steps_after_the_first_row(self):
        row = lambda step, sent: {"event": "step", "step": step, "port_bytes": sent}
        self.assertEqual(convergence.port_bytes_per_step([{"event": "begin"}, row(10, 5000), row(20, 6000), row(30, 6100)]), 55)
        with self.assertRaisesRegex(SystemExit, "not on emulated hosts"):
            convergence.port_bytes_per_step([row(10, 5000), {"event": "step", "step": 20}])

    def test_hosts_are_compared_by_what_their_ports_send_and_with_flat_topk(self):
        of = lambda codec, seed, final, port, **more: run(codec, seed, final, port_bytes_per_step=port, **more)
        flat, inner = (convergence.recipe("mlp_2x2", name).removeprefix("--codec ") for name in ("topk", "mstopk_hierarchical"))
        runs = [of("none", 1, 0.90, 102400, top_5=0.999), of("none", 2, 0.90, 102400, top_5=0.997), of(flat, 1, 0.88, 5120),
                of(flat, 2, 0.89, 5120), of(inner, 1, 0.89, 2048), of(inner, 2, 0.90, 2048)]
        found = cells(runs, model="mlp_2x2")
        self.assertEqual(found["none"][2:9], ["–", "–", "99.80", "+1.50 ± 6.35", "100.0", "1.0", "20.00"])
        self.assertEqual(found[flat][4:9], ["–", "–", "5.0", "20.0", "1.00"])
        self.assertEqual(found[inner][2:9], ["-0.50 ± 6.35", "open", "–", "+1.00 ± 0.00", "2.0", "50.0", "0.40"])
        self.assertEqual(cells(runs[:2], model="mlp_2x2")["none"][5:9], ["–", "100.0", "1.0", "–"])  # no flat topk yet
        caption = convergence.Table("mlp_2x2", SETUP, runs, ()).text().splitlines()[1]
        self.assertIn("**mlp on 2 hosts of 2 ranks**, 40 steps: `syncopate run -n 4 --lab none --ranks-per-host 2 -- ", caption)

    def test_a_model_has_its_own_contenders(self):
        self.assertEqual(convergence.contenders_of("resnet20"), convergence.CODECS)
        self.assertEqual(list(convergence.contenders_of("lenet_2x2")), ["none", "topk", "mstopk_hierarchical"])
        self.assertIn("ddp", convergence.contenders_of("lenet"))
        for codec in convergence.contenders_of("transformer_adamw"):  # AdamW has its own momentum, and no codec has another rate
            options = convergence.options_of("transformer_adamw", codec)
            self.assertEqual(("--feedback momentum" in options, options.count("--lr "), "--lr 0.002" in options), (False, 1, True))

    def test_a_text_is_put_between_its_own_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.md"
            page.write_text("1<a>old<end>2<b>old<end>3")
            convergence.put(page, "<a>", "<end>", "new")
            convergence.put(page, "<b>", "<end>", "newer")
            self.assertEqual(page.read_text(), "1<a>new<end>2<b>newer<end>3")

    def test_a_recipe_has_the_batch_and_the_algorithm_itself(self):
        options = convergence.options_of("mlp_8", "epochs_1_mask")
        self.assertNotRegex(options, "--global-batch|--algorithm")
        self.assertIn("--lr 0.05", options)
        self.assertEqual(convergence.recipe_of({"options": options}), convergence.recipe("mlp_8", "epochs_1_mask"))

    def test_minutes_are_of_each_rate_and_warm_up_steps_are_not_faster_than_dense_ones(self):
        warm = "topk --warmup-density 0.25 --warmup-steps 10"
        steps = [measured(codec, rate, seconds) for codec, rate, seconds in
                 (("none", "200mbit", 30), ("none", "1gbit", 6), (warm, "200mbit", 3), ("bf16", "1gbit", 3))]
        found = cells([run("none", 1, 0.9), run(warm, 1, 0.9), run("bf16", 1, 0.9)], steps)
        self.assertEqual(found["none"][-2:], ["20.0", "4.0"])
        self.assertEqual(found[warm][-2:], ["6.5", "–"])
        self.assertEqual(found["bf16"][-2:], ["–", "2.0"])

    def test_peers_have_their_own_block_and_dense_run_but_the_target_of_all(self):
        runs = [run("none", 1, 0.90), run("ddp", 1, 0.80, wire=None), run("ddp", 2, 0.70, wire=None), run("ddp_fp16", 2, 0.71, wire=None)]
        steps = [dict(measured(codec, "1gbit", 3), wire_bytes_per_step=sent) for codec, sent in (("ddp", 4096), ("ddp_fp16", 2048))]
        text = convergence.Table("mlp", SETUP, runs, steps).text()
        ours, peers = text.split("DistributedDataParallel")
        self.assertEqual(("`none`" in ours, "`none`" in peers, "`ddp" in ours), (True, False, False))
        self.assertEqual((ours.count("steps to 70.0 %"), peers.count("steps to 70.0 %")), (1, 1))
        self.assertEqual(cells(runs, steps)["ddp_fp16"], ["1", "71.00", "+1.00 (1 pair)", "–", "2", "2.0", "40", "2.0"])
        self.assertEqual(cells(runs)["ddp_fp16"][4:6], ["–", "–"])  # not measured
        self.assertNotIn("`ddp", convergence.Table("mlp", SETUP, [run("none", 1, 0.9), run("ddp_fp16", 1, 0.9)], []).text())

    def test_a_caption_has_all_options_of_the_model(self):
        setup = "--lr 0.05 --dense-below 64 --milestones 10"
        rows = [dict(run("none", 1, 0.9), options=f"{setup} --codec none"), dict(run("onebit", 1, 0.9), setup=setup)]
        convergence.rows_of = lambda file: rows if file == convergence.RUNS else []
        self.assertIn(f"**mlp**, 40 steps: `{setup}`", "".join(table.text() for table in convergence.tables()))

    def test_runs_of_other_setups_have_their_own_table(self):
        old = dict(run("none", 1, 0.9), options="--lr 0.1 --codec none")
        convergence.rows_of = lambda file: [run("none", 1, 0.9), old] if file == convergence.RUNS else []
        self.assertEqual([(table.setup, len(table.rows)) for table in convergence.tables()], [(SETUP, 1), ("--lr 0.1", 1)])


if __name__ == "__main__":
    unittest.main()
