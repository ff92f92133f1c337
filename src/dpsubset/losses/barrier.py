"""Newton's method on a log barrier, in as many bits as it is given: it needs no assumption.

For problems in units of the radius: |z| <= 1 in the norm of the constraint. The l1 ball has slacks
u >= |z| behind z. What comes out is a proposal; `certified` and `certified_rows` prove it.
"""

from __future__ import annotations

from fractions import Fraction

import flint

Vector = list[flint.arb]


def minimise(h: list[Vector], c: Vector, constraint: str, goal: flint.arb, bits: int) -> Vector:
    """Where t (z'Hz - 2c'z) + barrier is least, t >= goal, as far as ``bits`` can tell."""
    k = len(c)
    n = 2 * k if constraint == "l1" else k
    z = [flint.arb(0)] * k + [flint.arb(1) / (2 * k)] * (n - k)
    # The first problem is almost the barrier alone, whose minimum z = 0 is known.
    size = sum((abs(x) for x in (*c, *(e for row in h for e in row))), flint.arb(1))
    t = flint.arb((1 / size).mid())
    while t < goal:
        t = t * 8
        # The last point is polished: the proof that more bits are enough is about a limit.
        enough = flint.arb(1) / 64 if t < goal else flint.arb(2) ** (-bits // 2)
        for _ in range(most_steps(bits)):
            step, decrement = newton(h, c, z, t, constraint)
            if step is None:
                raise ArithmeticError("too few bits")
            damping = 1 if decrement < flint.arb(1) / 16 else 1 / (1 + decrement.sqrt())
            z = [flint.arb((a + damping * s).mid()) for a, s in zip(z, step, strict=True)]
            if decrement < enough:
                break
    return z[:k]


def most_steps(bits: int) -> int:
    """Newton steps for each t. Any fixed number would be too few for some k."""
    return bits


def newton(
    h: list[Vector], c: Vector, z: Vector, t: flint.arb, constraint: str
) -> tuple[Vector | None, flint.arb]:
    """Newton step of t q + barrier at z, and the square of its decrement."""
    k, n = len(c), len(z)
    gradient = [flint.arb(0)] * n
    hessian = [[flint.arb(0)] * n for _ in range(n)]
    for i in range(k):
        hz = sum((h[i][j] * z[j] for j in range(k)), flint.arb(0))
        gradient[i] = 2 * t * (hz - c[i])
        for j in range(k):
            hessian[i][j] = 2 * t * h[i][j]
    if constraint == "box":  # -sum log(1 - z^2)
        for i in range(n):
            room = 1 - z[i] * z[i]
            gradient[i] += 2 * z[i] / room
            hessian[i][i] += 2 / room + 4 * z[i] * z[i] / room**2
    elif constraint == "ball":  # -log(1 - |z|^2)
        room = 1 - sum((x * x for x in z), flint.arb(0))
        for i in range(n):
            gradient[i] += 2 * z[i] / room
            hessian[i][i] += 2 / room
            for j in range(n):
                hessian[i][j] += 4 * z[i] * z[j] / room**2
    else:  # -sum log(u^2 - z^2) - log(1 - sum u)
        room = 1 - sum(z[k:], flint.arb(0))
        for i in range(k):
            a, u = z[i], z[k + i]
            w = u * u - a * a
            gradient[i] += 2 * a / w
            gradient[k + i] += -2 * u / w + 1 / room
            hessian[i][i] += 2 / w + 4 * a * a / w**2
            hessian[k + i][k + i] += -2 / w + 4 * u * u / w**2
            hessian[i][k + i] -= 4 * a * u / w**2
            hessian[k + i][i] -= 4 * a * u / w**2
            for j in range(k):
                hessian[k + i][k + j] += 1 / room**2
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


def arb(x: Fraction) -> flint.arb:
    """The midpoint of x at the working precision."""
    return flint.arb((flint.arb(x.numerator) / x.denominator).mid())


def fraction(x: flint.arb) -> Fraction:
    """The midpoint as the number that it is."""
    mantissa, exponent = x.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
