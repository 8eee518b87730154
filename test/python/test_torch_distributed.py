"""The library's DistributedDataParallel chooses buckets and codecs by costs, and its state goes on."""

import pytest
import torch_job

import syncopate.torch
from syncopate.torch.shared import codec_choice


def test_it_is_torchs_with_buckets_a_codec_and_state():
    assert torch_job.run("torch_distributed.py", "everything", 2) == [{}] * 2


def test_the_size_of_buckets_grows_with_start_up_times_and_is_a_power_of_two():
    law = codec_choice.Law(start_s=1e-3, s_per_byte=1e-8)
    assert law.bucket_bytes(10 << 20) == 1 << 20  # the root of 10 MiB * 100 kB is 1.02e6
    assert codec_choice.Law(16e-3, 1e-8).bucket_bytes(10 << 20) == 4 << 20


@pytest.mark.parametrize(("none_s", "chosen"), [(2.0, "fp16"), (0.1, "none"), (1.02, "none")])
def test_a_codec_must_shorten_the_step_and_not_only_the_exchange(none_s, chosen):
    choice = codec_choice._choice([5.0, 10.0], {"none": [4.0, none_s], "fp16": [1.0, 0.6], "topk:0.1": [1.0, 0.9]})
    assert choice.codec == chosen and choice.predicted_s["none"] == 10 + none_s


@pytest.mark.parametrize(("at_least", "chosen"), [(0.1, "fp16"), (0.12, "none")])
def test_the_user_sets_the_share_of_the_step_that_a_codec_must_save(at_least, chosen):
    choice = codec_choice._choice([5.0, 10.0], {"none": [4.0, 2.0], "fp16": [1.0, 0.6]}, at_least)  # 12 s and 10.6 s
    assert choice.codec == chosen and choice.passes_s == 10
    assert chosen != "none" or "by 12%" in choice.reason


@pytest.mark.parametrize(
    ("codec", "at_least"), [("topk:0.01", 0.1), ("auto:topk:0.01", 0.1), ("auto:topk:0.01+none", 1.0), ("auto:topk:0.01+none", -0.1)]
)
def test_a_share_without_effect_is_refused(codec, at_least):
    with pytest.raises(syncopate.Misuse, match="allowed: 0 to 1 with codec='auto:A\\+none'"):
        syncopate.torch.HookState(codec=codec, at_least=at_least)


def test_times_of_other_buckets_do_not_count(monkeypatch):
    now = iter(range(0, 1000, 100))
    monkeypatch.setattr(codec_choice.time, "perf_counter", lambda: next(now))
    timeline = codec_choice.Timeline()
    for step in range(codec_choice.STEPS + 2):  # the first has one bucket; the second is the first of these
        assert not timeline.is_complete
        for at, size in [(1, 10)] if step == 0 else [(1, 4), (2, 6)]:
            timeline.bucket(100 * (step - 1) + at, size)
        timeline.end_step()
    assert timeline.is_complete and timeline.sizes == (4, 6) and timeline.ready_s() == [1, 2]
