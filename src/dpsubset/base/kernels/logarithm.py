"""A logarithm made of IEEE additions, multiplications and divisions, equal on every machine.

Library logarithms differ in the last bit between machines and, where a compiler vectorises, between
the middle and the end of an array. A cell could then be quantized differently depending on its
position, that is, on other records.
"""

from __future__ import annotations

import math

from .compiled import kernel

#: log 2 in two parts; the first has so few bits that its multiples are exact.
_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10

#: Minimax coefficients of log((1 + s) / (1 - s)) / s in s^2 (FreeBSD's msun, e_log.c).
_1 = 6.666666666666735130e-01
_2 = 3.999999999940941908e-01
_3 = 2.857142874366239149e-01
_4 = 2.222219843214978396e-01
_5 = 1.818357216161805012e-01
_6 = 1.531383769920937332e-01
_7 = 1.479819860511658591e-01


@kernel
def logarithm(x: float) -> float:
    """The natural logarithm of a positive finite number, within one unit in the last place."""
    part, power = math.frexp(x)  # part in [1/2, 1)
    if part < 0.7071067811865476:
        part *= 2.0
        power -= 1
    f = part - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = z * (_1 + z * (_2 + z * (_3 + z * (_4 + z * (_5 + z * (_6 + z * _7))))))
    half = 0.5 * f * f
    return power * _HIGH - ((half - (s * (half + series) + power * _LOW)) - f)
