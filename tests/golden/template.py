#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chat templates against transformers and its jinja2: python3 tests/golden/template.py

Writes tests/golden/template.json: small templates and what they render to, or that they fail and with what words.
tests/chat.c holds our own interpreter against it. Needs transformers >= 5 and jinja2 >= 3.1.6.
"""
import datetime
import json
from pathlib import Path

import transformers.utils.chat_template_utils as chat

HERE = Path(__file__).resolve().parent
CONTEXT = {
    "text": "Hello, W\xf6rld \U0001f642!", "spaces": "  \t a b\u3000\n", "lines": "one\ntwo\r\n\nfour\n", "n": 7, "x": -2.5,
    "yes": True, "no": False, "nothing": None, "list": [3, 1, 2, 1], "words": ["pear", "Apple", "fig", "apple"],
    "dict": {"b": 1, "a": [1, 2.0, None, True, "q'\"\\"], "items": "own"}, "empty": [],
    "people": [{"name": "Ann", "age": 31, "tags": ["x"]}, {"name": "bob", "age": 7}, {"name": "Cy", "age": 31}],
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "<b>&'\"</b>"}],
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}],
}

EXPRESSIONS = """
text|length  text|upper  text|lower  text|title  text|capitalize  text[1]  text[-2]  text[7:9]  text[::-1]  text[:-3:2]
text[5:2]  text[100]  text[-100:3]  text.split()  text.split('l')  text.split('l', 1)  text.rsplit('l', 1)  lines.splitlines()
lines.splitlines(true)  spaces.strip()  spaces.lstrip()  spaces.rstrip()  spaces|trim  spaces|trim(' ')  text.strip('H!o')
text.startswith('Hell')  text.startswith(('x', 'H'))  text.endswith('!')  text.find('l')  text.rfind('l')  text.find('zz')
text.index('W')  text.index('zz')  text.count('l')  text.count('')  text.replace('l', 'L')  text.replace('l', 'L', 1)
text|replace('l', 7)  text.removeprefix('Hello')  text.removesuffix('!')  'a-b_c d'.title()  'a-b_c d(e f)'|title
'123'.isdigit()  ''.isdigit()  'aB'.isalpha()  'ab1'.isalnum()  'AB'.isupper()  'A1'.isupper()  '1'.islower()  ' \n'.isspace()
'stra\xdfe'.upper()  'STRASSE'.lower()  '{} {}'.format(1, 'a')  '{1} {0} {k}'.format(1, 2, k=3)  '{{}}'.format()  '{}'.format()
'%s is %d'|format('a', 3)  '%5.2f|%-5s|%05d|%x|%r' % (1.005, 'ab', -42, 255, 'q')  '%s' % list  '%(a)s' % {'a': 1}  '%d' % 'x'
'%s %s' % ('a',)  '%s' % (1, 2)  '100%%' % ()  ','.join(words)  ','.join(list)  1 + 2 * 3 ** 2  2 ** -1  7 // 2  -7 // 2
-7 % 3  7 % -3  7.5 // 2  -7.5 % 2  1 / 2  4 / 2  1 / 0  1 % 0  0.1 + 0.2  1e16  1e15  1.5e-7  123456789.125  100.0  1e300 * 1e10
9223372036854775807  1_000  0x1F  0b101  0o17  1 if no else 2  1 if no  (1 if no) is defined  yes and n  no or 'b'  not n
yes + yes  -yes  text * 2  3 * 'ab'  list * 2  'a' * -1  'a' + 1  1 + 'a'  list + [9]  list + 1  (1, 2) + (3,)  'a' ~ 1 ~ none ~ list
n == 7.0  1 == true  'a' == 1  [1] == [1.0]  (1,) == [1]  {'a': 1} == {'a': 1.0}  1 < 2 < 3  1 < 2 > 5  'a' < 'b'  'a' < 1  [1, 2] < [1, 3]
none == none  none < 1  3 in list  'ell' in text  1 in text  'a' in dict  'z' not in dict  1 in 5  x is number  yes is number  n is integer
yes is integer  n is float  x is float  text is string  list is sequence  dict is sequence  dict is mapping  n is iterable  text is iterable
nope is defined  nope is undefined  nothing is none  n is odd  n is even  n is divisibleby 7  n is divisibleby(2)  yes is true  1 is true
no is false  yes is boolean  n is eq 7  n is equalto(7)  n is gt 6  n is lt 6  n is ge 7  n is ne 7  3 is in list  text is lower  'a' is sameas 'a'
range is callable  'upper' is filter  'odd' is test  none is sameas none  nope  nope.a  nope[0]  nope()  nope + 1  nope|length
nope|upper  nope|default('d')  nope|d  no|default('d')  no|default('d', true)  nothing|default('d')  dict.nope  dict.nope.a  dict['nope']|d('k')
dict.b  dict['a'][4]  dict['items']  dict.keys()|list  dict.values()|list  dict.get('b')  dict.get('z')  dict.get('z', 5)
dict|length  dict|list  dict|items|list  dict  list  words  (1,)  ()  [none, 1.5, 'x', "it's", 'both\\'"', '\\n\\t\\\\\\x01\xe9\u200b']  {'a': (1,)}
list|sort  list|sort(reverse=true)  words|sort  words|sort(case_sensitive=true)  people|sort(attribute='age')|map(attribute='name')|list
people|sort(attribute='age,name')|map(attribute='name')|list  [1, 'a']|sort  [none, none]|sort  list|unique|list  words|unique|list  list|sum
people|sum(attribute='age')  [1, 'a']|sum  list|min  list|max  words|max  empty|max  people|max(attribute='age')  list|first  list|last
empty|first  list|reverse|list  'abc'|reverse  list|join('-')  list|join  people|join(', ', attribute='name')  list|length  list|count
people|map(attribute='tags')|list  people|map(attribute='tags', default='-')|list  people|map(attribute='tags.0', default=1)|list  words|map('upper')|list
words|map('replace', 'p', 'P')|list  words|map('nope')|list  list|select('odd')|list  list|reject('odd')|list  list|select|list  list|select('gt', 1)|list
people|selectattr('tags')|list|length  people|selectattr('age', 'equalto', 31)|map(attribute='name')|join(',')  people|rejectattr('age', 'lt', 10)|list|length
list|batch(3)|list  list|batch(3, 0)|list  list|slice(3)|list  list|slice(3, 'f')|list  people|groupby('age')|list|length  dict|dictsort
dict|dictsort(reverse=true)  {'b': 1, 'A': 2}|dictsort(true)  {'b': 1, 'A': 2}|dictsort(by='value')  text|list|length  list|string  n|string
'5'|int  '5.7'|int  'x'|int  'x'|int(9)  '0x1f'|int(0, 16)  5.99|int  none|int  ' 12 '|int  '1_0'|int  '1.5'|float  'x'|float  yes|float  '1e3'|float  n|abs
x|abs  'a'|abs  x|round  2.567|round(2)  2.5|round  3.5|round  1.115|round(2)  7|round  7|round(0, 'floor')  2.1|round(0, 'ceil')  2.9|round(method='floor')  1234|round(-2)
text|center(30)  'ab'|center(5)  'abc'|center(6)  lines|indent  lines|indent(2, true)  lines|indent(2, blank=true)  lines|indent('> ')
text|truncate(9)  text|truncate(9, true, '~', 0)  'short'|truncate(9)  text|wordcount  '<a b="c">&\\'</a>'|e  '<a>'|escape ~ '<b>'  '<a>'|safe
'<a>'|safe + '<b>'  '<b>' + '<a>'|safe  '<a>'|e|e  '<a>'|safe is escaped  'a b/c?d=\xe9'|urlencode  dict|tojson  dict|tojson(indent=2)  text|tojson
text|tojson(ensure_ascii=true)  dict|tojson(separators=(',', ':'))  dict|tojson(sort_keys=true)  dict|tojson(indent=1, separators=(';', '='))
[]|tojson(indent=2)  {}|tojson(indent=4)  (1, 2)|tojson  nope|tojson  {1: 2, none: 3, true: 4, 1.5: 5}|tojson  '<>&\\''|tojson  1e20|tojson
'\\x7f\\u2028'|tojson  [1, [2, {'a': []}]]|tojson(indent=3)  words|tojson(indent='\\t')  range|tojson  list|map('string')|tojson
range(3)|list  range(1, 7, 2)|list  range(3, 0, -1)|list  range(0)|list  range(1, 2, 0)|list  range(1000000)  dict(a=1, b='c')  dict([('a', 1)])
namespace(a=1).a  namespace(a=1)  messages[0].role  messages[-1]['content']  messages[5]  messages.0.role  messages|length  messages[1:]|length
list[true]  list['a']  list[:2]  list[::-1]  list[::0]  list['a':]  5[0]  5.a  n.a  text.nope  text.nope()  list.append(1)  dict.update({})  dict.pop('a')
list.index(2)  list.index(9)  list.count(1)  strftime_now('%Y-%m-%d %H:%M %b %-d %%')  raise_exception('own words')  raise_exception(7)  [x for x in y]
'a' 'b'  "a\\"b"  'a\\'b'  '\\u00e9\\q'  1.  .5  1..a  list | sort | first  -n|abs  -2 ** 2  2 ** 3 ** 2  not n in list  n not in list and yes
(n, x)  n, x  [1, 2,]  {'a': 1,}  f(  )  a.b.c.  text|nope  n is nope  n is not odd  n is not defined  text if yes else  1 +  'abc
{'a'}  {1: }  a b  text|truncate  list|attr('count') is callable  text|attr('nope')  [[1, 2], [3]]|sum(start=[])  [1.5, true]|sum  text is eq
"""

TEMPLATES = [
    "a{# c #}b{#- c -#} c {#+ d #}\n e",
    "  {% if yes %}\n  x\n  {% endif %}\ny  {%+ if yes %} z{% endif +%}\n.",
    "{%- if no -%} a {%- elif n == 7 -%} b {%- else -%} c {%- endif -%} ",
    "a \n\t {%- set q = 1 -%} \n b{{- q -}} \n c\n",
    "x\n\n", "x\r\ny\rz\r\n", "{{ 'a\nb' }}\n", "{% raw %} {{ x }} {% y %}{% endraw %}", "a {%- raw -%} {{ b {%- endraw -%} c",
    "  {% raw %}x{% endraw %}\n  y", "{{ '}}' }}{{ '%}' }}{{ {'a': {}} }}", "{{ x", "{% if", "{# a", "{% raw %}a", "}} %} #}",
    "{% for i in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}"
    "{{ loop.length }}{{ loop.depth }}|{{ loop.previtem }}|{{ loop.nextitem }}|{{ loop.cycle('a', 'b') }}{{ loop.changed(i) }};{% endfor %}",
    "{% for i in [] %}a{% else %}b{% endfor %}{% for i in nope %}a{% else %}c{% endfor %}",
    "{% for i in list if i > 1 %}{{ i }}{{ loop.length }}{% else %}none{% endfor %}",
    "{% for i in list if i > 9 %}{{ i }}{% else %}none{% endfor %}",
    "{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %}{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [[1]] %}{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% for a in 5 %}{% endfor %}",
    "{% for c in 'h\xe9y' %}{{ c }}.{% endfor %}{% for k in dict %}{{ k }}{% endfor %}",
    "{% for i in list %}{% if i == 2 %}{% break %}{% endif %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in list %}{% for j in list %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}",
    "{% break %}", "{% for i in tree recursive %}{{ i.v }}({{ loop(i.c) }}{{ loop.depth }}){% endfor %}",
    "{% set q = 1 %}{% for i in list %}{% set q = q + i %}{{ q }}{% endfor %}{{ q }}",
    "{% set ns = namespace(q=1) %}{% for i in list %}{% set ns.q = ns.q + i %}{% endfor %}{{ ns.q }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}", "{% set dict.a = 1 %}", "{% set nope.a = 1 %}",
    "{% if yes %}{% set q = 5 %}{% endif %}{{ q }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set q %}x{{ n }}{% endset %}{{ q }}|{{ q|length }}",
    "{% set q | upper | replace('A', 'b') %}aa{% endset %}{{ q }}", "{% set q %}{% set z = 1 %}{% endset %}{{ z }}",
    "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}", "{% with n = 1, b = n %}{{ b }}{% endwith %}", "{% filter upper %}a{{ text }}{% endfilter %}",
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(1, c=9) }}|{{ m(a=4) }}|{{ m() }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(z=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a) %}{{ a }}{{ n }}{{ late }}{% set n = 1 %}{% endmacro %}{% set late = 'L' %}{{ m(0) }}{{ n }}",
    "{% macro f(i) %}{{ i }}{% if i > 0 %}{{ f(i - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{{ n }}{% endcall %}",
    "{% macro m() %}{% for i in list %}{{ caller(i, 2) }}{% endfor %}{% endmacro %}{% call(a, b) m() %}<{{ a }}{{ b }}>{% endcall %}",
    "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}{{ m(1, *[2]) }}",
    "{% generation %}a{{ n }}{% set q = 1 %}{% endgeneration %}{{ q }}", "{% print n, text %}", "{% set if = 1 %}{{ if if if else 2 }}",
    "{%- for m in messages -%}{{ '<' + m.role + '>' + m.content + '\n' }}{%- endfor -%}",
    "{% if messages[0]['role'] == 'user' and messages|length > 1 %}{{ messages[1].content }}{% endif %}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('order') }}{% endif %}{{ m }}{% endfor %}",
    "{% if no %}{{ raise_exception('never') }}{% endif %}{{ no and raise_exception('never') }}",
    "{% for i in range(3) %}{{ i }}{{ ', ' if not loop.last }}{% endfor %}", "{% set g = list|map('string') %}{{ g|list }}{{ g|list }}",
    "{{ list|map('string') is sequence }}{{ list|select is iterable }}", "{% set x = x|string %}{{ x }}{% set x = 5 %}{{ x }}",
    "{% include 'a' %}", "{% extends 'a' %}", "{% nope %}", "{% endif %}", "{% if yes %}", "{% for %}{% endfor %}", "{% for a.b in list %}{% endfor %}",
    "{% set 1 = 2 %}", "{% set a %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% if yes %}{% endfor %}", "{% call n %}{% endcall %}", "{{ }}",
    "\xe9\u3000{%- if yes %}\u65e5{% endif -%}\u3000\u672c\U0001f642", "{{ '\\U0001f642\\x41\\101' }}", "{{ [1,2,3][1:][0] }}{{ (1,2)[0] }}{{ {'a':1}['a'] }}",
    "{{ messages | selectattr('role', 'in', ['user', 'tool']) | list | tojson }}",
    "{%- set ns = namespace(found=false) -%}{%- for m in messages[::-1] -%}{%- if not ns.found and m.role == 'user' -%}{{ loop.index }}"
    "{%- set ns.found = true -%}{%- endif -%}{%- endfor -%}{{ ns.found }}",
]


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2025, 7, 10, 12, 0, 0)


def render(template):
    try:
        return {"rendered": chat._compile_jinja_template(template).render(**CONTEXT)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    chat.datetime = Clock
    templates = ["{{ %s }}" % e.strip() for line in EXPRESSIONS.split("\n") for e in line.split("  ") if e.strip()] + TEMPLATES
    rows = [json.dumps({"template": t} | render(t)) for t in templates]
    text = f'{{"context": {json.dumps(CONTEXT)},\n"cases": [\n' + ",\n".join(rows) + "\n]}\n"
    (HERE / "template.json").write_text(text)
    print(len(rows), "templates")
