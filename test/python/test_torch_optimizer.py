"""DistributedOptimizer trains as one process alone does."""

import torch_job


def test_weights_are_those_of_one_process_skipped_steps_leave_no_trace_and_hooks_are_called():
    for wrong in torch_job.run("torch_optimizer.py", "everything", 2):
        foreign, in_weights, late = wrong.pop("refused")
        assert wrong == {"as_alone": [], "strides": [], "micro_batches": [], "skipped_steps": [], "half_models": [], "hooks": [], "ends": []}
        assert "which the model has" in foreign and "reduce_broadcast" in in_weights and "before DistributedOptimizer" in late
