"""A chat template is somebody else's program: what published ones need works, and what burns or breaks out ends."""

from __future__ import annotations

import concurrent.futures
import time

import pytest

from mtfcore.errors import LayoutError
from mtfcore.model.files.metering import Limits
from mtfcore.model.files.sandbox import compiled

TALK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hello "}]
QUICK = Limits(seconds=0.3)
HOLDS_ON = 20  # seconds after which a template counts as one that was not stopped


def render(source: str, **variables: object) -> str:
    return compiled(source, QUICK)({"messages": TALK, "add_generation_prompt": True, "bos_token": "<s>", **variables})


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m['content'] | trim }}{% endfor %}",
         "<s>[system]Be brief.[user]Hello"),
        ("{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}{% endif %}{{ rest | length }}", "1"),
        ("{% for m in messages %}{{ loop.index0 % 2 }}{{ '!' if loop.last else ',' }}{% endfor %}", "0,1!"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "2"),
        ("{% macro turn(m, end='.') %}"
         "<{{ m.role ~ end }}>{% endmacro %}{{ turn(messages[0]) ~ turn(m=messages[1], end='') }}",
         "<system.><user>"),
        ("{% macro box() %}[{{ caller() }}]{% endmacro %}{% call box() %}x{% endcall %}", "[x]"),
        ("{% for m in messages if m.role != 'system' %}{{ m.content.strip() }}{% break %}{% endfor %}", "Hello"),
        ("{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('|') | trim }}",
         "Hello"),
        ("{{ {'a': [1, 2.5, none, true]} | tojson }}", '{"a": [1, 2.5, null, true]}'),
        ("{{ tools is defined }} {{ tools | default('none') }} {{ 'a,b'.split(',')[-1] }} {{ 'x' * 3 }}",
         "False none b xxx"),
        ("{% set text %}{% for m in messages %}{{ m.role }} {% endfor %}{% endset %}{{ text.replace(' ', '_') }}",
         "system_user_"),
        ("{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}", "role=system;content=Be brief.;"),
        ("{% for n in range(3) %}{{ n }}{% endfor %}{{ [3, 1, 2] | sort | last }}{{ 7 // 2 }}{{ 2 ** 3 }}", "012338"),
        ("  {% if true %}\n  x\n  {% endif %}", "  x\n"),
    ],
)  # fmt: skip
def test_what_templates_of_published_models_use_works(source, said):
    assert render(source) == said


BURNING = {
    "a loop over a large range": "{% for i in range(10 ** 9) %}{% endfor %}",
    "loops in loops": "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "a text times a number": "{{ 'x' * 10 ** 9 }}",
    "a list times a number": "{{ ([0] * 10 ** 9) | length }}",
    "times a text": "{{ 10 ** 9 * 'x' }}",
    "a large power": "{{ 10 ** 10 ** 10 }}",
    "many powers": "{{ 9 ** 9 ** 9 ** 9 }}",
    "numbers that grow": "{% set ns = namespace(n=3) %}{% for i in range(99) %}{% set ns.n = ns.n ** 2 %}{% endfor %}",
    "a number of many digits": "{{ " + "9" * 5000 + " }}",
    "doubling by ~": "{% set s = 'ab' %}" + "{% set s = s ~ s %}" * 60 + "{{ s }}",
    "doubling by +": "{% set s = 'ab' %}" + "{% set s = s + s %}" * 60 + "{{ s }}",
    "doubling by a block": "{% set s = 'ab' %}" + "{% set s %}{{ s }}{{ s }}{% endset %}" * 60 + "{{ s }}",
    "doubling by replace": "{% set s = 'aa' %}" + "{% set s = s.replace('a', s) %}" * 20,
    "doubling by the filter replace": "{% set s = 'aa' %}" + "{% set s = s | replace('a', s) %}" * 20,
    "doubling by join": "{% set s = 'aa' %}" + "{% set s = s | join(s) %}" * 20,
    "doubling by the method join": "{% set s = 'aa' %}" + "{% set s = s.join([s, s, s]) %}" * 40,
    "a list in itself, doubled": "{% set x = [1] %}" + "{% set x = [x, x] %}" * 60 + "{{ x }}",
    "doubled lists compared": "{% set x = [1] %}{% set y = [1] %}"
    + "{% set x = [x, x] %}{% set y = [y, y] %}" * 60 + "{{ x == y }}",
    "doubled tuples as keys": "{% set x = (1, 2) %}" + "{% set x = (x, x) %}" * 60 + "{{ {x: 1} | length }}",
    "doubled as JSON": "{% set x = {} %}" + "{% set x = {'a': x, 'b': x} %}" * 60 + "{{ x | tojson }}",
    "doubled by a call": "{% set x = dict(a=1) %}" + "{% set x = dict(a=x, b=x) %}" * 60 + "{{ x }}",
    "doubled in namespaces": "{% set x = namespace(a=1) %}" + "{% set x = namespace(a=x, b=x) %}" * 60 + "{{ x }}",
    "namespaces in a list": "{% set x = namespace(a=1) %}{% set x.a = x %}{{ [x] | string }}",
    "deep lists": "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}",
    "a macro that calls itself": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "a macro that calls itself twice": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
    "{{ f(60) }}",
    "a wide center": "{{ 'x' | center(10 ** 9) }}",
    "a wide center, at compile time": "{{ 'x' | center(1000000000) }}",
    "a wide indent": "{{ 'a\nb' | indent(1000000000) }}",
    "a wide format": "{{ '%1000000000d' % 1 }}",
    "a wide format of Jinja's": "{{ '%1000000000d' | format(1) }}",
    "a wide format of a text": "{{ '{:1000000000}'.format(1) }}",
    "a wide format from a mapping": "{{ '{a:1000000000}'.format_map({'a': 1}) }}",
    "wide methods": "{{ 'x'.ljust(10 ** 9) }}",
    "zeros": "{{ 'x'.zfill(10 ** 9) }}",
    "tabs": "{{ '\t'.expandtabs(10 ** 9) }}",
    "wide JSON": "{{ [1] | tojson(indent=10 ** 9) }}",
    "a wide batch": "{{ [1] | batch(10 ** 9, 0) | list }}",
    "rounding": "{{ 1.5 | round(1000000000, 'ceil') }}",
    "lorem ipsum": "{{ lipsum(n=10000, html=False) }}",
    "literal text in a loop": "{% for a in range(9999) %}" + "x" * 50_000 + "{% endfor %}",
    "long dropped items": "{% set s = 'b' * 500000 %}{% set x = ('a' * 500000) | list %}"
    "{{ x | select('in', s ~ 'c') | list }}",
    "stripping": "{% set s = 'a' * 900000 %}{{ s.strip('b' * 900000 ~ 'a') }}",
    "trimming": "{% set s = 'a' * 900000 %}{{ s | trim('b' * 900000 ~ 'a') }}",
    "searching from behind": "{% set s = 'a' * 900000 %}{{ s.rfind('b' ~ 'a' * 400000) }}",
    "many slices": "{% set s = 'a' * 900000 %}" + "".join(f"{{% set s{n} = s[1:] %}}" for n in range(100)),
    "recursive loops": "{% for x in [[1]] recursive %}{{ loop(x) }}{% endfor %}",
    "deep brackets": "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
    "deep blocks": "{% if 1 %}" * 3_000 + "{% endif %}" * 3_000,
    "deep loops": "{% for a in [1] %}" * 30 + "{% endfor %}" * 30,
    "long sums": ("{{ 1" + " + 1" * 40 + " }}") * 380 + "{{ 1 + none }}",
    "a deep else": "{% if 1 %}" + "{% elif 1 %}" * 5_000 + "{% endif %}",
    "too long": "x" * 70_000,
    "an open comment": "{#" * 30_000,
}  # fmt: skip


@pytest.mark.parametrize("name", BURNING)
def test_what_burns_time_or_memory_is_stopped_on_any_thread(name):
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        with pytest.raises(LayoutError, match="chat template"):
            other.submit(render, BURNING[name]).result(HOLDS_ON)
    assert time.monotonic() - began < HOLDS_ON


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__class__ }}{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'x'}) }}",
        "{{ messages[0].__init__.__globals__ }}",
        "{{ range.__wrapped__ }}{{ range.__globals__['datetime'] }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ raise_exception.__code__.co_consts }}",
        "{{ ''['__class__']['__base__'] }}",
        "{{ (messages | map(attribute='__class__') | first).mro() }}",
        "{{ 'x' | attr('__class__') }}",
        "{{ self.__init__ }}{{ self }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'x' as y %}",
        "{% extends 'x' %}",
        "{% block a %}{% endblock %}",
        "{{ [].pop() }}",
        "{% for m in messages %}{{ loop }}{% endfor %}",
        "{{ render }}{{ undefined_name.x }}",
        "{{ messages[0]. }}",
        "{% for %}",
        "{{ raise_exception('roles must alternate') }}",
        "{{ 1 / 0 }}{{ none + 1 }}",
    ],
)
def test_what_breaks_out_or_breaks_ends_in_one_kind_of_error(source):
    with pytest.raises(LayoutError, match="chat template"):
        render(source)


def test_what_a_template_refuses_is_said_in_its_words():
    with pytest.raises(LayoutError, match="refuses this conversation: roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")


def test_a_conversation_that_is_too_long_is_refused_before_it_is_rendered():
    with pytest.raises(LayoutError, match="a value of 1,1"):
        render("{{ messages }}", messages=[{"role": "user", "content": "x" * 1_100_000}])
