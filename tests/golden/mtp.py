#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/mtp/NAME/{mtp.safetensors, model.safetensors.index.json, expected.json}: the layer of multi-token
prediction of four golden models, which lie beside these files when they are copied together. Run by hand, as models.py:

    python3 tests/golden/mtp.py

transformers skips these layers, so the formula stands here once more, around decoder layers of transformers: what
follows a position is predicted from the model's hidden state there, after the final norm, and from the embedding of the
token behind it (DeepSeek-V3 Technical Report, 2.2; vLLM computes the same). expected.json has the best five tokens after
each position but the last of a prompt, and what it goes on with, on its own, after the first of them. One of the layers has learned the answers to the model's requests.jsonl.
"""
import json

import torch
from safetensors.torch import save_file

import models

CUT = 37  # positions of the prompt after which it goes on with its own tokens

# name: what the names of the layer's tensors begin with, and those around it: join, norm of the embedding, of the
# hidden state, and before the head; the layer of the model that it is like; whether it learns to be right
MODELS = {
    "qwen3.5-text": ("mtp.layers.0.", ["mtp.fc", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm"], 3, True),
    "qwen3next-keys": ("mtp.layers.0.", ["mtp.fc", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm"],
                       -1, False),
    "deepseek3-groups": ("model.layers.4.", ["model.layers.4." + n for n in
                                             ("eh_proj", "enorm", "hnorm", "shared_head.norm")], 3, False),
    "glm4moe-groups": ("model.layers.{n}.", ["model.layers.{n}." + n for n in
                                            ("eh_proj", "enorm", "hnorm", "shared_head.norm")], -1, False),
}


def norm(x, weight, eps, less_one):
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return x * (weight + int(less_one))


class Predictor(torch.nn.Module):
    """The layer with what stands around it. around: join, norms of embedding and hidden state, norm before the head."""

    def __init__(self, model, layer, around, less_one):
        super().__init__()
        self.layer, self.less_one, self.eps = layer, less_one, model.config.rms_norm_eps
        self.around = torch.nn.ParameterList(around)
        self.model = [model]  # not a part of it

    def forward(self, ids, further=0):
        """Scores of what follows each of ids [n] but the last, next but one; further: and so many best tokens more, each
        of which follows as if the one before, or the best after the last, had."""
        model, = self.model
        with torch.no_grad():
            hidden = model.model(ids[None], use_cache=False).last_hidden_state[:, :-1]
            embedded = model.model.embed_tokens(ids[None, 1:])
        join, of_embedding, of_hidden, last = self.around
        hidden, more = norm(hidden, of_hidden, self.eps, self.less_one), []
        while True:
            x = torch.cat([norm(embedded, of_embedding, self.eps, self.less_one), hidden], -1) @ join.T
            positions = torch.arange(x.shape[1])[None]
            mask = torch.full((x.shape[1],) * 2, float("-inf"), dtype=x.dtype).triu(1)[None, None]
            x = self.layer(x, attention_mask=mask, position_ids=positions,
                           position_embeddings=model.model.rotary_emb(x, positions))
            x = x[0] if isinstance(x, tuple) else x
            normed = norm(x, last, self.eps, self.less_one)
            scores = model.lm_head(normed)[0]
            if not further:
                return scores
            if len(more) == further:
                return scores[:-further], more
            token = scores[-1].argmax()
            values = torch.log_softmax(scores[-1], -1).topk(2).values
            more.append([token.item(), round((values[0] - values[1]).item(), 6)])
            # Qwen's layer goes on with its output after its last norm, DeepSeek's with the output itself
            own = (normed if self.less_one else x)[:, -1:]
            hidden = torch.cat([hidden, norm(own, of_hidden, self.eps, self.less_one)], 1)
            embedded = torch.cat([embedded, model.model.embed_tokens(token[None, None])], 1)


def learn(predictor, answers):
    """Fits it to the model's own greedy answers, so that drafts for these requests are right."""
    optimizer = torch.optim.Adam(predictor.parameters(), lr=0.01)
    for _ in range(150):
        loss = 0
        for prompt, ids in answers:
            scores = predictor(torch.tensor(prompt + ids[:-1]))[len(prompt) - 1:]
            loss = loss + torch.nn.functional.cross_entropy(scores, torch.tensor(ids[1:]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def make(name, where, around, like, learns):
    spec, path = models.MODELS[name], models.HERE / name
    model = models.load(path, spec).requires_grad_(False)
    inner, config = model.model, model.config
    where, around = where.format(n=config.num_hidden_layers), [a.format(n=config.num_hidden_layers) for a in around]
    like = like % config.num_hidden_layers
    generator = torch.Generator().manual_seed(len(name))
    layer = type(inner.layers[like])(config, like).double().eval()
    family, less_one = models.text_type(spec), int(spec["model_type"] in models.LESS_ONE)
    layer.load_state_dict(models.weights(layer, spec, generator))
    dim, dtype = config.hidden_size, models.DTYPES[spec["dtype"]]
    outer = [(2 * dim) ** -0.5 * torch.randn(dim, 2 * dim, generator=generator, dtype=torch.float64)]
    outer += [0.6 + 0.8 * torch.rand(dim, generator=generator, dtype=torch.float64) - less_one for _ in range(3)]
    predictor = Predictor(model, layer, outer, less_one)
    expected = json.loads((path / "expected.json").read_text())["sequences"]
    if learns:
        learn(predictor, [(s["prompt"], s["ids"]) for s in expected])
    predictor.requires_grad_(False)
    for weight in predictor.parameters():
        weight.copy_(weight.to(dtype))
    tensors = models.split_experts({where + k: v for k, v in layer.state_dict().items()}, family)
    tensors |= {n + ".weight": t.data for n, t in zip(around, predictor.around)}
    tensors = {k: v.to(torch.float32 if k.endswith("e_score_correction_bias") else dtype).contiguous()
               for k, v in tensors.items()}

    ids = torch.randint(models.vocab_size(spec), (90,), generator=generator)
    with models.throughout_double(family.startswith(("qwen3_5", *models.MIXTURES))):
        scores = predictor(ids)
        further = predictor(ids[:CUT + 1], 3)[1]
    assert scores.dtype == torch.float64
    values, best = torch.log_softmax(scores, -1).topk(5)
    out = models.HERE / "mtp" / name
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "mtp.safetensors", metadata={"format": "pt"})
    index = json.loads((path / "model.safetensors.index.json").read_text())
    index["weight_map"] |= {k: "mtp.safetensors" for k in tensors}
    models.write_json(out / "model.safetensors.index.json", index, 1)
    models.write_json(out / "expected.json", {"ids": ids.tolist(), "cut": CUT, "further": further, "top": [
        [[i.item(), round(v.item(), 6)] for i, v in zip(b, row)] for b, row in zip(best, values)]})
    right = [(predictor(torch.tensor(s["prompt"] + s["ids"][:-1])).argmax(-1)[len(s["prompt"]) - 1:]
              == torch.tensor(s["ids"][1:])).double().mean().item() for s in expected]
    print(name, "spread", round(scores.std(-1).mean().item(), 2), "different", len(set(best[:, 0].tolist())),
          "smallest gap", round((values[:, 0] - values[:, 1]).min().item(), 4), "right", [round(r, 2) for r in right])


if __name__ == "__main__":
    torch.set_num_threads(1)
    for wanted, args in MODELS.items():
        make(wanted, *args)
