"""all_gather_matmul(), against numpy's product of the whole."""

import pytest
from core_ranks import threads

import tutti

numpy = pytest.importorskip("numpy")
SIZE, M, K = 3, 7, 5  # 3, 3 and 1 rows


def matrix(rows: int, columns: int, seed: int):
    return numpy.random.default_rng(seed).integers(-4, 5, (rows, columns)).astype("float32")


A = matrix(M, K, 1)
B = [matrix(K, 4, 2), matrix(K, 6, 3)]
BIAS = [matrix(1, 4, 4)[0], matrix(1, 6, 5)[0]]


def shard_of(rank: int, m: int = M):
    part = -(-m // SIZE)
    return A[:m][rank * part : (rank + 1) * part].copy()


@pytest.mark.parametrize("algorithm", [None, "unfused", "fused", "pipelined_shift"])
def test_products_are_those_of_the_whole(algorithm) -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        a, m = shard_of(communicator.rank, 6), 6
        one = communicator.all_gather_matmul(a, B[0], algorithm=algorithm)
        assert numpy.array_equal(one, A[:m] @ B[0])
        out, gathered = numpy.empty((m, 4), "float32"), numpy.empty((m, K), "float32")
        weight = numpy.ascontiguousarray(B[0].T)
        made = communicator.all_gather_matmul(
            a, weight, out, bias=BIAS[0], gathered=gathered, b_layout="column", algorithm=algorithm,
            timeout=20,
        )
        assert made is out
        assert numpy.array_equal(out, A[:m] @ B[0] + BIAS[0])
        assert numpy.array_equal(gathered, A[:m])

    threads(SIZE, rank_of)


def test_several_products_of_uneven_shards() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        a = shard_of(communicator.rank)
        workspace = numpy.empty((M, K), "float32")
        made = communicator.all_gather_matmul(
            a, B, [None, numpy.empty((M, 6), "float32")], m=M, bias=BIAS, workspace=workspace
        )
        for c, b, bias in zip(made, B, BIAS):
            assert numpy.array_equal(c, A @ b + bias)
        plan = communicator.all_gather_matmul_plan(a, B, m=M, algorithm="unfused")
        assert plan.algorithm == "unfused" and plan.config and plan.why

    threads(SIZE, rank_of)


def test_what_does_not_fit_is_refused() -> None:
    def rank_of(communicator: tutti.Communicator) -> None:
        a, run = shard_of(communicator.rank, 6), communicator.all_gather_matmul
        refused = [
            (lambda: run(a[0], B[0]), "is a matrix"),
            (lambda: run(a, B[0], m=9), "say `m` where ranks differ"),
            (lambda: run(a, B[0].T.copy()), r"B is \[5, n\] here, not \[4, 5\]"),
            (lambda: run(a, B[0], b_layout="rows"), "unknown layout"),
            (lambda: run(a, B[0].astype("float16")), "B has the type float16, but the shard float32"),
            (lambda: run(a, B, [numpy.empty((6, 4), "float32")]), "2 products need 2, not 1"),
            (lambda: run(a, B[0], bias=BIAS[1]), "the bias has 6 elements, but needs 4"),
            (lambda: run(a, B[0], gathered=a), "`gathered` has 10 elements, but needs 30"),
            (lambda: run(a, []), "no matrix B"),
            (lambda: run(a, B[0], algorithm="quickest"), "quickest"),
            (lambda: run(a, B[0], timeout=-1), "a number of seconds above 0"),
        ]
        for call, text in refused:
            with pytest.raises(tutti.InvalidArgumentError, match=text):
                call()
        assert numpy.array_equal(run(a, B[0]), A[:6] @ B[0])  # the communicator goes on

    threads(SIZE, rank_of)
