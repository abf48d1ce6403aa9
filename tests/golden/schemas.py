#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes schemas.jsonl, the suite of a decoder that is held to a JSON schema: schemas.py [--count N] [-o FILE]. A line has a schema,
# texts that it accepts and texts that it does not, N (10) of each where there are as many, the same on every run. jsonschema judges
# the texts, with patterns read as Python and as ECMA-262 read them; where the two differ, or an object has a key twice, a text is left
# out. Members come in the order of `properties`, others after them. Needs Python 3.11 and jsonschema[format].
import argparse, collections, copy, functools, json, math, pathlib, random, re, urllib.parse
from decimal import Decimal
from fractions import Fraction
from re import _compiler as regex_compiler, _parser as regex_parser

from jsonschema import Draft202012Validator

LONGEST, DEEPEST = 360, 8


def bounded(kind, low, high, lo=None, hi=None, **more):
    return {"type": kind} | ({} if lo is None else {low: lo}) | ({} if hi is None else {high: hi}) | more


def obj(**members):
    """An object; members marked by opt() are not required."""
    required = [name for name, s in members.items() if not isinstance(s, tuple)]
    plain = {name: s[0] if isinstance(s, tuple) else s for name, s in members.items()}
    return {"type": "object", "properties": plain} | ({"required": required} if required else {})


def each(prefix, make, /, **cases):
    """A named schema for each case, the arguments of `make`."""
    return {f"{prefix}-{name.replace('_', '-')}": make(*case) if isinstance(case, tuple) else make(case) for name, case in cases.items()}


STR, INT, NUM, BOOL, NULL = ({"type": t} for t in ("string", "integer", "number", "boolean", "null"))
ints, nums = (functools.partial(bounded, t, "minimum", "maximum") for t in ("integer", "number"))
chars = functools.partial(bounded, "string", "minLength", "maxLength")
any_of, one_of, all_of, enum = (lambda *s, k=k, **more: {k: list(s)} | more for k in ("anyOf", "oneOf", "allOf", "enum"))
opt, ref, fmt = lambda s: (s,), lambda name: {"$ref": "#/$defs/" + name}, lambda name: {"type": "string", "format": name}
const, maybe, words = lambda v: {"const": v}, lambda s: any_of(s, NULL), lambda *v: STR | enum(*v)
closed, maps = lambda **members: obj(**members) | {"additionalProperties": False}, lambda s, **more: {"type": "object", "additionalProperties": s} | more
array, pat = lambda s, *n: bounded("array", "minItems", "maxItems", *n) | {"items": s}, lambda p, *n: chars(*n) | {"pattern": p}
defs, multiple, row = (lambda schema, **more: schema | {"$defs": more}, lambda kind, m: {"type": kind, "multipleOf": m},
                        lambda *items, **more: {"type": "array", "prefixItems": list(items)} | more)
PRICE, ROOT = nums(0, multipleOf=0.01), {"$ref": "#"}
SMALL = {
    **each("type", lambda *t: {"type": t[0] if len(t) == 1 else list(t)}, string="string", integer="integer", number="number", boolean="boolean", null="null",
        array="array", object="object", string_or_null=("string", "null"), integer_or_boolean=("integer", "boolean"), containers=("array", "object")),
    **each("enum", enum, strings=("north", "east", "south", "west"), prefixes=("a", "ab", "abc", "abcd", "b"), quotes=('say "hi"', "it's", '"', '""'),
        backslashes=("C:\\temp", "\\", "\\\\n", "a\\\"b", "n\\"), unicode=("café", "東京", "🙂 ok", "Ωmega", "e\u0301"),
        control=("line\nbreak", "tab\t", "\u0001", "\b\f\r", "/"), numbers=(0, 1, 10, 100, -5, 2.5, -0.75), mixed=("1", 1, True, None, "null", 3.25, "true"),
        arrays=([], [1], [1, 2], ["a", None]), objects=({}, {"x": 1}, {"x": 1, "y": [True]}, {"y": "x"})), "number-mixed-bounds": nums(0, exclusiveMaximum=100),
    "enum-typed-integer": INT | enum("a", 4, 40, 4.5, False), "integer-exclusive": {"type": "integer", "exclusiveMinimum": -1, "exclusiveMaximum": 10},
    **each("const", const, string="fixed", escapes="a\"b\\c\nd/é", integer=42, decimal=-12.5, null=None, array=[1, "two", None, []],
        object={"kind": "point", "at": [0, 1]}, empty_object={}), "number-exclusive": NUM | {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    **each("integer", ints, minimum=0, maximum=(None, 99), range=(1, 10), negative_range=(-20, -5), zero_crossing=(-7, 12), uneven_range=(87, 1234),
        large_range=(1000000, 9999999999), one_value=(7, 7), decimal_bounds=(0.5, 3.75), beyond_doubles=(9007199254740993, 9007199254740999)),
    **each("number", nums, minimum=0, maximum=(None, -1.5), range=(0.5, 3.75), negative_range=(-2.5, -0.25), zero_crossing=(-0.5, 0.5), narrow=(0.001, 0.002),
        large=(1000000, 2500000.5)), "number-exclusive-decimals": NUM | {"exclusiveMinimum": 0.1, "exclusiveMaximum": 0.35},
    "number-two-minimums": nums(2, exclusiveMinimum=2.25), "multiple-of-7-range": ints(-30, 100, multipleOf=7), "format-items": array(fmt("date"), 1, 3),
    **{f"multiple-of-{m}": multiple("integer" if m > 1 else "number", m) for m in (3, 5, 7, 10, 0.01, 0.1, 0.5)}, "items-any": {"type": "array", "maxItems": 2},
    "multiple-of-price": nums(0, 999.99, multipleOf=0.01), "format-or-null": {"type": ["string", "null"], "format": "uuid"},
    **each("length", chars, minimum=3, maximum=(None, 5), zero=(None, 0), range=(2, 4), exact=(3, 3), long=(20, 40)), "additional-only": maps(ints(0)),
    **each("pattern", pat, anchored="^[a-z]+$", unanchored="[0-9]{3}", prefix="^abc", digits=r"^\d{3}-\d{4}$", words=r"^\w+$", spaces=r"^\S+\s\S+$",
        not_class="^[^aeiou]+$", not_escapes=r"^\D\W$", dot="^.{2,4}$", quantifiers="^a?b*c+d{2}e{1,3}f{2,}$", alternation="^(red|green|blue)$",
        half_anchored="^a|b$", groups="^((ab|cd){1,2}-)*(x|yz)$", cyrillic="^[а-яё]+$", unicode_escape=r"^[\u00e0-\u00ff]{2,5}$", emoji="^[😀-😎]{1,3}!?$",
        quotes='^"[a-z ]*"$', backslashes=r"^[A-Z]:(\\[a-z]+)+$", empty="", control=r"^[a-z]+\t[0-9]+(\n[a-z]+\t[0-9]+)*$",
        specials=r"^\$\d+\.\d{2} \([A-Z]\)$", class_specials=r"^[\]\-\\^.\[\"]+$", version=r"^v?(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[a-z]+)?$",
        length=("^[a-z]+$", 3, 6), length_unanchored=("[0-9]", 2, 5), length_unicode=("^[é漢🙂a-c]*$", 2, 3)), "additional-false": maps(False),
    **{f"format-{f}": fmt(f) for f in ("date", "time", "date-time", "duration", "uuid", "email", "hostname", "ipv4", "ipv6", "uri")},
    **each("items", array, integers=INT, strings=(STR, None, 4), enum=enum("x", "y", 0), false=False, minimum=(BOOL, 2), maximum=(INT, None, 2),
        range=(ints(0, 9), 2, 4), exact=(NULL, 3, 3), objects=(closed(k=STR, v=opt(INT)), None, 3)), "prefix-items-closed": row(STR, INT, BOOL, items=False),
    "prefix-items-rest": row(words("sum", "max"), items=NUM), "prefix-items-minimum": row(nums(-180, 180), nums(-90, 90), items=False, minItems=2),
    "prefix-items-maximum": row(NULL, BOOL, items=INT, minItems=1, maxItems=4), "properties-closed": closed(a=INT, b=opt(STR), c=opt(NULL)),
    "properties-all-optional": closed(a=opt(INT), b=opt(INT), c=opt(INT)), "properties-booleans": obj(any=True, never=opt(False), n=opt(INT)),
    "properties-special": closed(**{'a "b"': INT, "c\\d": opt(INT), "": opt(BOOL), "größe": NUM, "x y": opt(NULL), "n\nl": opt(INT)}), "untyped-nothing": {},
    "required-unlisted": obj(a=opt(INT)) | {"required": ["z"]}, "additional-schema": obj(id=INT, tag=opt(STR)) | maps(BOOL),
    "pattern-properties": maps(True, patternProperties={"^n_": INT, "^s_": STR}), "pattern-properties-rest": maps(NULL, patternProperties={r"^\d+$": INT}),
    "pattern-properties-closed": maps(False, patternProperties={"^[a-z]{2}$": STR}), "min-properties": {"type": "object", "minProperties": 2},
    "pattern-properties-listed": closed(id=INT, note=opt(STR)) | {"patternProperties": {"^x-": {"type": ["string", "boolean"]}}},
    "pattern-properties-overlap": obj(s_a=opt({"minLength": 2})) | maps(INT, patternProperties={"^s_": STR}), "max-properties": maps(INT, maxProperties=2),
    "property-names-values": maps(ints(0, 100), propertyNames={"pattern": "^[a-z]+(-[a-z]+)*$"}, minProperties=1),
    "properties-count-listed": closed(a=opt(INT), b=opt(INT), c=opt(INT), d=opt(INT)) | {"minProperties": 1, "maxProperties": 2},
    **{"untyped-" + re.sub("[A-Z]", lambda m: "-" + m[0].lower(), k): {k: v} for k, v in {"minimum": 5, "multipleOf": 4, "maxLength": 2, "pattern": "^[xyz]+$",
        "format": "ipv4", "items": INT, "required": ["key"], "properties": {"a": INT, "b": STR}}.items()}, "untyped-two": {"minimum": 10, "maxLength": 3},
    "untyped-closed": {"properties": {"on": BOOL}, "additionalProperties": False}, "all-of-beside": obj(z=INT) | all_of(obj(y=STR), obj(x=opt(BOOL))),
    **each("any-of", any_of, types=(STR, INT, array(INT)), null=(ints(0, 50), NULL), objects=(closed(a=INT), closed(b=STR), closed(a=STR, c=BOOL)),
        ranges=(ints(None, 0), ints(10, 20), ints(15, 30)), patterns=(pat("^#[0-9a-f]{6}$"), words("red", "#none"), pat("^rgb")),
        nested=(any_of(BOOL, any_of(NULL, words("auto"))), array(any_of(INT, STR), None, 2)), false=(False, INT, False)),
    "any-of-required": closed(mail=opt(fmt("email")), phone=opt(STR)) | any_of({"required": ["mail"]}, {"required": ["phone"]}),
    "any-of-beside-bounds": ints(0, 60) | any_of({"multipleOf": 4}, {"minimum": 50}), "ref-property": closed(a=ints(0, 255), b={"$ref": "#/properties/a"}),
    **each("one-of", one_of, types=(STR, NUM, NULL), array_or_item=(STR, array(STR, 1)),
        tagged=(obj(op=const("add"), value=INT), obj(op=const("remove")), obj(op=const("rename"), to=STR)),
        tagged_closed=(closed(t=const("n"), v=NUM), closed(t=const("s"), v=STR), closed(t=const("l"), v=array(INT)))),
    **each("all-of", all_of, objects=(obj(a=INT, b=opt(STR)), obj(b=STR, c=opt(BOOL))), shared_bounds=(obj(n=ints(0)), obj(n=ints(None, 9), m=opt(NUM))),
        bounds=(INT, {"minimum": 3}, {"maximum": 40}, {"minimum": 12}), multiples=(INT, {"multipleOf": 4}, {"multipleOf": 6}),
        length=(STR, {"minLength": 2}, {"maxLength": 4}), pattern_length=(pat("^[a-f0-9]*$"), {"minLength": 4}, {"maxLength": 6}),
        two_patterns=(pat("^[a-z0-9]{3,6}$"), {"pattern": "[0-9]"}), types=({"type": ["string", "integer", "null"]}, {"type": ["integer", "null"]}),
        enums=(enum("a", "b", "c", 1), enum("b", "c", "d", 1), STR), items=(array(INT), {"minItems": 1, "maxItems": 3}, {"items": {"minimum": 0}}),
        true=(True, INT, {})), "all-of-ref": defs(all_of(ref("base"), obj(extra=STR)), base=obj(id=ints(1), name=opt(STR))),
    "ref-twice": defs(closed(a=ref("p"), b=opt(ref("q"))), p=array(NUM, 2, 2), q=ref("p")), "ref-root": closed(v=INT, next=opt(ROOT)),
    "ref-beside-bounds": defs(ref("small") | {"minimum": 3}, small=ints(0, 9)), "ref-escapes": defs(array(ref("a~1b%20c")), **{"a/b c": maybe(INT)}),
    "ref-node": defs(ref("n"), n=closed(v=STR, kids=array(ref("n"), None, 2))),
    "ref-mutual": defs(ref("even"), even=closed(even=BOOL, odd=opt(ref("odd"))), odd=closed(n=INT, even=opt(ref("even")))),
}
REAL = {
    "invoice": obj(number=pat(r"^INV-\d{4,6}$"), issued=fmt("date"), lines=array(obj(text=STR, quantity=ints(1), unit_price=PRICE), 1, 2), total=PRICE),
    "invoice-strict": defs(closed(seller=STR, buyer=STR, lines=array(ref("line"), None, 2), paid=BOOL), line=closed(item=STR, net=PRICE, tax=enum(0, 7, 19))),
    "person": obj(name=chars(1), age=opt(ints(0, 130)), email=opt(fmt("email")), married=opt(BOOL)),
    "person-with-address": defs(obj(first=STR, last=STR, home=ref("address"), work=opt(maybe(ref("address")))),
        address=obj(street=STR, city=STR, zip=pat(r"^\d{5}$"), country=opt(pat("^[A-Z]{2}$")))),
    "weather-arguments": {"description": "Arguments"} | closed(place=STR | {"description": "A town"}, days=opt(ints(1, 14)), unit=opt(words("°C", "°F"))),
    "mail-arguments": closed(to=array(fmt("email"), 1, 2), subject=chars(None, 20), body=STR, urgent={"type": ["boolean", "null"]}),
    "tool-call": one_of(closed(name=const("read"), arguments=closed(path=STR)), closed(name=const("list"), arguments=closed())),
    "tool-calls": defs(closed(calls=array(any_of(ref("add"), ref("ask")), 1, 2)), add=closed(add=array(NUM, 2, 2)), ask=closed(ask=STR, hint=opt(STR))),
    "product": obj(sku=pat("^[A-Z]{3}-[0-9]{4}$"), name=STR, price=closed(amount=PRICE, currency=words("EUR", "USD", "JPY")), tags=opt(array(STR))),
    "order": defs(obj(id=fmt("uuid"), items=array(ref("item"), 1, 2), coupon=opt(maybe(STR))), item=obj(sku=STR, n=ints(1, 99))),
    "file-tree": defs(ref("entry"),
        entry=one_of(closed(type=const("file"), name=STR, size=INT), closed(type=const("dir"), entries=array(ref("entry"), None, 2)))),
    "linked-list": defs(maybe(ref("cell")), cell=closed(value=INT, next=maybe(ref("cell")))),
    "binary-tree": defs(ref("Node"), Node={"title": "Node"} | obj(key=INT | {"title": "Key"}, left=opt(maybe(ref("Node")) | {"default": None}),
        right=opt(maybe(ref("Node")) | {"default": None}))), "comment-thread": closed(author=chars(1, 10), replies=array(ROOT, None, 2)),
    "expression": defs(ref("e"), e=any_of(NUM, pat("^[a-z]$"), closed(op=words("+", "-", "*", "/"), left=ref("e"), right=ref("e")), closed(neg=ref("e")))),
    "query": defs(ref("q"), q=any_of(closed(all=array(ref("q"), 1, 2)), closed(field=STR, op=words("=", "<", ">"), value=any_of(NUM, STR)))),
    "any-json": defs(ref("value"), value=any_of(NULL, BOOL, NUM, STR, array(ref("value"), None, 3), maps(ref("value"), maxProperties=2))),
    "pydantic-pet": defs({"title": "Pet"} | obj(name=STR | {"title": "Name"}, species=ref("Species"),
        born=opt(maybe(fmt("date")) | {"default": None, "title": "Born"}), weight=opt({"default": 1.0, "exclusiveMinimum": 0, "title": "Weight"} | NUM)),
        Species=words("cat", "dog", "guinea pig") | {"title": "Species"}),
    "pydantic-owner": defs({"title": "Owner"} | obj(id=INT, pets=array(ref("Pet"), None, 2) | {"title": "Pets"}),
        Pet=obj(name=STR, age=opt(ints(0, default=0, title="Age")))),
    "pydantic-settings": {"title": "Settings"} | obj(level=opt({"default": "info"} | words("debug", "info", "error")), retries=opt(ints(0, 10, default=3)),
        labels=opt(maps(STR)), pair=opt(row(INT, STR, minItems=2, maxItems=2))),
    "pydantic-union": defs({"title": "Payment"} | obj(amount=PRICE, by=one_of(ref("Card"), ref("Cash"))),
        Card=closed(kind=STR | const("card"), digits=pat(r"^\d{4}$")), Cash=closed(kind=STR | const("cash"))),
    "meeting-strict": closed(title=STR, start=fmt("date-time"), minutes=ints(5, 480, multipleOf=5), guests=array(STR, None, 2), room=maybe(STR)),
    "steps-strict": closed(steps=array(closed(n=INT, why=STR), None, 2), answer={"type": ["string", "number"]}, sure=BOOL),
    "named-entities": closed(entities=array(closed(text=chars(1), kind=words("person", "place", "firm"), start=ints(0), end=ints(0)), None, 2)),
    "flight": closed(number=pat("^[A-Z]{2}[0-9]{1,4}$"), origin=pat("^[A-Z]{3}$"), departs=fmt("date-time"), delay=opt(fmt("duration"))),
    "observation": closed(at=fmt("date-time"), temperature=nums(-89.2, 56.7), wind=array(nums(0, 360), 2, 2), sky=opt(enum("clear", "rain", None))),
    "geometry": one_of(obj(type=const("Point"), at=array(NUM, 2, 3)), obj(type=const("Line"), points=array(array(nums(-180, 180), 2, 2), 2, 3))),
    "curriculum-vitae": defs(obj(name=STR, links=opt(array(fmt("uri"), None, 2)), posts=array(ref("post"), None, 2)),
        post=obj(title=STR, start=pat(r"^(19|20)\d\d-(0[1-9]|1[0-2])$"), end=opt(maybe(pat(r"^(19|20)\d\d$"))))),
    "bank-statement": closed(iban=pat("^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,14}$"),
        rows=array(row(fmt("date"), STR, multiple("number", 0.01), items=False, minItems=3), None, 2)),
    "log-record": obj(time=fmt("date-time"), level=words("DEBUG", "INFO", "WARN"), message=STR, code=opt(ints(100, 599))) | {"patternProperties": {"^x_": STR}},
    "http-request": closed(method=words("GET", "PUT", "POST"), url=fmt("uri"),
        headers=opt(maps(STR, propertyNames={"pattern": "^[A-Z][a-z]+(-[A-Z][a-z]+)*$"}, maxProperties=2)), body=opt(True)),
    "server-config": obj(bind=any_of(fmt("ipv4"), fmt("ipv6")), port=ints(1, 65535), tls=opt(closed(cert=STR, key=STR)),
        workers=opt(one_of(ints(1, 64), const("auto")))),
    "container": closed(image=pat("^[a-z0-9/]+(:[a-z0-9.]+)?$"), env=opt(maps(False, patternProperties={"^[A-Z_]+$": STR})),
        ports=opt(array(ints(1, 65535), None, 2)), memory=opt(pat("^[1-9][0-9]*(Ki|Mi|Gi)$"))),
    "palette": maps(any_of(pat("^#([0-9A-F]{3}|[0-9A-F]{6})$"), array(ints(0, 255), 3, 3)), propertyNames={"pattern": "^[a-z]+$"}, minProperties=1,
        maxProperties=3), "patient": all_of(obj(id=pat("^P[0-9]{6}$"), born=fmt("date")), obj(blood=opt(words("A", "B", "AB", "0")), weight=nums(0.3, 500))),
    "interface": defs(ref("view"),
        view=any_of(closed(text=STR), closed(button=STR, action=fmt("uri")), closed(row=array(ref("view"), None, 2)), closed(space=ints(0, 64)))),
    "manifest": closed(name=pat("^[a-z][a-z0-9-]*$", None, 12), needs=opt(maps(False, patternProperties={"^[a-z-]+$": pat(r"^[~^]?\d+(\.\d+)*$")})),
        private=opt(const(True))), "measurements": array(closed(t=ints(0), v=any_of(NUM, const("missing")), unit=opt(words("µm", "Ω", "m/s²"))), None, 3),
    "ticket-update": obj(id=ints(1)) | {"minProperties": 2, "additionalProperties": one_of(STR, array(STR, None, 2), NULL)},
}
SCHEMAS = SMALL | REAL
PLAIN, SPECIAL = "abcdehkmnorstuxyzABCXYZ0123456789 .,-_", list("éüß漢字Ω🙂\"\\/\n\t'{]:\u2028\u007f\u0001\u0000\r\b")
ALPHABET = "".join(map(chr, range(32, 127))) + "\t\néàïß漢字абвяё🙂😀😃😎"  # of what patterns are made
NAMES = ["extra", "zeta", "q1", "Ünder", "long name", "with\"quote", "x.y", "K", "", "back\\slash"]
UNBOUNDED = ["0", "-1", "3.14", "1e5", "-2.5E-3", "12345678901", "0.1", "1.0", "6.02e+23", "-0.001", "77", "0e0", "100000"]
NAMED, SEVERAL = ("properties", "patternProperties", "$defs"), ("anyOf", "oneOf", "allOf", "prefixItems")  # keywords whose values hold schemas
ONE, STRINGS = ("items", "additionalProperties", "propertyNames"), ("pattern", "format", "minLength", "maxLength")
OTHERS = [None, True, False, 0, -1, 1.5, 12345, "", "x", "null", [], {}, [None], {"a": 1}, [[]]]
CONCERNS = {"properties": "object", "required": "object", "items": "array", "minimum": "number", "multipleOf": "number"} | dict.fromkeys(STRINGS, "string")
OCTET, HEX = "([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])", "[0-9a-f]{1,4}"
DATE = "([0-9]{3}[1-9]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|2024-02-29|1999-12-31)"
CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+\-](0[0-9]|1[0-4]):[0-5][0-9])"
HOST = r"((www|a|mail-2|x1|xn--bcher-kva|Node07)\.)?(example|[a-z]{1,6})\.(org|com|example)"
FORMATS = {  # a pattern of some strings of each format, and strings that are almost of it
    "date": (DATE, "2023-02-30 2023-13-01 2023-1-05 23-01-05 2023/01/05 2023-01-05T 2021-02-29 2023-04-31"),
    "time": (CLOCK, "24:00:00Z 12:60:00Z 12:30Z 12:30:00 1:30:00Z 12:30:00+2:00 12:30:00.Z 12:30:61Z"),
    "date-time": (DATE + "T" + CLOCK, "2023-01-05_12:30:00Z 2023-01-05T12:30:00 2023-02-30T12:30:00Z 2023-01-05T25:30:00Z 2023-01-05 12:30:00Z"),
    "duration": ("P([0-9]{1,2}W|[1-9][0-9]?D|1Y2M|2M10D|3Y6M4DT12H30M5S|T[0-9]{1,3}H[0-9]M|T[0-9]+[SMH]|[0-9]DT[0-9]H)", "P PT 1D P1 P1S PT1D P1DT p1d PT5"),
    "uuid": (r"[0-9a-f]{8}(-[0-9a-f]{4}){4}[0-9a-f]{8}|[0-9A-F]{8}(-[0-9A-F]{4}){4}[0-9A-F]{8}", "0123456789abcdef0123456789abcdef 01-2 "
             "01234567-89ab-cdef-0123-456789abcde 01234567-89ab-cdef-0123-456789abcdeg 0123456-789ab-cdef-0123-456789abcdef"),
    "email": (r"[a-z]{1,6}([.+_\-][a-z0-9]{1,4})?@" + HOST, "plain a.example.org a#example.org"),
    "hostname": (HOST + "|localhost", "-a.org a-.org a..org a_b.org .org a/b " + "x" * 64 + ".org"),
    "ipv4": (rf"({OCTET}\.){{3}}{OCTET}", "256.1.1.1 1.2.3 1.2.3.4.5 01.2.3.4 1.2.3.4/8 1.2.3. 0x1.2.3.4"),
    "ipv6": (rf"({HEX}:){{7}}{HEX}|({HEX}:){{1,3}}(:{HEX}){{1,3}}|::1?|({HEX}:){{2}}:|::ffff:192\.0\.2\.{OCTET}",
             "1::2::3 12345:: 1:2:3:4:5:6:7 ::g 1:2:3:4:5:6:7:8:9 :1 fe80::1%eth0 ::1.2.3.256"),
    "uri": (rf"(https?|ftp)://(user@)?{HOST}(:8080)?(/|/a/[b-f]+\.html|/%7Ex|/p\?q=1&r=a|/#top|\?x)?|urn:isbn:[0-9]{{10}}|mailto:a@b\.org|http://\[::1\]/",
            "//example.org /path example http://a\u00a0b http://[::1 1http://a http://a/%zz http://a/<b>"),
}


def raw(text):
    """A leaf of a value that is to be written as this text."""
    return f"\ue000{text}\ue001"


def written(value, style=0):
    styles = [{}, {"separators": (",", ":")}, {"indent": 2}]
    return re.sub("\"\ue000.*?\ue001\"", lambda m: json.loads(m[0])[1:-1], json.dumps(value, ensure_ascii=False, **styles[style]))


def walk(schema):
    """All schemas in a schema, itself included, that are objects."""
    if isinstance(schema, dict):
        yield schema
        for key, v in schema.items():
            for inner in v.values() if key in NAMED else v if key in SEVERAL else [v] if key in ONE else []:
                yield from walk(inner)


def ecma(pattern):
    """What Python reads as ECMA-262 reads the pattern: \\d, \\w and \\s of ASCII, $ only at the very end."""
    change = {"$": r"\Z", ".": "[^\n\r\u2028\u2029]"}
    return "(?a:%s)" % re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]|[$.]", lambda m: change.get(m[0], m[0]), pattern)


def exact(number):
    """A number of a text, so that 1.0 is an integer and multiples are not those of doubles."""
    number = Decimal(number)
    return int(number) if number == number.to_integral_value() else number


def unique(pairs):
    if len(dict(pairs)) < len(pairs):
        raise KeyError("twice")
    return dict(pairs)


def meet(key, a, b):
    """What a keyword becomes in the allOf of two schemas."""
    if key in ("properties", "patternProperties"):
        return a | {name: all_of(a[name], s) if name in a else s for name, s in b.items()}
    if key in ONE:
        return all_of(a, b)
    if key in ("pattern", "required", "type", "enum"):
        return a + b if key in ("pattern", "required") else [v for v in a if v in b]
    return math.lcm(a, b) if key == "multipleOf" else max(a, b) if "min" in key.lower() else min(a, b) if "max" in key.lower() else b


class Suite:
    """Makes random values of a schema, most of them right, and judges texts. A ValueError or IndexError says that an attempt led nowhere."""

    def __init__(self, name, schema):
        Draft202012Validator.check_schema(schema)
        self.root, self.dice, (one, other) = schema, random.Random(name), [json.loads(json.dumps(schema), parse_float=exact) for _ in range(2)]
        self.listed, self.numbers, self.strings = {name for s in walk(schema) for name in s.get("properties", {})}, [], ["", " "]
        for s in list(walk(other)):
            s |= {"pattern": ecma(s["pattern"])} if "pattern" in s else {}
            s |= {"patternProperties": {ecma(p): v for p, v in s["patternProperties"].items()}} if "patternProperties" in s else {}
            bounds = [Decimal(s[k]) for k in s if k.endswith("imum") or k == "multipleOf"]
            # numbers and strings that are almost right somewhere
            self.numbers += [raw(b + Decimal(d)) for b in bounds for d in ("0", "1", "-1", "0.5", "0.01", "-0.01", "10")]
            self.strings += [c * n for c in "a漢🙂" for n in (s.get("minLength", 0) - 1, s.get("maxLength", -2) + 1)]
            self.strings += FORMATS.get(s.get("format"), ("", ""))[1].split() * 5
        self.readings = [Draft202012Validator(s, format_checker=Draft202012Validator.FORMAT_CHECKER) for s in (one, other)]

    def judge(self, text):
        """Whether a text is right, None if that is not clear; and whether it is JSON."""
        try:
            value = json.loads(text, object_pairs_hook=unique, parse_float=exact, parse_constant=int)  # no NaN
        except (KeyError, ValueError) as e:
            return (None if isinstance(e, KeyError) else False), False
        right = [reading.is_valid(value) for reading in self.readings]
        return (right[0] if right[0] == right[1] else None), True

    def flat(self, schema, depth):
        """The schema without references and combinations, for one alternative of each."""
        if schema is False:
            raise ValueError("false")
        schema = {} if schema is True else schema
        out = {k: v for k, v in schema.items() if k not in ("$ref", "allOf", "anyOf", "oneOf", "const")}
        out |= {"enum": [schema["const"]]} if "const" in schema else {}
        out |= {k: [out[k]] for k in ("type", "pattern") if isinstance(out.get(k), str)}
        parts = list(schema.get("allOf", []))
        if "$ref" in schema:
            parts.insert(0, self.root)
            for step in urllib.parse.unquote(schema["$ref"]).split("/")[1:]:
                parts[0] = parts[0][step.replace("~1", "/").replace("~0", "~")]
        for options in (schema[k] for k in ("anyOf", "oneOf") if k in schema):
            leaves = [s for s in options if "$ref" not in json.dumps(s)]
            parts.append(self.dice.choice(leaves if leaves and depth > 5 else options))
        for key, value in (pair for part in parts for pair in self.flat(part, depth).items()):
            out[key] = meet(key, out[key], value) if key in out else value
        return out

    def value(self, schema, depth=1):
        s = self.flat(schema, depth)
        if "enum" in s:
            return self.dice.choice(s["enum"])
        kinds = s.get("type") or [CONCERNS[k] for k in s if k in CONCERNS and self.dice.random() < .7]
        kind = self.dice.choice(kinds or ["string", "integer", "number", "boolean", "null"] + ["array", "object"] * (depth < 3))
        if kind in ("array", "object") and depth > DEEPEST:
            raise ValueError("deep")
        if kind in ("null", "boolean"):
            return self.dice.choice([None] if kind == "null" else [True, False])
        return self.number(s, kind == "integer") if kind in ("integer", "number") else getattr(self, kind)(s, depth)

    def number(self, s, whole):
        dice, bounds = self.dice, {k: Fraction(repr(v)) for k, v in s.items() if k.endswith("imum")}
        if not bounds and "multipleOf" not in s:
            limit = 10 ** dice.choice([1, 3, 12])
            return dice.randint(-limit, limit) if whole else raw(dice.choice(UNBOUNDED))
        step = Fraction(repr(s.get("multipleOf", 1 if whole else 10 ** -dice.randint(0, 4))))
        lows = [math.floor(b / step) + 1 if "excl" in k else math.ceil(b / step) for k, b in bounds.items() if "inimum" in k]
        highs = [math.ceil(b / step) - 1 if "excl" in k else math.floor(b / step) for k, b in bounds.items() if "aximum" in k]
        span = dice.choice([3, 100, 10 ** 6])
        lo = max(lows) if lows else min(highs) - span if highs else -span
        hi = min(highs) if highs else lo + 2 * span
        found = dice.choice([lo, hi, dice.randint(lo, hi), dice.randint(lo, hi)]) * step
        places = next(d for d in range(9) if (step * 10 ** d).denominator == 1)
        return raw(f"{Decimal(found.numerator) / found.denominator:.{places}f}")

    def some(self, lo, hi):
        return "".join(self.dice.choice(SPECIAL if self.dice.random() < .15 else PLAIN) for _ in range(self.dice.randint(lo, hi)))

    def of_regex(self, parsed):
        """A string that a parsed regular expression describes, if its anchors are at its ends."""
        out = ""
        for i, (op, arg) in enumerate(parsed):
            if op in (regex_parser.BRANCH, regex_parser.SUBPATTERN):
                out += self.of_regex(self.dice.choice(arg[1]) if op is regex_parser.BRANCH else arg[3])
            elif op in (regex_parser.MAX_REPEAT, regex_parser.MIN_REPEAT):
                out += "".join(self.of_regex(arg[2]) for _ in range(self.dice.randint(arg[0], min(arg[1], arg[0] + self.dice.choice([1, 2, 6])))))
            elif op is not regex_parser.AT:
                fits = regex_compiler.compile(parsed[i:i + 1], re.ASCII).match
                out += self.dice.choice([c for c in ALPHABET if fits(c)])
        return out

    def matching(self, pattern):
        """A string with a match of the pattern; if its anchors allow, with more around it."""
        core = self.of_regex(regex_parser.parse(pattern))
        around = [self.some(0, 3) + core + self.some(0, 3), core + self.some(1, 3), self.some(1, 3) + core, core]
        return self.dice.choice([t for t in around if re.search(pattern, t)])

    def string(self, s, depth):
        patterns, lo, hi = s.get("pattern", []), s.get("minLength", 0), s.get("maxLength", 999)
        for _ in range(100):
            if "format" in s:
                found = self.of_regex(regex_parser.parse(FORMATS[s["format"]][0]))
            else:
                found = self.matching(self.dice.choice(patterns)) if patterns else self.some(lo, min(hi, lo + self.dice.choice([3, 8])))
            if lo <= len(found) <= hi and all(re.search(p, found) for p in patterns):
                break
        if self.dice.random() < .8 or set(STRINGS) & set(s):
            return found
        units = {c: "".join("\\u" + u for u in re.findall("....", c.encode("utf-16-be").hex())) for c in found}
        return raw('"%s"' % "".join(units[c] if self.dice.random() < .4 else written(c)[1:-1] for c in found))

    def array(self, s, depth):
        first, rest, lo = s.get("prefixItems", []), s.get("items", True), s.get("minItems", 0)
        hi = min(s.get("maxItems", 99), lo + 3 if depth < 4 else lo, len(first) if rest is False else 99)
        return [self.value(first[i] if i < len(first) else rest, depth + 1) for i in range(self.dice.randint(lo, hi))]

    def object(self, s, depth):
        dice, required, patterns, rest = self.dice, s.get("required", []), s.get("patternProperties", {}), s.get("additionalProperties", True)
        listed, most, out = s.get("properties", {}), s.get("maxProperties", 99), {}
        names = [n for n in listed if n in required or listed[n] is not False and dice.random() < (.6 if depth < 5 else .1)]
        while len(names) > most:
            names.remove(dice.choice([n for n in names if n not in required]))
        names += [n for n in required if n not in listed]
        more = dice.choice([0, 0, 1] if listed else [0, 1, 2, 3]) if (rest is not False or patterns) and depth < 4 else 0
        for _ in range(max(more, s.get("minProperties", 0) - len(names))):
            ways = [p for p in [s.get("propertyNames", {}).get("pattern")] if p] or (list(patterns) if rest is False or dice.random() < .6 else [])
            names.append(self.matching(dice.choice(ways)) if ways else dice.choice(NAMES))
        for name in names:
            if name in listed or len(out) < most and name not in self.listed:
                schemas = [listed[n] for n in listed if n == name] + [p for pattern, p in patterns.items() if re.search(pattern, name)]
                out[name] = self.value(all_of(*schemas or [rest]), depth + 1)
        return out

    def mutated(self, value):
        """The value with one change somewhere."""
        dice, box = self.dice, [copy.deepcopy(value)]
        places = [(box, 0)]
        for inner in (holder[key] for holder, key in places):  # grows
            places += [(inner, k) for k in (inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else [])]
        holder, key = dice.choice(places)
        old, t, other, extra, new = holder[key], written(holder[key]), dice.choice(OTHERS), dice.choice(NAMES), [None]
        if isinstance(old, dict):
            name = dice.choice(list(old) or [extra])
            less = {k: v for k, v in old.items() if k != name}
            new = [less, less, old | {extra: other}, {name.swapcase() if k == name else k: v for k, v in old.items()}, less | {name + "s": other}]
        elif isinstance(old, list):
            new = [old[1:], old[:-1], old + [other], [other] + old, old + old, old * 3, old[::-1], [old]]
        elif t[0] in "-0123456789":
            new = [raw(x) for x in (t + "5", t + ".5", "-" + t.lstrip("-"), t.lstrip("-"), t + "00", t[:-1] or "0", f'"{t}"', "1" + t.lstrip("-"))]
            new += dice.choices(self.numbers, k=6) if self.numbers else []
        elif t[0] == '"':
            t, c, at = json.loads(t), dice.choice(PLAIN + "é🙂\"\\\n/"), dice.randint(0, len(json.loads(t)))
            new = [t[:at] + c + t[at:], t[:at] + c + t[at + 1:], t[:at] + t[at + 1:], t[:at], t[at:], t.swapcase(), t + t, t[::-1], c + t, t + c]
            new += dice.choices(self.strings, k=6)
        holder[key] = other if dice.random() < .25 else dice.choice(new)
        return box[0]

    def broken(self, text):
        """The text with one change that most often makes it no JSON."""
        pick, at = self.dice.choice, self.dice.randint(0, len(text))
        mark = pick([m.start() for m in re.finditer(r'[{}\[\],:"]', text)] or [at])
        numbers = [r"0\g<0>", r"+\g<0>", r"-0\g<0>", r"\g<0>.", r"\g<0>e", r"\g<0>,5", "NaN", "Infinity", "-Infinity", "0x1F", ".5", "--1", "1_0"]
        escapes = ["\n", "\t", "\0", r"\\", r"\\x41", r"\\u12", r"\\'", r"\\U0041", r"\\u00g0", r"\\ "]
        return pick([
            text[:at], text[:at], text[:-1], text[:mark] + text[mark + 1:], text[:mark] + text[mark + 1:], text[:at] + pick("{}[],:\"\\\x01'") + text[at:],
            re.sub(r"([}\]])$", r",\1", text), text.replace('"', "'"), text + pick(["x", " {}", ",", "]", "}", " null", " //", '"']), text + " " + text,
            re.sub(r'(?<![\w".])-?\d+(\.\d+)?', pick(numbers), text, count=1), re.sub(r'"(?=[^"]*$)', pick(escapes) + '"', text),
            re.sub(r'"(\w+)"(?=:)', r"\1", text, count=1), re.sub(r"\b(true|false|null)\b", lambda m: pick([m[0].title(), m[0][:-1], "undefined"]), text),
            re.sub(":", pick(["=", "::", ""]), text, count=1), re.sub(",", pick([",,", ";", "", ", /**/ "]), text, count=1)])

    def texts(self, count):
        """Right texts, and wrong ones, two of five no JSON where there are as many of both."""
        good, wrong, few = {}, {True: {}, False: {}}, count * 2 // 5
        for _ in range(100 * count):
            try:
                value = self.value(self.root)
            except (IndexError, ValueError):
                continue
            text = written(value, self.dice.randrange(3))
            if len(text) <= LONGEST and self.judge(text)[0]:
                good.setdefault(text, value)
            if len(good) == count:
                break
        for _ in range(100 * count):
            value, style = self.dice.choice(list(good.values())), self.dice.randrange(3)
            text = written(self.mutated(value), style) if self.dice.random() < .6 else self.broken(written(value, style))
            right, is_json = self.judge(text)
            if right is False and len(text) <= LONGEST:
                wrong[is_json][text] = None
            if len(wrong[True]) >= count - few and len(wrong[False]) >= few:
                break
        values, others = list(wrong[True]), list(wrong[False])
        values = values[:max(count - few, count - len(others))]
        return {"valid": list(good), "invalid": values + others[:count - len(values)]}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--count", type=int, default=10)
    arguments.add_argument("-o", type=pathlib.Path, default=pathlib.Path(__file__).with_name("schemas.jsonl"))
    options, keywords, counts = arguments.parse_args(), collections.Counter(), collections.Counter()
    assert set(FORMATS) <= set(Draft202012Validator.FORMAT_CHECKER.checkers), "jsonschema without its extra `format`"
    with options.o.open("w", encoding="utf-8") as file:
        for name, schema in SCHEMAS.items():
            line = {"name": name, "schema": schema, "strict": False} | Suite(name, schema).texts(options.count)
            print(json.dumps(line, ensure_ascii=False).replace("\u2028", "\\u2028"), file=file)
    for line in map(json.loads, options.o.read_text(encoding="utf-8").splitlines()):  # what was written is judged again
        judge = Suite("", line["schema"]).judge
        assert all(judge(t)[0] for t in line["valid"]) and all(judge(t)[0] is False for t in line["invalid"]), line["name"]
        counts.update(schemas=1, valid=len(line["valid"]), invalid=len(line["invalid"]))
        keywords.update({key for s in walk(line["schema"]) for key in s})
    print(*(f"{n:5} {key}" for key, n in (keywords + counts).most_common()), sep="\n")


if __name__ == "__main__":
    main()
