"""torch.ops.tutti: results, schemas, fakes, compiled programs, refusals; and that lies are caught."""

import dataclasses
import os
from typing import Any

import pytest
import torch
from forked import run_ranks
from torch_ranks import with_communicator
from torch.library import opcheck

import tutti
from tutti.torch import groups, ops

OPS = torch.ops.tutti
G = "tests"
SLOW_INDUCTOR = pytest.param(
    "inductor",
    marks=pytest.mark.skipif(
        "TUTTI_TEST_INDUCTOR" not in os.environ,
        reason="its C++ compiler takes a minute: set TUTTI_TEST_INDUCTOR=1",
    ),
)


def mine(communicator: Any, rows: int = 4) -> torch.Tensor:
    return torch.arange(rows * 3.0).reshape(rows, 3) + 100 * communicator.rank


def check_results(communicator: Any) -> None:
    rank, size = communicator.rank, communicator.size
    x = mine(communicator)
    all_of = torch.stack([x - 100 * rank + 100 * other for other in range(size)])
    assert torch.equal(OPS.all_reduce(x, "sum", G), all_of.sum(0))
    assert torch.equal(OPS.all_reduce(x, "max", G), all_of.amax(0))
    assert torch.equal(OPS.all_gather(x, G), all_of.reshape(-1, 3))
    assert OPS.all_gather(torch.tensor(float(rank)), G).tolist() == list(range(size))
    rows = slice(rank * 2, rank * 2 + 2)
    assert torch.equal(OPS.reduce_scatter(x, "sum", G), all_of.sum(0)[rows])
    assert torch.equal(OPS.all_to_all(x, G), all_of[:, rows].reshape(-1, 3))
    assert torch.equal(OPS.broadcast(x, 1, G), all_of[1])
    flags = torch.tensor([rank == 0, True])
    assert OPS.all_gather(flags, G).tolist() == [True, True, False, True]
    check_out_variants(communicator, x, all_of)


def check_out_variants(communicator: Any, x: torch.Tensor, all_of: torch.Tensor) -> None:
    rank, size = communicator.rank, communicator.size
    rows = slice(rank * 2, rank * 2 + 2)
    place = x.clone()
    assert OPS.all_reduce_(place, "avg", G) is None
    assert torch.equal(place, all_of.mean(0))
    OPS.broadcast_(place, 0, G)
    OPS.all_reduce_out(x, "sum", G, out=place)
    assert torch.equal(place, all_of.sum(0))
    OPS.broadcast_out(x, 0, G, place)  # by position
    assert torch.equal(place, all_of[0])
    OPS.all_to_all_out(x, G, out=place)
    assert torch.equal(place, all_of[:, rows].reshape(-1, 3))
    gathered, scattered = x.new_empty(size * 4, 3), x.new_empty(2, 3)
    OPS.all_gather_out(x, G, out=gathered)
    OPS.reduce_scatter_out(x, "sum", G, out=scattered)
    assert torch.equal(gathered, all_of.reshape(-1, 3))
    assert torch.equal(scattered, all_of.sum(0)[rows])


def test_results() -> None:
    with_communicator(2, check_results)


def calls(x: torch.Tensor) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """One call of each operator for two ranks."""
    out, small, large = torch.empty_like(x), x.new_empty(2, 3), x.new_empty(8, 3)
    return [
        (OPS.all_reduce, (x, "sum", G), {}),
        (OPS.all_reduce_, (x, "sum", G), {}),
        (OPS.all_reduce_out, (x, "sum", G), {"out": out}),
        (OPS.reduce_scatter, (x, "sum", G), {}),
        (OPS.reduce_scatter_out, (x, "sum", G), {"out": small}),
        (OPS.all_gather, (x, G), {}),
        (OPS.all_gather_out, (x, G), {"out": large}),
        (OPS.all_to_all, (x, G), {}),
        (OPS.all_to_all_out, (x, G), {"out": out}),
        (OPS.broadcast, (x, 0, G), {}),
        (OPS.broadcast_, (x, 0, G), {}),
        (OPS.broadcast_out, (x, 0, G), {"out": out}),
    ]


def check_ops(communicator: Any) -> None:
    every = calls(mine(communicator))
    defined = {f"{of.name}{end}" for of in ops.COLLECTIVES for end in ("", "_out")}
    defined |= {f"{of.name}_" for of in ops.COLLECTIVES if of.in_place}
    assert {str(operator).removeprefix("tutti.") for operator, _, _ in every} == defined
    for operator, arguments, keywords in every:
        opcheck(operator.default, arguments, keywords)


def test_opcheck() -> None:
    with_communicator(2, check_ops)


def program(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    y = OPS.all_reduce(x * 2, "sum", G) + 1
    OPS.all_reduce_(y, "max", G)
    OPS.all_reduce_out(y, "sum", G, out=out)
    z = OPS.all_gather(OPS.reduce_scatter(y + out, "sum", G), G)
    return OPS.all_to_all(z, G) + OPS.broadcast(out, 0, G)


def check_compiled(communicator: Any, backend: str) -> None:
    x = mine(communicator)
    out, out_compiled = torch.empty_like(x), torch.empty_like(x)
    eager = program(x, out)
    compiled = torch.compile(program, fullgraph=True, backend=backend)(x, out_compiled)
    assert torch.equal(eager, compiled)
    assert torch.equal(out, out_compiled)


@pytest.mark.parametrize("backend", ["aot_eager", SLOW_INDUCTOR])
def test_compiled_equals_eager(backend: str) -> None:
    with_communicator(2, check_compiled, backend)


def check_dynamic(communicator: Any) -> None:
    """One compiled program for several sizes."""

    def body(x: torch.Tensor) -> torch.Tensor:
        return OPS.reduce_scatter(OPS.all_gather(x, G), "sum", G) * x.shape[0]

    compiled = torch.compile(body, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (3, 5, 8):
        x = mine(communicator, rows)
        assert torch.equal(compiled(x), body(x))


def test_dynamic_shapes() -> None:
    with_communicator(2, check_dynamic)


def check_refusals(communicator: Any) -> None:
    x = mine(communicator)
    refused = [
        (lambda: OPS.all_reduce(x.t(), "sum", G), "not contiguous"),
        (lambda: OPS.all_reduce_(x > 0, "sum", G), "no elements of type torch.bool"),
        (lambda: OPS.all_reduce(x.to(torch.complex64), "sum", G), "no elements of type"),
        (lambda: OPS.all_reduce(x, "xor", G), "unknown reduction"),
        (lambda: OPS.all_reduce_out(x, "sum", G, out=x.int()), "torch.int32"),
        (lambda: OPS.all_reduce_out(x, "sum", G, out=x.new_empty(8, 3).t()), "not contiguous"),
        (lambda: OPS.all_gather_out(x, G, out=x.new_empty(3)), "out has 3 elements, but needs 24"),
        (lambda: OPS.reduce_scatter(x[:3], "sum", G), "no multiple of 2"),
        (lambda: OPS.broadcast(x, 2, G), "root"),
        (lambda: OPS.all_reduce(x, "sum", "nobody"), 'called "nobody"'),
        (lambda: OPS.all_gather(x, "nobody"), 'called "nobody"'),
    ]
    for call, text in refused:
        with pytest.raises(tutti.InvalidArgumentError, match=text):
            call()
    assert OPS.all_reduce(x, "min", G).shape == x.shape  # the communicator is still usable


def test_refusals() -> None:
    with_communicator(2, check_refusals)


def check_names(communicator: Any) -> None:
    with tutti.Communicator(tutti.UniqueId.create(), 0, 1, backend="host") as other:
        with pytest.raises(tutti.InvalidArgumentError, match="already means"):
            groups.register(G, other)
        groups.register("other", other)
        assert groups.get("other") is other and groups.size_of("other") == 1
        assert groups.get(G) is communicator
    groups.register("other", communicator)  # a closed one may be replaced
    groups.unregister("other")
    with pytest.raises(tutti.InvalidArgumentError, match="Known names: tests"):
        groups.get("other")
    with pytest.raises(tutti.InvalidArgumentError, match="tensors on cuda"):
        groups.get(G, "cuda")


def test_names() -> None:
    with_communicator(2, check_names)


def broken(name: str, **changes: Any) -> torch.library.Library:
    """tutti's all_gather and all_reduce in another namespace, whose fakes have these changes."""
    library = torch.library.Library(name, "DEF")
    for of in ops.COLLECTIVES:
        ops.define(library, of)
        if of.name == "all_gather":
            lying = ops._named(of, *ops._fakes(dataclasses.replace(of, **changes)))["all_gather"]
            torch.library.register_fake(
                f"{name}::all_gather", lying, lib=library, allow_override=True
            )
    return library


def check_lying_shape(communicator: Any) -> None:
    library = broken("tutti_lying", empty=lambda input, group: torch.empty_like(input))
    x = mine(communicator)
    opcheck(torch.ops.tutti_lying.all_reduce.default, (x, "sum", G))  # nothing else is broken
    with pytest.raises(Exception, match="(?i)shape|size|mismatch"):
        opcheck(torch.ops.tutti_lying.all_gather.default, (x, G))
    del library


def test_a_fake_that_lies_about_a_shape_is_caught() -> None:
    with_communicator(2, check_lying_shape)


def check_forgotten_mutation(communicator: Any) -> None:
    library = torch.library.Library("tutti_forgetful", "DEF")
    library.define("all_reduce_(Tensor tensor, str op, str group) -> ()")
    _, _, in_place = ops._kernels(ops.COLLECTIVES[0], groups.cpu_raws)
    library.impl("all_reduce_", in_place, "CPU")
    torch.library.register_fake("tutti_forgetful::all_reduce_", lambda *_: None, lib=library)
    with pytest.raises(Exception, match="(?i)mutat|modified|alias"):
        opcheck(torch.ops.tutti_forgetful.all_reduce_.default, (mine(communicator), "sum", G))


def test_an_operator_that_forgets_its_mutation_is_caught() -> None:
    with_communicator(2, check_forgotten_mutation)


def check_wrong_result(rank: int) -> None:
    raise AssertionError("a rank's failure")


def test_a_rank_that_fails_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="a rank's failure"):
        run_ranks(2, check_wrong_result)
