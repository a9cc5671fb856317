"""Planning: ranks share every step, and plans of any size agree, mixed or not."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.loader.order.mixing import Mixture
from refinery.loader.order.order import OrderParams
from refinery.loader.read.samples import Domain
from refinery.loader.stream.schedule import Schedule
from tests.sampling import examples

LENGTH = 8


def schedule(tokens: list[int], shape: OrderParams, mixed: bool, **ranks: int) -> Schedule:
    if not mixed:
        return Schedule([Domain("", enumerate(tokens), LENGTH)], None, order=shape, seed=3, **ranks)
    domains = [Domain(f"d{i}", [(i, count)], LENGTH) for i, count in enumerate(tokens)]
    stage = MixStage({domain.name: i + 1.0 for i, domain in enumerate(domains) if domain.samples})
    params = MixParams([stage], repeats=2, block=32)
    mixture = Mixture([domain.name for domain in domains], [domain.samples for domain in domains], LENGTH, 3, params)
    return Schedule(domains, mixture, order=shape, seed=3, **ranks)


@given(
    st.lists(st.integers(0, 900), min_size=1, max_size=4).filter(any),
    st.builds(OrderParams, st.integers(1, 9), st.integers(1, 20), st.integers(1, 5)),
    st.booleans(),
    st.integers(1, 12),
    st.integers(1, 5),
    st.data(),
)
@settings(max_examples=examples(60), deadline=None)
def test_ranks_share_the_steps_of_one_order(
    tokens: list[int], shape: OrderParams, mixed: bool, world_size: int, batch_size: int, data: st.DataObject
) -> None:
    one = schedule(tokens, shape, mixed, rank=0, world_size=1, batch_size=1)
    assert one.length is not None
    whole = one.samples(0, 0, one.length)
    names = list(zip(*(values.tolist() for values in whole[:3]), strict=True))
    assert len(set(names)) == len(names)  # no sample twice in an epoch of its domain
    start = data.draw(st.integers(0, one.length - 1))
    ranks: dict[str, Any] = {"world_size": world_size, "batch_size": batch_size}
    plans = [schedule(tokens, shape, mixed, rank=r, **ranks).plan(0, start, 64) for r in range(world_size)]
    step = world_size * batch_size
    for i in range(len(plans[0].mine)):
        taken = sorted(row for plan in plans for row in plan.mine[i].tolist() if row >= 0)
        assert taken == list(range(i * step, min((i + 1) * step, plans[0].stop - start)))
    for plan in plans:
        assert plan.mine.shape == (len(plans[0].mine), batch_size)
        for found, expected in zip((plan.domains, plan.epochs, plan.samples, plan.places), whole, strict=True):
            assert (found == expected[start : plan.stop]).all()
        assert plan.stop == one.length or (plan.stop - start) % step == 0
    sizes = np.array([max(domain.samples, 1) for domain in one.domains])
    reached = np.zeros(len(sizes), np.int64)
    np.add.at(reached, whole[0][:start], 1)
    assert (plans[0].reached == reached).all()
    assert (plans[0].epochs * sizes[plans[0].domains] + plans[0].places >= reached[plans[0].domains]).all()


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 200))
@settings(max_examples=examples(20), deadline=None)
def test_plans_follow_each_other_whatever_their_size(world_size: int, batch_size: int, rows: int) -> None:
    one = schedule([700, 333], OrderParams(3, 4, 2), False, rank=0, world_size=world_size, batch_size=batch_size)
    position, samples, steps = 0, [], 0
    while position < (one.length or 0):
        plan = one.plan(4, position, rows)
        assert plan.start == position and plan.epoch == 4
        samples += plan.samples.tolist()
        position, steps = plan.stop, steps + len(plan.mine)
    assert sorted(samples) == list(range(130))
    assert steps == -(-130 // (world_size * batch_size))
