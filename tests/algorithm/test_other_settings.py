"""A learner that goes on from the checkpoint of another: its weights, but settings of its own.

So do the trials of population-based training, in which RLlib's own keep the other's learning rate.
"""

import torch
from inside import flat
from tiny import keys_config


def learner(config):
    """A learner as it is in an algorithm, in this process and without one."""
    config.validate()
    spaces = {"default_policy": (config.facts.observation_space, config.facts.action_space)}
    made = config.copy(copy_frozen=False).build_learner(spaces=spaces)
    made.build()
    return made


def optimizers(one):
    return {
        "policy": one.get_optimizer("default_policy"),
        "conspec": one.reward_model.models["conspec"].learner.optimizer,
        "rnd": one.reward_model.models["rnd"].optimizer,
    }


def config(*, coeff, lr, models_lr):
    made = keys_config(intrinsic_coeff=coeff, lr=models_lr).training(lr=lr)
    return made.rewards(models={"rnd": {"dim": 8, "lr": models_lr}})


def lrs(one):
    return {name: o.param_groups[0]["lr"] for name, o in optimizers(one).items()}


def step(one):
    """A gradient step by every optimizer, so that there are moments to restore."""
    for optimizer in optimizers(one).values():
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.ones_like(parameter)
        optimizer.step()


def moments(one):
    return {name: flat(o.state_dict()["state"]) for name, o in optimizers(one).items()}


def test_weights_and_moments_are_the_others_and_settings_its_own():
    better = learner(config(coeff=0.25, lr=0.001, models_lr=0.002))
    step(better)
    other = learner(config(coeff=0.75, lr=0.0625, models_lr=0.125))
    other.set_state(better.get_state())
    assert moments(other) == moments(better) and all(moments(other).values())
    assert flat(other.module.get_state()) == flat(better.module.get_state())
    assert lrs(other) == {"policy": 0.0625, "conspec": 0.125, "rnd": 0.125}
    assert other.reward_model.models["conspec"].options.intrinsic_coeff == 0.75


def test_a_schedule_goes_on_where_it_had_come_to():
    schedule = [[0, 0.001], [1000, 0.5]]
    before = learner(config(coeff=0.25, lr=schedule, models_lr=0.002))
    for group in optimizers(before)["policy"].param_groups:
        group["lr"] = 0.25
    after = learner(config(coeff=0.25, lr=schedule, models_lr=0.002))
    after.set_state(before.get_state())
    assert lrs(after)["policy"] == 0.25
