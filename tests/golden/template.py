#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders chat templates by transformers and its jinja2: python3 tests/golden/template.py

Writes tests/golden/template.json: small templates, many of them random (template_random.py), and their outputs or errors.
tests/chat/chat.c compares our own interpreter with it. Needs transformers >= 5 and jinja2 >= 3.1.6.
"""
import copy
import datetime
import json
import re
from pathlib import Path

import transformers.utils.chat_template_utils as chat

import template_random

HERE = Path(__file__).resolve().parent
CONTEXT = {
    "text": "Hello, W\xf6rld \U0001f642!", "spaces": "  \t a b\u3000\n", "lines": "one\ntwo\r\n\nfour\n", "n": 7, "x": -2.5,
    "yes": True, "no": False, "nothing": None, "list": [3, 1, 2, 1], "words": ["pear", "Apple", "fig", "apple"],
    "dict": {"b": 1, "a": [1, 2.0, None, True, "q'\"\\"], "items": "own"}, "empty": [],
    "people": [{"name": "Ann", "age": 31, "tags": ["x"]}, {"name": "bob", "age": 7}, {"name": "Cy", "age": 31}],
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "<b>&'\"</b>"}],
    "big": 123456789012345678901234567890, "small": -9223372036854775809,
    "large": {"x": [18446744073709551616, {"y": -18446744073709551616}], "s": "\0x", "t": "a" * 100},
    "b": True, "obj": {"x": {"y": [1, 2, {"z": 3}]}},
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
dict|dictsort
dict|dictsort(reverse=true)  {'b': 1, 'A': 2}|dictsort(true)  {'b': 1, 'A': 2}|dictsort(by='value')  text|list|length  list|string  n|string
'5'|int  '5.7'|int  'x'|int  'x'|int(9)  5.99|int  none|int  ' 12 '|int  '1_0'|int  '1.5'|float  'x'|float  yes|float  '1e3'|float  n|abs
x|abs  'a'|abs  x|round  2.567|round(2)  2.5|round  3.5|round  1.115|round(2)  7|round  7|round(0, 'floor')  2.1|round(0, 'ceil')  2.9|round(method='floor')  1234|round(-2)
lines|indent  lines|indent(2, true)  lines|indent(2, blank=true)  lines|indent('> ')
'<a b="c">&\\'</a>'|e  '<a>'|escape ~ '<b>'  '<a>'|safe
'<a>'|safe + '<b>'  '<b>' + '<a>'|safe  '<a>'|e|e  '<a>'|safe is escaped  dict|tojson  dict|tojson(indent=2)  text|tojson
text|tojson(ensure_ascii=true)  dict|tojson(separators=(',', ':'))  dict|tojson(sort_keys=true)  dict|tojson(indent=1, separators=(';', '='))
[]|tojson(indent=2)  {}|tojson(indent=4)  (1, 2)|tojson  nope|tojson  {1: 2, none: 3, true: 4, 1.5: 5}|tojson  '<>&\\''|tojson  1e20|tojson
'\\x7f\\u2028'|tojson  [1, [2, {'a': []}]]|tojson(indent=3)  words|tojson(indent='\\t')  range|tojson  list|map('string')|tojson
range(3)|list  range(1, 7, 2)|list  range(3, 0, -1)|list  range(0)|list  range(1, 2, 0)|list  range(1000000)  dict(a=1, b='c')  dict([('a', 1)])
namespace(a=1).a  namespace(a=1)  messages[0].role  messages[-1]['content']  messages[5]  messages.0.role  messages|length  messages[1:]|length
list[true]  list['a']  list[:2]  list[::-1]  list[::0]  list['a':]  5[0]  5.a  n.a  text.nope  text.nope()  list.append(1)  dict.update({})  dict.pop('a')
list.index(2)  list.index(9)  list.count(1)  strftime_now('%Y-%m-%d %H:%M %b %-d %%')  raise_exception('own words')  raise_exception(7)  [x for x in y]
'a' 'b'  "a\\"b"  'a\\'b'  '\\u00e9\\q'  1.  .5  1..a  list | sort | first  -n|abs  -2 ** 2  2 ** 3 ** 2  not n in list  n not in list and yes
(n, x)  n, x  [1, 2,]  {'a': 1,}  f(  )  a.b.c.  text|nope  n is nope  n is not odd  n is not defined  text if yes else  1 +  'abc
{'a'}  {1: }  a b  list|attr('count') is callable  text|attr('nope')  [[1, 2], [3]]|sum(start=[])  [1.5, true]|sum  text is eq
"""

FORMATS = r"""
range(3)  range(1, 9, 3)  range(0)  range(3, 0, -1)  range(5)[1:3]  range(5)[::-1]  range(5)[::2]  range(3) == [0, 1, 2]  range(3) + [1]
range(3) * 2  range(3)|tojson  range(3)|string  range(3).count(1)  range(3) == range(0, 3)  range(3) is sequence  [range(2)]  range(5)[-1]
('a'|safe).join(['<', '>'|safe, 1])  ('a<'|safe).replace('a', '<')
('<\n'|safe)|indent is escaped  'pear'|sort(reverse=true)  ['b', 'd']|sort(reverse=true)  'bd'|max
0|map('upper')|list  none|select|list  {(1, [2]): 3}  {} in dict  dict.get([])  people|map(attribute='name')|last
(people|map(attribute='name'))|select('in', people|map(attribute='name'))|list  '\xbd'.isalnum()
'{0}{}'.format(1)  '{}{}'.format(1)
'{a}{b}'.format(**{'a':1,'b':2})  '{0:{1:{2}}}'.format(1,2,3)
'{a'.format(a=1)  'a}'.format(1)  '{!x}'.format(1)  '{!}'.format(1)  '{!r:>5}|'.format('a')
'{:{{}'.format(1)
('{}<'|safe).format('<','x')  ('{:>5}'|safe).format('<')  ('{}'|safe).format('<'|safe)  ('%s<'|safe) % '<'
('%s %r'|safe) % ('<','"')  ('%(a)s'|safe) % {'a':'<'}  ('%s'|safe) % ('<'|safe)  '%s' % {'a':1}
'%(a)d %(b)s' % {'a':1,'b':2,'c':3}  '%(a)s' % 5  '%(a)s' % {}  '%s' % [1,2]  'a' % []  'a' % {}  'a' % ()  'a' % 1
'%s %s' % [1,2]  '%' % 1  '%5' % 1  '%(a' % {'a':1}  '%%%s' % 1
'%s'|format('<'|safe)  '%(x)s'|format(x=3)  '%s'|format(1, x=3)  '%s'|format  '{}'.format(none)  '{:5}'.format(none)
'{}'.format(nope)  '{:5}'.format(nope)  '{}'.format([1,'a'])  '{[}'.format(1)  '{0[}'.format(1)  '{0.}'.format(1)
'{0[]}'.format(1)  '{0[a}'.format({'a':1})  '{0]}'.format(1)  '{ }'.format(1)  '{ a}'.format(**{' a':4})
'{00}'.format(3)  '{-1}'.format(3)  '{1a}'.format(**{'1a':4})
'%d' % 12345678901234567890  '{:d}'.format(-12345678901234567890)  12345678901234567890  -12345678901234567890
12345678901234567890|tojson  12345678901234567890 == 12345678901234567890  12345678901234567890 > 1
1 < 12345678901234567890  -12345678901234567890 < 1  12345678901234567890 > 12345678901234567891  [12345678901234567890]
12345678901234567890 is integer  12345678901234567890|abs  -12345678901234567890|abs  12345678901234567890|float
12345678901234567890|int  9223372036854775808  -9223372036854775808  -9223372036854775809
12345678901234567890 in [12345678901234567890]
12345678901234567890|string|length  {12345678901234567890: 1}  {12345678901234567890: 1}|tojson  big  big|tojson
[big]|tojson(indent=2)  small  large|tojson  big ~ 'a'  big * 2.0
"""

TEMPLATES = [
    "{% for i in [1,2,3] %}{% filter upper %}a{% if i == 2 %}{% continue %}{% endif %}{% endfilter %}b{% endfor %}",
    "{% for i in [1,2,3] %}{% set q %}a{% if i == 2 %}{% break %}{% endif %}{% endset %}b{{ q }}{% endfor %}|{{ q }}",
    "{% for i in [1,2] %}a{% continue %}{% else %}b{% endfor %}", "{% for i in [1,2] %}a{% break %}{% else %}b{% endfor %}",
    "{% for i in [1,2] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% else %}b{% endfor %}",
    "{% set ns = namespace(l=[]) %}{% for i in range(9) %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.l }}{{ ns.l + [1] }}{{ ns.l + [2] }}{{ ns.l }}",
    "{% set a = [1] + [2] %}{% set b = a + [3] %}{% set c = a + [4] %}{% set d = b + b %}{{ a }}{{ b }}{{ c }}{{ d }}{{ b }}{{ a + a }}",
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


# Every filter, test, method and statement, with what is unusual about each.
MORE_EXPRESSIONS = r"""
'a,b,c'.partition(',')  'a,b,c'.rpartition(',')  'abc'.partition('x')  'abc'.rpartition('x')
'²'.isdigit()  'abc'.find('c',1)  'abcabc'.find('a',1)  'abcabc'.find('a',1,3)  'abcabc'.rfind('a',0,3)  'abcabc'.index('b',2)  'abcabc'.count('a',1)  'abcabc'.count('a',-3)  'abc'.startswith('b',1)  'abc'.endswith('b',0,2)  'abc'.startswith('')  'abc'.endswith(())
'a b c'.split(maxsplit=1)  'a,b,c'.split(sep=',')  'a b'.rsplit(maxsplit=1)  'x'.join('abc')  ','.join({'a':1,'b':2})  'abc'.replace('b','')  'aXbX'.replace('X','-',-1)  'a\nb'.splitlines(keepends=True)  'abc'.removeprefix('x')  '{:>5}'.format('a')  '{:05d}'.format(42)  '{:.2f}'.format(3.14159)  '{!r}'.format('a')  '{:x}'.format(255)  '{:^9}|'.format('ab')  '{:<9}|'.format('ab')  '{:+d}'.format(5)  '{:e}'.format(12345.678)  '{:g}'.format(0.0001)  '{} {1}'.format(1,2)  '{'.format()  '}'.format()  '{:s}'.format('x')  '{:d}'.format('x')  '{:10.3}|'.format('abcdef')  '{:*^10}'.format('hi')
'%5d|%-5d|%+d|% d' % (1,2,3,4)  '%e' % 12345.678  '%g' % 1e10  '%i' % 3.9  '%.3s' % 'abcdef'  '%(a)d %(b)s' % {'a':1,'b':2}  '%s' % none  '%s' % ([1],)  '%d' % true  '%x' % -255  '%f' % 1  '%5.1f%%' % 99.55  '%s' % nope  '%d' % 1.5  '%u' % 3  '%05s' % 'a'
[1,2,3].index(2,1)  [1,2].copy()  [1,2].count(1)  [].append(1)  {'a':1}.get('a')  {'a':1}.items()  {'a':1}.keys()  {'a':1}.values()  {'a':1}.items()|list  {'a':1}.copy()  {'a':1,'b':2}.popitem()  {'a':1}.keys()|sort  {'a':1,'b':2}.values()|sum  'a' in {'a':1}.keys()  1 in {'a':1}.values()  ('a',1) in {'a':1}.items()  {'a':1}.items()|length  {'a':1}.keys()|first  {'a':1,'b':2}.keys()|join(',')  (1,2).index(2)  (1,2,1).count(1)  {'a':1}.items()|tojson  {'b':1,'a':2}.keys()|list|sort  {'a': 1}['a']  {'a': 1}.a  {1:2}[1]  {'items': 5}.items  {'items': 5}['items']  {'a':1} == {'a':1}  {'a':1} != {'b':1}  {'a':1} < {'a':2}
(5).bit_length()  5.0.is_integer()  (5.5).is_integer()  (7).real  1.5.hex()  (1).__class__  ''.__class__  ''.__len__()  [].__class__.__mro__  ''['__class__']  'a'|attr('__class__')  range.__name__  x.__dict__  loop  self  self.x  messages.__class__
1__0  1.5e3  0xFF  0XfF  0b11  0o17  1e3  1E-2  1.e3  007  1_000.5  .5  5.  1..real  1if yes else 2  'a'if yes else'b'  "a" "b" 'c'  'a\x41\u00e9\n'  '\N{BULLET}'  'a\
b'  '\0'  '\8'  '\xZZ'  '\u12'  "'" '"'  'a' ~ 'b' * 2  -'a'  +'a'  - - 5  +-5  not not yes  not 1 == 2  not (1)  2**-1  -2**2  2**3**2  10//3*3  10%3*2  1 + 2 ~ 3  1 ~ 2 + 3  1 < 2 == true  1 == 1 == 1  1 in [1] in [[1]]  1 in [1] == true  'a' not in 'b' in 'b'  1 is number is number  1 is number and 2 is number  not 1 is string  1 is not string  none is none  [] is iterable  5 is sameas 5  1 is sameas true  yes is sameas true  1 is in([1,2])  1 is in [1,2]  'x' is in 'xyz'  7 is divisibleby 3 or yes  (1 is eq(1)) and yes  1 is eq 1 and yes  2 is gt 1  2 is greaterthan 1  'a' is == 'a'
[1,2,3][-1]  [1,2,3][5]  [1,2,3][1:]  [1,2,3][:-1]  [1,2,3][::2]  'abc'[-5]  (1,2,3)[1:]  [1,2,3][none:2]  [1,2,3]['1']  [1,2][1.0]  {'a':1}[none]  'abc'[1,2]  [1,2][1:2,3]  list[-1:]  list[10:]  text[::-2]  text[-1:-5:-1]  [1,2,3].0  list.0  messages[0]['role'][0]  messages[0].content[::-1]  messages[0]['nope'].x  messages[0].nope|default('z')  none.x  none['x']  none[0]  true.x  nope is none  nope == none  nope == nope2  nope != 1  nope in [1]  1 in nope  nope ~ 'a'  'a' ~ nope  nope * 2  -nope  nope < 1  nope|int  nope|float  nope|list  nope|tojson  nope|string  nope|trim  nope|first  nope|last  nope|join  nope|sum  nope|sort  nope|unique|list  nope|map('upper')|list  nope|select|list  nope|items|list  nope|replace('a','b')  nope|e  nope|abs  nope|round  nope|reverse|list  nope|dictsort  nope|title  nope|indent  nope|length  nope|count  nope|max  nope|min  nope|format  nope|attr('x')  nope is iterable  nope is sequence  nope is mapping  nope is string  nope is number  nope is callable  nope is sameas nope  nope is eq none  nope is in [1]  nope and 1  nope or 1  not nope  nope if nope else 2  [nope]  [nope]|length  {'a': nope}  (nope,)  nope()  nope.a.b  nope[0]  nope[1:]

[3,1]|sort|first  'cab'|sort  {'b':1,'a':2}|sort  [[2,1],[1,2]]|sort  [(2,'a'),(1,'b')]|sort  ['b','A','c']|sort  ['b','A','c']|sort(true)  ['B','a']|sort(case_sensitive=true)  [1,2.5,true]|sort  [{'a':2},{'a':1}]|sort(attribute='a')  [{'a':{'b':2}},{'a':{'b':1}}]|sort(attribute='a.b')  [{'a':2,'b':1},{'a':1,'b':2}]|sort(attribute='b,a')  [{'a':1},{}]|sort(attribute='a')  [[1,2],[0,3]]|sort(attribute=1)  [[1,2],[0,3]]|sort(attribute='1')  [none,1]|sort  ['a',1]|sort  [{'a':1}]|sort
[1,1,2]|unique|list  ['a','A','b']|unique|list  ['a','A']|unique(true)|list  [{'a':1},{'a':1}]|unique(attribute='a')|list  [[1],[1]]|unique|list  [1,true,1.0]|unique|list  'aAbB'|unique|join
{'b':1,'a':2}|dictsort  {'B':1,'a':2}|dictsort(true)  {'b':1,'a':2}|dictsort(by='value')  {'b':1,'a':2}|dictsort(false,'value',true)  {'b':1}|dictsort(by='x')  {1:2,'a':3}|dictsort  [1]|dictsort
[1,2,3]|sum  [1.5,2]|sum  ['a']|sum  [[1],[2]]|sum(start=[])  [{'a':1},{'a':2}]|sum('a')  [{'a':1},{'a':2}]|sum(attribute='a',start=10)  []|sum  [{'a':{'b':1}}]|sum('a.b')
[1,2,3]|min  ['b','A']|min  ['b','A']|min(true)  [{'a':3},{'a':1}]|min(attribute='a')  []|min  [1,'a']|max  'abc'|max  {'a':1,'b':2}|max
[1,2]|first  ''|first  'ab'|first  {'a':1}|first  []|last  'ab'|last  {'a':1}|last  5|first  none|first  [1,2]|last  range(3)|last  (range(3)|list)[1]  range(5)[1:3]  range(3)  range(3)|length  range(3)|reverse|list  range(5)[2]  2 in range(3)  range(3) == range(3)  range(10)[::2]|list  range(3)|string  range(0,10,3)|list  range(3) is sequence  range(3) is iterable  range(1,2)|tojson  range('a')  range()  range(3)[-1]  range(3).start  range(3).count(1)  range(3).index(2)
[1,2]|join  [1,2]|join(',')  ['a','b']|join(d='-')  [{'a':1},{'a':2}]|join(',','a')  [{'a':1},{'a':2}]|join(attribute='a')  [none,true,1.5]|join(',')  'abc'|join('-')  {'a':1}|join  ['<',('<'|safe)]|join('&')  ['a']|join(1)  []|join(',')  5|join
'abc'|reverse  [1,2]|reverse  (1,2)|reverse|list  {'a':1,'b':2}|reverse|list  5|reverse
3.7|int  '3.7'|int  'abc'|int  'abc'|int(5)  ''|int  ' 5 '|int  '-5'|int  '+5'|int  '5_0'|int  '1e3'|int  'inf'|int  'nan'|int  []|int  {}|int  true|int  none|int(7)  '１２'|int  '9'*25|int  3.9999999|int  -3.7|int  '99999999999999999999'|int
'_5'|int  '5_'|int  '5__0'|int  '-'|int  '- 5'|int  ('9'*25)|int  '1e30'|int  '-1e300'|int  '9223372036854775808'|int  '-9223372036854775808'|int  '٣٤'|int  '٣٤'|float  '\u00a05\u3000'|int  '1\x00'|int  '1 2'|int  '1__0.5'|float  '_1.5'|float  '1_.5'|float  '1._5'|float  'infinity'|float  '-Inf'|float  '+nan'|float  'nan(1)'|float  '1e-5'|float  '.5'|float  '5.'|float  '.'|float  '1e'|float  '1e_5'|float  '1_0e1_0'|float  '0x1p3'|float
9007199254740993 == 9007199254740992.0  9007199254740992 == 9007199254740992.0  9007199254740993 > 9007199254740992.0  9007199254740992.0 < 9007199254740993  1e300 > 10  big > 1e29  big == 1.2345678901234568e+29  big < 1e400  1e400 > big  -1e400 < small  small == -9223372036854775808.0  9223372036854775807 < 9223372036854775808.0  [9007199254740993] == [9007199254740992.0]  1.5|round(-400)  -1.5|round(-400)  155|round(-400)  1e19|int  -1e19|int  ('9'*400)|float  'x\u00a0y\u2003z'|title  'a\x1cb'|title  [1]|tojson(indent=5000)|length  '²'.isdigit()  '①Ⅳ'.isdigit()  '①'.isdigit()  '½'.isdigit()  '𐩀'.isdigit()  '²'.isalnum()
'3.5'|float  'abc'|float  'abc'|float(1.5)  ''|float  '1e400'|float  'nan'|float  'inf'|float  '-inf'|float  '1_0.5'|float  5|float  none|float  true|float  ' 2.5 '|float  '0x1'|float  '１.５'|float  '1e5'|float  []|float('d')
3.14159|round(2)  2.5|round  3.5|round  -2.5|round  2.675|round(2)  1234.5|round(-2)  5|round  5|round(1)  5|round(-1)  15|round(-1)  2.1|round(0,'ceil')  2.9|round(0,'floor')  2.123|round(2,'ceil')  2.129|round(2,'floor')  -2.1|round(0,'floor')  'a'|round  2.5|round(0,'x')  true|round  1e300|round(2)  0.5|round  1.5|round  5|round(0,'ceil')  1234567|round(-3)  5|round(0,'common')  25|round(-1)  5.55|round(1)  1e16|round  10|round(method='floor')
-5|abs  -5.5|abs  true|abs  '5'|abs  none|abs  [1]|abs
'hello world'|capitalize  'HELLO'|capitalize  'ǆ'|capitalize  'ß'|capitalize  'hello-world foo_bar'|title  "it's"|title  'a1b'|title  'ŉ'|title  'hello(world)[x]{y}<z>'|title  'ÀÉ'|lower  'ß'|upper  'ŉ'|upper  'İ'|lower  'ΑΣ'|lower  'ΑΣ Β'|lower  'ΣΑΣ'.lower()  "they're bill's".title()  'x1y'.title()  'HeLLo wOrld'.title()  'ǆ'.title()  'ﬁ'.upper()  'ﬁ'.title()  'ﬁ'.capitalize()  'ΑΣ'.capitalize()  5|upper  none|lower  true|title
'  a '|trim  'xxaxx'|trim('x')  'xyaxy'|trim('yx')  5|trim  none|trim  '\u00a0a\u2003'|trim  '\x1ca\x1f'|trim  'a\u200b'|trim  ''|trim  'a'|trim('')  'abc'|trim(none)
'abc'|replace('b','x')  'aaa'|replace('a','b',2)  'abc'|replace('','-')  'abc'|replace('','-',2)  123|replace(2,'x')  'abc'|replace('b',5)  '<'|replace('<','>')  ('<'|safe)|replace('<','>')  ('a'|safe)|replace('a','<')  none|replace('N','x')  'a'|replace('a')  'abc'|replace(old='b',new='c')
'abc'|length  [1]|length  {'a':1}|length  5|length  none|length  (1,2)|length  'é🙂'|length  range(4)|length  ([1]|select)|length  ([1]|map('abs'))|length  {}|count  true|length
'abc'|list  {'a':1}|list  5|list  none|list  (1,2)|list  'a🙂'|list  [1]|list is sameas list
5|string  none|string  [1]|string  'a'|string  ('<'|safe)|string is escaped  1.0|string  true|string
'a\nb\nc'|indent  'a\nb'|indent(2)  'a\nb'|indent(2,true)  'a\n\nb'|indent(2)  'a\n\nb'|indent(2,false,true)  'a\nb'|indent('>>')  'a\r\nb'|indent  'a\n'|indent  'a\n\n'|indent(2, blank=true)  ''|indent(2,true)  'a\nb'|indent(width=1, first=true)  'a\u2028b'|indent(2)  'a\x0bb'|indent(1)  5|indent  ('<\n'|safe)|indent is escaped  'a\nb'|indent(-1)  'a\nb'|indent(0)  '\na'|indent(2)  '\na'|indent(2,true)
'<&>"\''|e  5|e  none|e  ('<'|safe)|e  ['<']|e  ('<'|e)|e  '<'|e ~ '<'  ('<'|safe) + '<'  '<' + ('<'|safe)  ('<'|safe) ~ '<'  ('%s'|safe) % '<'  ('{}'|safe).format('<')  ('a'|safe).join(['<','>'])  ('<a>'|safe).upper()  ('<a>'|safe).split('a')  ('<'|safe)*2  ('<a'|safe)[0]  ('<'|safe)|tojson  [('<'|safe)]  ('a'|safe) == 'a'  ('a'|safe)|upper is escaped  '<'|safe|trim is escaped  ('a'|safe)|lower is escaped  ('a,b'|safe).split(',')[0] is escaped  ('a'|safe).strip() is escaped  ('a'|safe).replace('a','<')  ('a<'|safe).replace('a','<')  ('a'|safe) in 'abc'  ('x'|safe)|replace('x','<y>') is escaped  ('x'|safe)|title is escaped  ('x'|safe)|string is escaped  ('x'|safe)|capitalize is escaped  ('xy'|safe)|first is escaped  ('xy'|safe)|reverse is escaped  ('xy'|safe)|list
dict|tojson(indent=0)  dict|tojson(indent=none)  dict|tojson(indent=2, separators=(',',':'))  [1.0,1e100,1e-7,-0.0,123456789012345680.0,0.1,1e22,1e16,123e20]|tojson  '\u007f\u0080\u2028é🙂'|tojson  '\u007f\u0080\u2028é🙂'|tojson(true)  '\b\f\n\r\t\x01"\\/'|tojson  {'b':1,'a':{'d':1,'c':2}}|tojson(sort_keys=true)  {2:1,10:2}|tojson(sort_keys=true)  {1:1,'a':2}|tojson(sort_keys=true)  {none:1}|tojson  {1.5:1,true:2}|tojson  {(1,2):1}|tojson  [nope]|tojson  (1,2)|tojson  range(2)|tojson  {'a':1}.items()|list|tojson  {'a':1}.keys()|tojson  [1,2]|map('string')|list|tojson  namespace(a=1)|tojson  ''|tojson  []|tojson(indent=2)  {}|tojson(indent=2)  [[]]|tojson(indent=2)  [{}]|tojson(indent=2)  {'a':[]}|tojson(indent=2)  {'a':[1,{'b':2}]}|tojson(indent=4)  'x'|tojson(indent=2)  5|tojson(2)  dict|tojson(false, 2)  dict|tojson(separators=[',',':'])  dict|tojson(separators=',')  dict|tojson(indent='ab')  dict|tojson(indent=true)  dict|tojson(nope=1)  true|tojson  none|tojson  1.5|tojson  dict|tojson(ensure_ascii=False, sort_keys=False, indent=None)
messages|map(attribute='role')|list  messages|map('attr','role')|list  messages|map('upper')|list|length  messages|map(attribute='content')|map('length')|list  ['a','b']|map('upper')|join  [1,2]|map('string')|join('-')  [[1,2],[3]]|map('length')|list  [[1,2],[3]]|map('first')|list  [[1,2],[3]]|map('join','-')|list  ['a']|map('replace','a','b')|list  [1,2]|map('multiply')|list  [1]|map|list  messages|map(attribute='nope')|list  messages|map(attribute='nope',default=5)|list  messages|map(attribute='nope', x=1)|list  [1.5,2.5]|map('round')|list  [{'a':[5]}]|map(attribute='a.0')|list  [{'a':1}]|map('tojson')|join  ['a']|map('default','x')|list  [none]|map('default','x',true)|list  ['1']|map('int')|list  ['x']|map('indent',2,true)|list
[1,2,3]|select('odd')|list  [1,2,3]|select('gt',1)|list  [1,2,3]|select('>',1)|list  [0,1,none]|select|list  [1,2,3]|reject('in',[1,2])|list  [1,'a']|select('string')|list  messages|selectattr('role','equalto','user')|list|length  messages|selectattr('role','==','user')|list|length  messages|selectattr('role','in',['user'])|list|length  messages|rejectattr('role','eq','user')|list|length  messages|selectattr('tool_calls','defined')|list  messages|selectattr('tool_calls')|list  messages|rejectattr('tool_calls')|list|length  messages|selectattr('tool_calls','undefined')|list|length  people|selectattr('tags.0','equalto','x')|list|length  [1]|select('nope')|list  messages|selectattr('role','match','u')|list  messages|selectattr|list  [1,2]|select('divisibleby',2)|list  [[1,2],[3]]|selectattr(0)|list  [1,2,3]|select('ne',2)|list  messages|selectattr('role','sameas','user')|list|length
namespace().x  namespace(x=1).x  namespace({'a':1}).a  namespace(a=1,b=2)  namespace(a=1)['a']  namespace(a=1).items()  namespace is callable  namespace(_x=1)  namespace(a=1) == namespace(a=1)  namespace([('a',1)]).a  namespace(a=1).b is defined  'a' in namespace(a=1)  namespace(a=1)|list  namespace(self=1).self  namespace(a=1) is mapping
dict(a=1)  dict()  dict({'a':1},b=2)  dict([['a',1]])  dict('a')  dict(a=1).a  dict is callable  dict({'a':1}|items)  dict([('a',1),('a',2)])  dict(**{'x':1})  dict(a=1)|length
raise_exception()  raise_exception('a','b')  raise_exception(message='m')  strftime_now('%d %B %Y, %A %a %j %p %I:%M:%S %y %U %w %x %X %c')  strftime_now()  strftime_now('')  strftime_now('%')  strftime_now('%Q')  strftime_now('%e|%k|%l|%s|%G|%V|%u|%h|%n|%t|%D|%F|%R|%T|%r|%C|%g')  strftime_now(format='%Y')  strftime_now('é %Y')  strftime_now('%-d %-m %-H %-I')  strftime_now('%f')  strftime_now('%Z%z')  strftime_now('%%')  strftime_now('%E')  strftime_now('%Ey')  strftime_now('%_d')  strftime_now('%^a')  strftime_now('%10Y')
1|default(2)  none|default(2)  none|default(2,true)  ''|default('x',boolean=true)  nope|default  nope|default(default_value='q')  messages[0].x|default('y')  nope.x|default('y')  nope|d(nope2)|d('z')
[1,2]+[3]  [1]*3  (1,)+(2,)  [1]+(2,)  'a'*3  3*'a'  'a'*true  [1]*0  'a'+none  1+none  1+'a'  [1]+1  {}+{}  {'a':1}|{'b':2}  1|2  5 % 0  5.0 // 0  5 // 0  0 ** -1  0.0 ** -1  (-8) ** 0.5  2 ** 0.5  2 ** 100  9223372036854775807 + 1  -9223372036854775808  9223372036854775808  123456789 * 987654321 * 1000  1e308 * 10  1e308 * 10 - 1e308 * 10  5 / 2  6 / 2  7 // 2.0  -7 % 3  7 % -3  -7.5 % 2  5 % 3.5  1 - true  true + true  0.1 * 3  1 / 3  100 / 3.0  1e5  1e16 + 1  123456.789e3  2.0 ** 3  10 ** -2  1 - -1  3 - 1 - 1  2 * 3 + 4 * 5  7 - 2 * 3  (1 + 2) * 3
1 < 'a'  [1] < [2]  (1,2) < (1,3)  'a' < 'B'  none < none  none == false  0 == false  '' == false  [] == false  1 == '1'  1.0 == 1  [1,2] == (1,2)  'a' == ('a'|safe)  {} == []  1 != 2 != 3  1 < 2 < 3 > 2  1 > 2 < 3  true > false  'é' > 'z'  '🙂' > '\uffff'  [1] == [true]  [] < [1]  [1,'a'] < [1,2]  [[]] == [[]]  nope == ''  0.0 == -0.0
messages[0] is mapping  messages is mapping  messages is sequence  'a' is sequence  5 is sequence  none is sequence  (1,) is sequence  {} is iterable  5 is iterable  range is iterable  loop is defined  'abc' is string  ('a'|safe) is string  b is boolean  1 is boolean  1.0 is float  1 is float  true is integer  true is number  1 is integer  'a' is number  none is none  none is defined  'A' is upper  'a1' is lower  '1' is lower  '' is lower  5 is lower  4 is even  -1 is odd  1.5 is odd  'a' is odd  true is odd  10 is divisibleby(5)  10 is divisibleby 0  'x' is escaped  ('x'|safe) is escaped  'trim' is filter  'nope' is filter  'defined' is test  5 is filter  dict is callable  'a'.upper is callable  [] is sameas []  none is sameas none  'a' is sameas 'a'  1.0 is sameas 1.0
"""

MORE_TEMPLATES = [
"{% for i in [1,2] %}{{ loop.index }}{% else %}x{% endfor %}",
"{% for i in list recursive %}{{ i }}{% endfor %}",
"{% for i in [[1,[2]],[3]] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}{{ loop.depth }}{{ loop.depth0 }}{% endif %}{% endfor %}",
"{% for i in [1,2,3] %}{% for j in [1] %}{{ loop.index }}{{ i }}{% endfor %}{{ loop.index }}{% endfor %}",
"{% for i in [1,2,3] %}{% set outer = loop %}{% for j in [1,2] %}{{ outer.index }}.{{ loop.index }} {% endfor %}{% endfor %}",
"{% for i in [1,1,2,2] %}{{ loop.changed(i) }}{{ loop.changed(i, 1) }}{% endfor %}",
"{% for i in range(5) %}{{ loop.cycle('a','b','c') }}{% endfor %}", "{% for i in [1] %}{{ loop.cycle() }}{% endfor %}",
"{% for i in [1,2] %}{{ loop }}{% endfor %}", "{{ loop.index }}", "{% for i in [1] %}{{ loop.nope }}|{{ loop['index'] }}|{{ loop['nope'] }}{% endfor %}",
"{% for i in [1,2] %}{{ loop.length }}{{ loop.revindex }}{% endfor %}", "{% for i in [1,2,3] if i != 2 %}{{ loop.index }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem is defined }}{% endfor %}",
"{% for i in [1,2,3] if loop.index > 1 %}{{ i }}{% endfor %}",
"{% set ns = namespace(i=0) %}{% for m in words if ns.i < 2 %}{% set ns.i = ns.i + 1 %}{{ m }}{% else %}none{% endfor %}{{ ns.i }}",
"{% set ns = namespace(i=0) %}{% for m in words if ns.i < 2 %}{% set ns.i = ns.i + 1 %}{{ m }}{{ loop.last }}{% endfor %}",
"{% set ns = namespace(i=0) %}{% for m in words if ns.i < 2 %}{% set ns.i = ns.i + 1 %}{{ m }}{{ loop.nextitem }}{% endfor %}",
"{% set ns = namespace(i=0) %}{% for m in words if ns.i < 2 %}{% set ns.i = ns.i + 1 %}{{ m }}{{ loop.index }}{{ loop.length }}{% endfor %}",
"{% set ns = namespace(i=0) %}{% for m in words if ns.i < 2 %}{% set ns.i = ns.i + 1 %}{{ m }}{{ loop.first }}{{ loop.revindex }}{% if loop.last %}L{% endif %}{% endfor %}",
"{% set ns = namespace(i=0) %}{% for m in tree[0].c if ns.i < 5 recursive %}{% set ns.i = ns.i + 3 %}{{ m.v }}{{ loop(m.c) }}{% endfor %}",
"{% set ns = namespace(stop=false) %}{% for m in messages if not ns.stop %}{% if m.role == 'user' %}{% set ns.stop = true %}{% endif %}{{ m.role }}{{ loop.previtem }}{% endfor %}",
"{% for i in list if i > 1 %}{{ i }}{{ loop }}{% endfor %}", "{% for a, b in dict.items() if loop %}{% endfor %}",
"{% if no %}{{ x|nosuch }}{% endif %}ok", "{% if yes %}{{ x|nosuch }}{% endif %}ok", "{{ x|nosuch if no else 'ok' }}", "{{ (1|nosuch) if yes }}", "{% if no %}{{ 1 is nosuch(2) }}{% else %}{{ 1 is nosuch }}{% endif %}",
"{% if no %}a{% elif x|nosuch %}b{% endif %}", "{{ 1|nosuch }}", "{{ 1 is nosuch }}", "{% if 1 is nosuch %}{% endif %}",
"{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}", "{% set ns = namespace() %}{% set (ns.a, (y, ns.b)) = (1, (2, 3)) %}{{ ns.a }}{{ y }}{{ ns.b }}", "{% set ns.a, y = 1, 2 %}", "{% set ns = namespace() %}{% for ns.a in [1] %}{% endfor %}", "{% with ns.a = 1 %}{% endwith %}", "{% for a, b in {'x': 1}.items() %}{{ a }}{{ b }}{% endfor %}", "{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}", "{% for a, in [(1,)] %}{{ a }}{% endfor %}", "{% for a, *b in [(1,2,3)] %}{{ a }}{% endfor %}",
"{% for i in 1, 2, 3 %}{{ i }}{% endfor %}", "{% for i in (1,2) + (3,) %}{{ i }}{% endfor %}", "{% for i in [1,2] if yes else [3] %}{{ i }}{% endfor %}", "{% for i in ([1,2] if yes else [3]) %}{{ i }}{% endfor %}", "{% for i in none %}{% endfor %}", "{% for i in nope %}a{% else %}b{% endfor %}", "{% for i in nope.x %}{% endfor %}", "{% for i in 'abc' %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}",
"{% for i in [1,2,3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% else %}e{% endfor %}", "{% for i in [1,2,3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% else %}e{% endfor %}", "{% for i in [] %}{% else %}{% break %}{% endfor %}", "{% for i in [1] %}{% for j in [] %}{% else %}{% break %}{% endfor %}x{% endfor %}", "{% for i in [1,2] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for i in [1,2] %}{% set x %}{% break %}{% endset %}{% endfor %}", "{% for i in [1,2] %}{% filter upper %}a{% if i == 1 %}{% break %}{% endif %}{% endfilter %}b{% endfor %}", "{% for i in [1,2,3] %}{% set x %}a{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endset %}{{ x }}{% endfor %}", "{% for i in [1,2] %}{% with a = i %}{{ a }}{% if a == 1 %}{% continue %}{% endif %}z{% endwith %}{% endfor %}", "{% for i in [1,2] %}{% generation %}g{% if i == 1 %}{% continue %}{% endif %}h{% endgeneration %}{% endfor %}", "{% for i in [1,2] %}{% call range() %}{% break %}{% endcall %}{% endfor %}",
"{% for i in [3,1,2]|sort %}{{ i }}{% endfor %}", "{% for i in [1,2] %}{% set i = 5 %}{{ i }}{% endfor %}{{ i }}", "{% set i = 9 %}{% for i in [1] %}{{ i }}{% endfor %}{{ i }}", "{% for loop in [1] %}{{ loop }}{% endfor %}", "{% for i in [1,2] %}{{ i }}{% endfor %}{{ loop is defined }}", "{% for k in dict %}{{ k }}{% endfor %}", "{% for i in list %}{{ loop.index0 is even }}{% endfor %}", "{% for x in [1,2,3] %}{{ x }}{{ ', ' if not loop.last else '.' }}{% endfor %}",
"{% macro m(a, b='x') %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}{{ m(1,2,3,4) }}{{ m(1, z=5) }}{{ m(b=2) }}", "{% macro m() %}{{ varargs|join(',') }}{% endmacro %}{{ m(1,2,3) }}", "{% macro m() %}{{ kwargs.a }}{{ kwargs|length }}{% endmacro %}{{ m(a=1,b=2) }}", "{% macro m(a) %}{% if varargs %}v{% endif %}{{ a }}{% endmacro %}{{ m(1,2) }}", "{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(1, **{'b': 2}) }}", "{% macro m() %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}", "{% macro m(a,b=1) %}{{ caller }}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.caller }}", "{% macro m(caller) %}{{ caller }}{% endmacro %}{{ m(5) }}", "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}{{ m(4) }}", "{% macro m() %}{{ caller('x') }}{% endmacro %}{% call(a, b='d') m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}{% call m() %}{{ loop is defined }}z{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% call(x) [1,2].index(1) %}a{% endcall %}", "{% macro o(x) %}[{{ caller(x) }}]{% endmacro %}{% for i in [1,2] %}{% call(v) o(i) %}{{ v }}{{ i }}{% endcall %}{% endfor %}", "{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% if no %}{% macro z() %}Z{% endmacro %}{% endif %}{{ z is defined }}", "{% macro m(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ m(1) }}{{ y is defined }}", "{% set y = 1 %}{% macro m() %}{{ y }}{% endmacro %}{% set y = 2 %}{{ m() }}", "{% macro m() %}{{ messages|length }}{% endmacro %}{{ m() }}", "{% for i in [1] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}", "{% macro m(a=[]) %}{{ a }}{% endmacro %}{{ m() }}{{ m([1]) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(3) }}", "{% set a = 1 %}{% macro m(b=a) %}{{ b }}{% endmacro %}{% set a = 2 %}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(a=1, a=2) }}", "{% macro m(a,a) %}{% endmacro %}", "{% macro m(a) -%}  x  {%- endmacro %}{{ m(1)|length }}", "{% macro m() %} a {% endmacro %}{{ m()|trim }}|{{ m() ~ 'b' }}|{{ m() + 'c' }}|{{ m() is string }}|{{ m() is escaped }}", "{{ m() }}{% macro m() %}{% endmacro %}", "{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}{{ m(none) }}", "{% macro endif() %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m() %}{% endmacro m %}", "{% macro f(n) %}{% if n %}{{ n }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(30) }}", "{% macro m(x) %}{% for i in x %}{{ m(i) if i is iterable else i }}{% endfor %}{% endmacro %}{{ m([1,[2,[3]]]) }}",
"{% set x = 1, 2 %}{{ x }}", "{% set x, y = [1, 2] %}{{ x }}{{ y }}", "{% set x, y = 'ab' %}{{ x }}{{ y }}", "{% set x, y = 1 %}", "{% set (x, y) = 1, 2 %}{{ x }}", "{% set x = y = 1 %}", "{% set x.y = 1 %}", "{% set ns = namespace() %}{% set ns.x, y = 1, 2 %}{{ ns.x }}{{ y }}", "{% set ns = namespace() %}{% set ns.x %}abc{% endset %}{{ ns.x }}", "{% set ns = namespace(a={}) %}{% set ns.a.b = 1 %}", "{% set ns = namespace() %}{% set ns['a'] = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}", "{% set ns = namespace(x=0) %}{% for i in [1,2,3] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set x %}  a  {% endset %}[{{ x }}]{{ x is escaped }}", "{% set x | trim | upper %} a {% endset %}[{{ x }}]", "{% set x | replace('a', 'b') %}aaa{% endset %}{{ x }}", "{% set x = [] %}{% set _ = x.append(1) %}{{ x }}", "{% do list.append(1) %}", "{% set x = {'a': 1} %}{% set x = dict(x, b=2) %}{{ x }}", "{% set true = 5 %}", "{% set none = 1 %}", "{% set x = 5 if no %}{{ x is defined }}[{{ x }}]", "{% set x = nope %}{{ x is defined }}", "{% set messages = messages[1:] %}{{ messages|length }}", "{% set loop_messages = messages if yes else [] %}{{ loop_messages|length }}", "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}", "{% set x = 1 %}{% with %}{% set x = 2 %}{{ x }}{% endwith %}{{ x }}", "{% if no %}{% set q = 1 %}{% endif %}{{ q is defined }}{{ q }}", "{% for i in [1,2] %}{% if i == 1 %}{% set v = 'a' %}{% endif %}{{ v }}{% endfor %}", "{% set v = 'o' %}{% for i in [1,2] %}{{ v }}{% set v = 'i' %}{{ v }}{% endfor %}{{ v }}", "{% set raise_exception = 5 %}{{ raise_exception }}", "{% set range = 5 %}{{ range }}", "{% set x = 'a' 'b' %}{{ x }}", "{% set a = 1 %}{% set b = a + 1 %}{% set a = b %}{{ a }}{{ b }}",
"{% with a=1, b=a %}{{ b }}{% endwith %}", "{% with %}{% endwith %}", "{% with a, b = 1, 2 %}{{ a }}{{ b }}{% endwith %}", "{% with a = 1 %}{% set a = 2 %}{{ a }}{% endwith %}{{ a }}", "{% with x = nope %}{{ x is defined }}{% endwith %}", "{% with (a, b) = (1, 2) %}{{ a }}{% endwith %}", "{% with a = 1, %}{{ a }}{% endwith %}",
"{% filter upper %}a{{ text }}{% endfilter %}", "{% filter upper|replace('A','b') %}a{% endfilter %}", "{% filter nope %}{% endfilter %}", "{% filter trim %}  x {% endfilter %}", "{% filter indent(2) %}a\nb\n{% endfilter %}|", "{% filter upper %}{% set x = 1 %}{% endfilter %}{{ x }}", "{% filter tojson %}a\"{% endfilter %}", "{% filter e %}<{% endfilter %}",
"{% if yes %}a{% elif no %}b{% else %}c{% endif %}", "{% if no %}a{% elif no %}b{% elif yes %}c{% endif %}", "{% if not no and (yes or no) %}x{% endif %}", "{% if nope is defined and nope.x %}a{% else %}b{% endif %}", "{% if nope %}a{% endif %}", "{% if '' %}a{% elif [] %}b{% elif {} %}c{% elif 0 %}d{% elif 0.0 %}e{% elif none %}f{% elif () %}g{% else %}h{% endif %}", "{% if [0] %}a{% endif %}", "{% if namespace() %}a{% endif %}", "{% if list|select %}a{% endif %}", "{% if x = 1 %}{% endif %}", "{% if %}{% endif %}", "{% if 1, 2 %}a{% endif %}", "{% else %}", "{% if yes %}{% else %}{% else %}{% endif %}", "{% if yes %}{% elif %}{% endif %}", "{% if yes -%} a {%- endif %}", "{%if yes%}a{%endif%}", "{% if yes %}\n\na{% endif %}\n\nb", "{% if(yes) %}a{% endif %}", "{% if not(no) %}a{% endif %}", "{%- if yes %}a{%- endif %}", "{%+ if yes %}a{%+ endif %}",
"  {%+ if yes %}a{% endif %}", "a\n  {% if yes %}  \n  b{% endif %}  \n", "a\n  {%- if yes -%}\n  b\n  {%- endif -%}\n c", "{% raw %}{{ x }}{% endraw %}", "{%- raw -%} {{ x }} {%- endraw -%} y", "  {% raw %}\n x {% endraw %}\n y", "{% raw %}{% raw %}{% endraw %}", "{% raw %}\n{% endraw %}\nx", "{%raw%}a{%endraw%}", "a {% raw -%} b {%- endraw %} c", "  {%+ raw %}a{% endraw +%}\n b", "{# a #}\nb", "a {#- b -#} c", "  {# a #}\n b", "a {# x #} b", "{# {{ x }} {% y %} #}z", "{#+ x +#}\nz", "{# a\nb #}c", "{##}x", "{#-#}x", "{#--#} x", "{# a #}{# b #}\n\nc", "a\n{# c #}\nb", "a\n\t{#- c #}\nb", "{{ 1 -}} \n x", "x \n {{- 1 }}", "x \n {{+ 1 }}", "{{ 1 +}}\n x", "{{-1}}", "{{- 1 -}}", "{{ -1 }}", "{{ - 1 }}", "{{--1}}", "{{ 1 - -}}", "{%-set x = 1-%} {{x}}", "{%- set x = -1 -%}{{ x }}", "\r\n{% if yes %}\r\na\r\n{% endif %}\r\nb\r\n", "a\rb\r{% if yes %}\rc{% endif %}", "\n\n{% if yes %}a{% endif %}\n\n\n", "a\n\n", "a\n", "\n", "", " ", "  {{ 1 }}  ", "\t{% set x = 1 %}\t\n\tb", "a{% set x = 1 %}\nb", "a{% set x = 1 %} \nb", "\u00a0{% set x = 1 %}\nb", "\x0b{% if yes %}\x0b\na{% endif %}", "a\u2028  {% if yes %}b{% endif %}", "a\x0c {% if yes %}b{% endif %}", "{% if yes %}\x85x{% endif %}", "{{ '\r\n' }}|{{ 'a\rb' }}",
"{{", "}}", "{{ }}", "{% %}", "{{ 1 }", "{ { 1 } }", "{{ 1 }}}", "{{{ 1 }}}", "{{ {} }}", "{{ {'a': {'b': 1}} }}", "{{ {'a':{'b':1}}}}", "{%", "{#", "{# #", "#}", "%}", "{{ '}}' }}", "{% if '%}' %}x{% endif %}", "{{ \"{{\" }}", "{{ a.b.c.d }}", "{{ messages[0] . role }}", "{{ messages [0] }}", "{{ ( ( 1 ) ) }}", "{{ [1,\n2] }}", "{{\n1\n}}", "{{ 1 2 }}", "{{ a b }}", "{{ (1, }}", "{{ (1,) }}", "{{ () }}", "{{ , }}", "{{ 1, }}", "{{ 1, 2 }}", "{{ [1, , 2] }}", "{{ [,] }}", "{{ {,} }}", "{{ {'a'} }}", "{{ {'a':} }}", "{{ {**dict} }}", "{{ [*list] }}", "{{ f(*) }}", "{{ f(**) }}", "{{ f(a=1, 2) }}", "{{ range(*[1,5]) }}", "{{ dict(**{'a':1}) }}", "{{ dict(a=1, **{'b':1}) }}", "{{ dict(**{'b':1}, a=1) }}", "{{ range(*[1], 5)|list }}", "{{ range(1, *[5])|list }}", "{{ 1 if }}", "{{ if }}", "{{ 1 if yes else }}", "{{ 1 if yes else 2 if no else 3 }}", "{{ (1 if no) }}", "{{ 1 if no else 2 if no }}", "{{ not }}", "{{ 1 + }}", "{{ * 1 }}", "{{ 1 ** }}", "{{ a.1 }}", "{{ a. }}", "{{ .a }}", "{{ a..b }}", "{{ a[] }}", "{{ a[1 }}", "{{ a[:] }}", "{{ list[:] }}", "{{ list[1:2:1] }}", "{{ list[::] }}", "{{ list[1:2:3:4] }}", "{{ @ }}", "{{ $x }}", "{{ x! }}", "{{ x ? 1 }}", "{{ `x` }}", "{{ x & y }}", "{{ x ^ y }}", "{{ ~x }}", "{{ x = 1 }}", "{{ x == }}", "{{ x is }}", "{{ x is not }}", "{{ x | }}", "{{ x |upper| lower }}", "{{ 'a'|upper() }}", "{{ 'a'|upper.x }}", "{{ ('a'|upper).lower() }}", "{{ 'a'|upper|length }}", "{{ 'a' | upper ~ 'b' | upper }}", "{{ 'a' + 'b' | upper }}", "{{ ('a' + 'b') | upper }}", "{{ 'a'.upper() | lower }}", "{{ 'a'|d.x }}", "{{ x is defined | upper }}", "{{ (x is defined) | string | upper }}", "{{ 'a'|lower() == 'a' }}", "{{ 1 is eq(1) }}", "{{ 5 is divisibleby(5) and yes }}", "{{ 1 is number or nope }}", "{{ 'a' in 'abc' and 'b' in 'abc' }}", "{{ not 'a' in 'abc' }}", "{{ 1 in [1] and 2 not in [1] }}", "{{ lambda x: x }}", "{{ [x for x in list] }}", "{{ 'a'if 1else'b' }}", "{{ true and false or true }}", "{{ yes and 'a' or 'b' }}", "{{ (yes and 'a') or 'b' }}", "{{ none or 0 or '' or [] }}", "{{ 1 and 2 and 3 }}", "{{ True }}{{ TRUE }}{{ true }}", "{{ None }}{{ NONE }}{{ null }}", "{{ 'a'.b.c }}", "{{ messages[0].role.upper() }}", "{{ messages[-1].role }}", "{{ messages[-1:][0].role }}", "{{ messages|last|attr('role') }}", "{{ (messages|last).role }}", "{{ messages|map(attribute='role')|join(',')|upper }}",
"{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}", "{% block a %}x{% endblock %}", "{% autoescape true %}{{ '<' }}{% endautoescape %}", "{% trans %}a{% endtrans %}", "{% do 1 %}", "{% debug %}", "{% continue %}", "{% generation %}a{% endgeneration %}", "{%- generation -%} a {%- endgeneration -%} b", "{% generation %}{% for i in [1] %}{{ i }}{% endfor %}{% endgeneration %}", "{% generation %}{% set z = 1 %}{% endgeneration %}{{ z }}", "{% generation x %}{% endgeneration %}", "{% for m in messages %}{% generation %}{{ m.content }}{{ loop.index }}{% endgeneration %}{% endfor %}", "{% endfor %}", "{% endset %}", "{% for i in [1] %}", "{% for i in [1] %}{% endif %}", "{% if 1 %}{% endfor %}", "{% set x %}", "{% call m() %}", "{% unknown %}", "{% block a %}{{ self.a is defined }}{% endblock %}",
"{% block title %}T{{ n }}{% endblock %}", "{% block a %}{% for i in [1,2] %}{{ i }}{% endfor %}{% endblock %}", "{% set x = 5 %}{% block a %}{{ x }}{% endblock %}", "{% block a scoped %}x{% endblock a %}", "{% block a %}{% endblock b %}", "{% block a %}1{% endblock %}{{ self.a() }}", "{% for i in [1,2] %}{% block b scoped %}{{ i }}{% endblock %}{% endfor %}", "{% for i in [1,2] %}{% block b %}{{ i }}{% endblock %}{% endfor %}", "{% block a required %}{% endblock %}",
"{% autoescape false %}{{ '<' }}{% endautoescape %}", "{% autoescape true %}{{ '<' }}{{ '<'|safe }}{{ '<' ~ '>' }}{% endautoescape %}{{ '<' }}",
"{{ messages|tojson }}", "{{ messages|tojson(indent=4) }}", "{% for m in messages %}{{ m|tojson }}\n{% endfor %}", "{% for m in messages -%}\n<{{ m['role'] }}>\n{{ m.content|trim }}\n{%- endfor %}", "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set sys = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% endif %}{{ loop_messages|length }}{{ sys is defined }}", "{{ raise_exception('Conversation roles must alternate') if n == 7 else '' }}", "{{- '<|im_start|>' + messages[0].role + '\\n' }}", "{{ 'a' ~ messages[0]['nope'] ~ 'b' }}", "{{ 'a' + messages[0]['nope'] }}", "{{ messages[0]['nope'] + 'a' }}", "{{ messages[0].content + 5 }}", "{%- for i in range(messages|length) -%}{{ messages[i].role }}{%- endfor -%}", "{{ messages|length > 1 and messages[1].role == 'assistant' }}", "{%- set m = messages|selectattr('role', 'equalto', 'user')|list -%}{{ m|length }}{{ m[-1].content }}", "{% set last = messages | map(attribute='role') | list | last %}{{ last }}", "{%- for tool in tools %}{{ tool }}{% endfor %}", "{% if tools is defined and tools %}{% endif %}ok", "{% if tools is not none %}a{% endif %}", "{%- if 'x' in messages[0] %}a{% endif %}{% if messages[0].x is defined %}b{% endif %}c",
]

# Templates that we refuse, or print differently, on purpose: integers beyond 64 bits and complex numbers, addresses of objects,
# printed ranges, filters for web pages, errors that Python finds only when it compiles, and so on.
APART = [
    "{#",
    "{% autoescape false %}{{ '<' }}{% endautoescape %}",
    "{% autoescape true %}{{ '<' }}{% endautoescape %}",
    "{% autoescape true %}{{ '<' }}{{ '<'|safe }}{{ '<' ~ '>' }}{% endautoescape %}{{ '<' }}",
    "{% block a %}1{% endblock %}{{ self.a() }}",
    "{% block a %}{{ self.a is defined }}{% endblock %}",
    "{% for a, in [(1,)] %}{{ a }}{% endfor %}",
    "{% for loop in [1] %}{{ loop }}{% endfor %}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(a=1, a=2) }}",
    "{% macro m(a,a) %}{% endmacro %}",
    "{% macro m(caller) %}{{ caller }}{% endmacro %}{{ m(5) }}",
    "{{ '\\N{BULLET}' }}",
    "{{ '\\u12' }}",
    "{{ '\\xZZ' }}",
    "{{ 'abc'.encode() }}",
    "{{ 'abc'.isidentifier() }}",
    "{{ 'abc'.translate({97:'x'}) }}",
    "{{ '½'.isnumeric() }}",
    "{{ ('xy'|safe)|reverse is escaped }}",
    "{{ (-8) ** 0.5 }}",
    "{{ (5).bit_length() }}",
    "{{ (5.5).is_integer() }}",
    "{{ (7).real }}",
    "{{ 007 }}",
    "{{ 1.0 is sameas 1.0 }}",
    "{{ 1.5.hex() }}",
    "{{ 123456789 * 987654321 * 1000 }}",
    "{{ 2 ** 100 }}",
    "{{ 5.0.is_integer() }}",
    "{{ 9223372036854775807 + 1 }}",
    "{{ [1,2,3].index(2,1) }}",
    "{{ [1,2][1:2,3] }}",
    "{{ [1,2]|reverse }}",
    "{{ messages|map(attribute='nope', x=1)|list }}",
    "{{ namespace(_x=1) }}",
    "{{ nope is sameas nope }}",
    "{{ nope|attr('x') }}",
    "{{ range(3).start }}",
    "{{ self }}",
    "{{ self.x }}",
    "{{ {'items': 5}.items }}",
]


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2025, 7, 10, 12, 0, 0)


def render(template):
    try:
        return {"rendered": chat._compile_jinja_template(template).render(**copy.deepcopy(CONTEXT))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def steady(row):
    """Not what only this run of Python prints, and not what it finds wrong only when it compiles."""
    text = row.get("rendered", "")
    unsteady = re.search("0[xX][0-9a-fA-F]{6}", text) or len(text) > 5000
    return not unsteady and not row.get("error", "").startswith(("SyntaxError", "NameError"))


if __name__ == "__main__":
    chat.datetime = Clock
    lines = (EXPRESSIONS + MORE_EXPRESSIONS + FORMATS).split("\n")
    templates = ["{{ %s }}" % e.strip() for line in lines for e in line.split("  ") if e.strip()] + TEMPLATES + MORE_TEMPLATES + list(template_random.formats(1, 700))
    templates += template_random.templates(1, 1200)
    templates = [t for t in dict.fromkeys(templates) if t not in APART]
    rows = [{"template": t} | render(t) for t in templates]
    rows = [row for row in rows if steady(row)]
    text = f'{{"context": {json.dumps(CONTEXT)},\n"cases": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n"
    (HERE / "template.json").write_text(text)
    print(len(rows), "templates")
