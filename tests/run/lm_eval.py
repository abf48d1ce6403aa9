# SPDX-License-Identifier: Apache-2.0
"""For lm_eval.sh: jobs/lm_eval/cake_mpi_lm.py with stand-ins for the parts of lm-evaluation-harness that it uses.

usage: python lm_eval.py PLUGIN KEY=VALUE...    with requests in JSON on standard input, a line each: [kind, arg, ...]
"""
import importlib.util
import json
import sys
import types


class LM:
    def __init__(self):
        self.cache_hook = types.SimpleNamespace(add_partial=lambda *_: None)


def normalize_gen_kwargs(given, default_max_gen_toks):
    given = {"do_sample": False, "max_gen_toks": default_max_gen_toks, **given}
    return {**given, "until": [given["until"]] if isinstance(given.get("until"), str) else given.get("until", [])}


for name, members in (("lm_eval", {}), ("lm_eval.api", {}), ("lm_eval.models", {}), ("lm_eval.api.model", {"LM": LM}),
                      ("lm_eval.api.registry", {"register_model": lambda *_: lambda cls: cls}),
                      ("lm_eval.models.utils", {"normalize_gen_kwargs": normalize_gen_kwargs})):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(members)

spec = importlib.util.spec_from_file_location("plugin", sys.argv[1])
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)
model = plugin.CakeMPI(**dict(arg.split("=", 1) for arg in sys.argv[2:]))
requests = {}
for line in sys.stdin:
    kind, *args = json.loads(line)
    requests.setdefault(kind, []).append(types.SimpleNamespace(args=tuple(args)))
for kind, of in requests.items():
    try:
        for answer in getattr(model, kind)(of):
            print(json.dumps(answer))
    except RuntimeError as error:
        print(error)
