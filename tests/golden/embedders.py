#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes the models of tests/golden/embed and tests/golden/rank: tiny ones with random weights as sentence-transformers saves them, texts.txt, and in
# expected.txt the embedding of each text, a line each: by transformers in float64 on tokens of the tokenizers library, pooled in
# float64. Those of tests/golden/rank score the documents of a query. Needs torch, transformers, tokenizers, numpy and safetensors.
import json
import os
import shutil

import numpy
import tokenizers
import torch
import transformers as hf
from safetensors.torch import save_file
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

GOLDEN = os.path.dirname(os.path.abspath(__file__))
HERE, RANK = os.path.join(GOLDEN, "embed"), os.path.join(GOLDEN, "rank")
WORDS = "the ship sailed past a quiet harbour and the old keeper of the light waved from his window while rain fell on the roofs"
OTHERS = "nobody had seen such waves before, so the children counted them: one, two, three, many. Häfen, ñandú, 東京!"
TEXTS = [WORDS, OTHERS, "a", "rain rain", " ".join([WORDS] * 3), "Rain, rain, ship.", " ".join([OTHERS, WORDS]), "keeper of waves"]


def word_piece(end):
    t = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    t.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False))
    single = "$A [SEP]" if end else "[CLS] $A [SEP]"
    pair = "$A [SEP] $B [SEP]" if end else "[CLS] $A [SEP] $B:1 [SEP]:1"
    t.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def unigram():
    t = tokenizers.Tokenizer(models.Unigram())
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    t.train_from_iterator(
        TEXTS, trainers.UnigramTrainer(vocab_size=110, special_tokens=special, unk_token="<unk>", show_progress=False))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return t


def randomise(model):
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p.copy_(float("norm" in name.lower() and "weight" in name) + 0.2 * torch.randn(p.shape, generator=g))
            else:
                p.copy_(torch.randn(p.shape, generator=g) * 1.5 / p.shape[-1]**0.5)
    return model.eval()


def pool(hidden, mode):
    n = len(hidden)
    weights = numpy.arange(1, n + 1)[:, None]
    return {"cls": lambda: hidden[0], "lasttoken": lambda: hidden[-1], "mean": lambda: hidden.mean(0),
            "max": lambda: hidden.max(0), "mean_sqrt_len_tokens": lambda: hidden.sum(0) / n**0.5,
            "weightedmean": lambda: (hidden * weights).sum(0) / weights.sum()}[mode]()


def write(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(json.dumps(value, indent=1) + "\n")


def save(name, model, tokenizer, mode, dense=(), normalize=True, old=True, longest=None, before=""):
    d = os.path.join(HERE, name)
    shutil.rmtree(d, ignore_errors=True)
    model.save_pretrained(d)
    tokenizer.save(d + "/tokenizer.json")
    dim, kinds, weights = model.config.hidden_size, "sentence_transformers.models.", []
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    switch = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "weightedmean": "weightedmean_tokens"}
    modes = {**{m: m for m in ("lasttoken", "mean_sqrt_len_tokens")}, **switch}
    write(d + "/1_Pooling/config.json",
          {"word_embedding_dimension": dim, **{"pooling_mode_" + v: k == mode for k, v in modes.items()}} if old else
          {"embedding_dimension": dim, "pooling_mode": mode})
    for i, (n, bias, act) in enumerate(dense):
        g, path = torch.Generator().manual_seed(i), "%d_Dense" % (i + 2)
        tensors = {"linear.weight": torch.randn(n, dim, generator=g) / dim**0.5}
        if bias:
            tensors["linear.bias"] = torch.randn(n, generator=g) / 8
        write(d + "/" + path + "/config.json", {"in_features": dim, "out_features": n, "bias": bias, "activation_function": act})
        save_file(tensors, d + "/" + path + "/model.safetensors")
        weights.append((tensors, act))
        modules.append((path, "Dense"))
        dim = n
    if normalize:
        modules.append(("%d_Normalize" % len(modules), "Normalize"))
    write(d + "/modules.json",
          [{"idx": i, "name": str(i), "path": p, "type": kinds + t} for i, (p, t) in enumerate(modules)])
    write(d + "/sentence_bert_config.json", {"max_seq_length": longest, "do_lower_case": False})
    write(d + "/config_sentence_transformers.json",
          {"prompts": {"query": "ship: ", "document": before}, "default_prompt_name": "document" if before else None})
    rows = []
    for text in TEXTS:
        ids = tokenizer.encode(before + text).ids
        with torch.no_grad():
            hidden = model.double()(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        x = pool(hidden, mode)
        for tensors, act in weights:
            x = tensors["linear.weight"].double().numpy() @ x
            x += tensors["linear.bias"].double().numpy() if "linear.bias" in tensors else 0
            x = numpy.tanh(x) if act.endswith("Tanh") else x
        rows.append(x / numpy.linalg.norm(x) if normalize else x)
    with open(d + "/expected.txt", "w") as f:
        f.writelines(" ".join("%.7g" % v for v in row) + "\n" for row in rows)


QUERIES = ["rain", "the old keeper of the light", "Who counted the waves?"]
TEMPLATE = """{%- set rule = messages | selectattr("role", "eq", "system") | map(attribute="content") | first -%}
Say yes or no: {{ rule | default("is it about") }} {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}
{{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }}
{%- if add_generation_prompt %} light {%- endif %}"""


def rendered(query, document):
    return "Say yes or no: is it about %s\n%s" % (query, document)


def save_ranker(name, model, tokenizer, config=None, words=None):
    d = os.path.join(RANK, name)
    shutil.rmtree(d, ignore_errors=True)
    model.save_pretrained(d)
    tokenizer.save(d + "/tokenizer.json")
    if config:
        with open(d + "/config.json") as f:
            write(d + "/config.json", {**json.load(f), **config})
    if words:
        write(d + "/1_LogitScore/config.json", {"true_token_id": words[0], "false_token_id": words[1]})
        write(d + "/modules.json", [{"idx": i, "name": str(i), "path": p, "type": "sentence_transformers.base.modules." + t}
                                    for i, (p, t) in enumerate([("", "Transformer"), ("1_LogitScore", "LogitScore")])])
        with open(d + "/chat_template.jinja", "w") as f:
            f.write(TEMPLATE)
    rows = []
    for query in QUERIES:
        for text in TEXTS:
            e = tokenizer.encode(rendered(query, text), add_special_tokens=False) if words else tokenizer.encode(query, text)
            types = {"token_type_ids": torch.tensor([e.type_ids])} if getattr(model.config, "type_vocab_size", 0) > 1 else {}
            with torch.no_grad():
                x = model.double()(input_ids=torch.tensor([e.ids]), **types).logits[0]
            x = x[-1, words[0]] - x[-1, words[1]] if words else x[0]
            rows.append(float(x if config and "sentence_transformers" in config else torch.sigmoid(x)))
    with open(d + "/expected.txt", "w") as f:
        f.writelines("%.7g\n" % x for x in rows)


def rankers(pieces, ended, one):
    n, m = pieces.get_vocab_size(), one.get_vocab_size()
    bert = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24, num_labels=1)
    limits = dict(bos_token_id=None, eos_token_id=None, cls_token_id=2, sep_token_id=3, pad_token_id=0)
    small = dict(vocab_size=n, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                 intermediate_size=24, max_position_embeddings=256, tie_word_embeddings=True, bos_token_id=None, eos_token_id=3)
    save_ranker("bert", randomise(hf.BertForSequenceClassification(hf.BertConfig(
        vocab_size=n, max_position_embeddings=256, **bert))), pieces)
    save_ranker("xlmr", randomise(hf.XLMRobertaForSequenceClassification(hf.XLMRobertaConfig(
        vocab_size=m, max_position_embeddings=260, type_vocab_size=1, pad_token_id=1, **bert))), one,
                {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}})
    for pooling in ("cls", "mean"):
        save_ranker("modernbert-" + pooling, randomise(hf.ModernBertForSequenceClassification(hf.ModernBertConfig(
            vocab_size=n, max_position_embeddings=256, local_attention=16, classifier_pooling=pooling, **limits, **bert))), pieces)
    save_ranker("qwen3", randomise(hf.Qwen3ForSequenceClassification(hf.Qwen3Config(num_labels=1, pad_token_id=0, **small))), ended)
    save_ranker("qwen3-logits", randomise(hf.Qwen3ForCausalLM(hf.Qwen3Config(**{**small, "tie_word_embeddings": False}))), pieces, words=(40, 57))
    with open(RANK + "/pairs.jsonl", "w") as f:
        f.writelines(json.dumps({"id": i, "query": q, "documents": TEXTS}) + "\n" for i, q in enumerate(QUERIES))


def main():
    pieces, ended, one = word_piece(False), word_piece(True), unigram()
    n, m = pieces.get_vocab_size(), one.get_vocab_size()
    bert = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24, initializer_range=0.1)
    identity, tanh = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"
    save("bert", randomise(hf.BertModel(hf.BertConfig(vocab_size=n, max_position_embeddings=160, **bert))), pieces, "cls")
    save("xlmr", randomise(hf.XLMRobertaModel(hf.XLMRobertaConfig(
        vocab_size=m, max_position_embeddings=260, type_vocab_size=1, pad_token_id=1, **bert))), one, "mean",
         dense=[(12, True, tanh), (20, False, identity)], longest=256)
    save("modernbert", randomise(hf.ModernBertModel(hf.ModernBertConfig(
        vocab_size=n, hidden_size=16, num_hidden_layers=5, num_attention_heads=4, intermediate_size=20,
        max_position_embeddings=256, local_attention=16, pad_token_id=0, bos_token_id=None, eos_token_id=None,
        cls_token_id=2, sep_token_id=3))), pieces, "mean", old=False)
    save("modernbert-biased", randomise(hf.ModernBertModel(hf.ModernBertConfig(
        vocab_size=n, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, norm_bias=True,
        attention_bias=True, mlp_bias=True, max_position_embeddings=256, local_attention=10, pad_token_id=0,
        bos_token_id=None, eos_token_id=None, cls_token_id=2, sep_token_id=3))), pieces, "max", normalize=False)
    save("gemma", randomise(hf.Gemma3TextModel(hf.Gemma3TextConfig(
        vocab_size=n, hidden_size=16, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        intermediate_size=24, max_position_embeddings=256, sliding_window=20, use_bidirectional_attention=True,
        layer_types=["sliding_attention", "full_attention"] * 2 + ["sliding_attention"], query_pre_attn_scalar=8,
        bos_token_id=2, eos_token_id=3))), pieces, "mean", dense=[(24, False, identity), (16, False, identity)], before="light: ")
    small = dict(vocab_size=n, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                 intermediate_size=24, max_position_embeddings=256, tie_word_embeddings=True, bos_token_id=None, eos_token_id=3)
    for mode in ("lasttoken", "weightedmean", "mean_sqrt_len_tokens"):
        save("qwen3-" + mode, randomise(hf.Qwen3Model(hf.Qwen3Config(**small))), ended, mode, old=mode != "lasttoken",
             normalize=mode != "mean_sqrt_len_tokens")
    with open(HERE + "/texts.txt", "w") as f:
        f.writelines(t + "\n" for t in TEXTS)
    rankers(pieces, ended, one)


main()
