"""A GPT script with accumulation, autocast, clipping, checkpoints, torch.compile and a recorder, on the backend, the class and the hook."""

import pytest
import torch_gpt
import torch_job


@pytest.mark.cpu_only("the script has no option for a device")
def test_the_script_trains_alike_on_all_ranks_resumes_and_compiles():
    (first, recorded), (second, _) = torch_job.run("torch_gpt.py", "everything", 2)
    assert first == second
    assert all(recorded.values())
    for name in torch_gpt.WRAPS:
        assert first[f"{name} once"] == first[f"{name} resumed"] != first[f"{name} begun"], name
    assert first["backend plain"] == first["torch alone"]
