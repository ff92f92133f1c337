"""A log-barrier method in arbitrary precision, without assumptions on the problem.

Problems are scaled by the radius, z = b / radius, with the slacks of the constraint behind z. The
result is a proposal; `certified` and `certified_rows` prove a bracket from it. They catch its
`ArithmeticError`, which says that the working precision is too low, and double the precision.
"""

from __future__ import annotations

import flint

from ...constraints.base import Constraint, Vector


def barrier_minimum(
    h: list[Vector], c: Vector, constraint: Constraint, goal: flint.arb, bits: int
) -> Vector:
    """Minimise t (z'Hz - 2c'z) + barrier for some t >= goal, as far as ``bits`` allow."""
    k = len(c)
    z = constraint.start(k)
    # In the first problem the barrier dominates, and z is close to its minimum.
    size = sum((abs(x) for x in (*c, *(e for row in h for e in row))), flint.arb(1))
    t = flint.arb((1 / size).mid())
    while t < goal:
        t = t * 8
        # Iterate to the limit of the precision for the last t: the proof that doubling the bits
        # suffices is about that limit.
        enough = flint.arb(1) / 64 if t < goal else flint.arb(2) ** (-bits // 2)
        for _ in range(most_steps(bits)):
            step, decrement = newton_step(h, c, z, t, constraint)
            if step is None:
                raise ArithmeticError("too few bits")
            damping = 1 if decrement < flint.arb(1) / 16 else 1 / (1 + decrement.sqrt())
            z = [flint.arb((a + damping * s).mid()) for a, s in zip(z, step, strict=True)]
            if decrement < enough:
                break
    return z[:k]


def barrier_value(z: Vector, k: int, constraint: Constraint) -> flint.arb:
    """The barrier at z; not finite outside of C."""
    slacks = constraint.slacks(z, k)
    if not all(x > 0 for x in slacks):
        return flint.arb("nan")
    return -sum((x.log() for x in slacks), flint.arb(0))


def most_steps(bits: int) -> int:
    """Largest number of Newton steps for each t. Any constant would be too small for some k."""
    return bits


def newton_step(
    h: list[Vector], c: Vector, z: Vector, t: flint.arb, constraint: Constraint
) -> tuple[Vector | None, flint.arb]:
    """The Newton step of t q + barrier at z, and the square of its decrement."""
    k, n = len(c), len(z)
    gradient = [flint.arb(0)] * n
    hessian = [[flint.arb(0)] * n for _ in range(n)]
    for i in range(k):
        hz = sum((h[i][j] * z[j] for j in range(k)), flint.arb(0))
        gradient[i] = 2 * t * (hz - c[i])
        for j in range(k):
            hessian[i][j] = 2 * t * h[i][j]
    constraint.barrier(z, k, gradient, hessian)
    try:
        solved = flint.arb_mat(hessian).solve(flint.arb_mat([[-g] for g in gradient]))
    except ZeroDivisionError:  # singular at this precision
        return None, flint.arb(0)
    step = [solved[i, 0].mid() for i in range(n)]
    decrement = -sum((g * s for g, s in zip(gradient, step, strict=True)), flint.arb(0))
    decrement = flint.arb(decrement.mid())
    if not (decrement.is_finite() and decrement >= 0):
        return None, flint.arb(0)
    return step, decrement
