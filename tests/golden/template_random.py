# SPDX-License-Identifier: Apache-2.0
"""Templates drawn from a small grammar, for template.py: as many as asked for, the same for the same seed."""
import random

NUMBERS = ["5", "-5", "0", "42", "1234567", "255", "true", "2.5", "-0.0", "1234.5678", "1e10", "1e22", "0.00001",
           "123456789.0", "100.0", "0.1", "9.9995", "65", "1e300*n*1e10", "-1e300*n*1e10"]
OTHERS = ["'ab'", "'h\xe9llo'", "''", "none", "[1]", "'<'|safe", "nope"]


def formats(seed, count):
    """Formats of all three kinds, most of them right."""
    draw = random.Random(seed)

    def one(*parts):
        return "".join(draw.choice(p) for p in parts)

    for _ in range(count):
        value = draw.choice(NUMBERS if draw.random() < .75 else OTHERS)
        if draw.random() < .5:
            spec = one(["", "", "<", ">", "^", "=", "*^", "\xe9>", "0=", "{<"], ["", "", "", "+", "-", " "],
                       ["", "", "", "z"], ["", "", "#"], ["", "", "0"], ["", "", "5", "10", "20", "1"],
                       ["", "", "", ",", "_"], ["", "", "", ".0", ".1", ".2", ".3", ".10", "."],
                       ["", "", *"dsfegxboXGEF%ncrq"])
            yield "{{ '{%s:%s}|'.format(%s) }}" % (draw.choice(["", "", "", "", "!r", "!s", "!a"]), spec, value)
        else:
            spec = "%" + one(["", "", "-", "0", "+", " ", "#", "0-", "+0", "#0"], ["", "", "5", "10", "*", "1"],
                             ["", "", "", ".0", ".2", ".5", ".*", "."], ["", "", "", "l", "h"], "diuoxXeEfFgGcrsa%q")
            values = [draw.choice(["3", "8", "-6", "0"]) for _ in range(spec.count("*"))] + [value]
            yield "{{ '%s|' %% (%s,) }}" % (spec, ", ".join(values))
