/* SPDX-License-Identifier: Apache-2.0
 *
 * In: tokenizer_config.json and config.json. Out: the class that AutoTokenizer of transformers 5 uses for
 * them.
 *
 * Classes of the supported families have a row; other names matter only if they read a SentencePiece model
 * differently from its own fields.
 */
#include "tokenizer/tokenizer_class.h"

#include <string.h>

const char *const cake_tokenizer_class_named[CAKE_NAMED] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

#define END "<|endoftext|>"

const cake_tokenizer_class cake_tokenizer_class_plain = {
    .name = "TokenizersBackend",
    .types =
        " arctic chatlm ernie4_5 ernie4_5_moe "
        "flex_olmo fuyu glm glm4 glm4_moe glm4_moe_lite gpt_bigcode granite granitemoe granitemoehybrid "
        "granitemoeshared h2ovl_chat hyperclovax hyperclovax_vlm internlm2 internlm3 iquestcoder "
        "jamba kimi_k25 kimi_linear llava llava_next mimo_v2_flash minicpm3 minicpmv minimax_m2 ministral "
        "ministral3 mistral mistral3 mistral_large4 mixtral molmo molmo2 nemotron olmo2 olmo3 olmo_hybrid "
        "opencua persimmon phi3 phi3_v phimoe pixtral smolvlm stablelm step3_vl umt5 vipllava voxtral "};

static const cake_tokenizer_class classes[] = {
    {.name = "LlamaTokenizer",
     .types = " idefics idefics2 ",
     .named = {[CAKE_BOS] = "<s>", [CAKE_EOS] = "</s>", [CAKE_UNK] = "<unk>"},
     .builds = true,
     .spm = CAKE_SPM_LLAMA},
    {.name = "CodeLlamaTokenizer",
     .types = " ",
     .named = {[CAKE_BOS] = "<s>", [CAKE_EOS] = "</s>", [CAKE_UNK] = "<unk>"},
     .builds = true,
     .spm = CAKE_SPM_CODE_LLAMA},
    {.name = "GemmaTokenizer",
     .types = " diffusion_gemma gemma "
              "gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma shieldgemma2 t5gemma ",
     .named = {[CAKE_BOS] = "<bos>",
               [CAKE_EOS] = "<eos>",
               [CAKE_UNK] = "<unk>",
               [CAKE_PAD] = "<pad>",
               [CAKE_MASK] = "<mask>"},
     .builds = true,
     .spm = CAKE_SPM_GEMMA},
    {.name = "Qwen2Tokenizer",
     .types =
         " internvl lighton_ocr ovis2 qwen2 qwen2_5_omni qwen2_5_vl "
         "qwen2_audio qwen2_moe qwen2_vl qwen3 qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe ",
     .named = {[CAKE_EOS] = END, [CAKE_UNK] = END, [CAKE_PAD] = END},
     .builds = true,
     .repeats = true,
     .spm = CAKE_SPM_NONE},
    {.name = "Qwen3_5Tokenizer",
     .types = " qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen4_exp ",
     .named = {[CAKE_EOS] = END, [CAKE_UNK] = END, [CAKE_PAD] = END},
     .builds = true,
     .spm = CAKE_SPM_NONE},
    {.name = "GPT2Tokenizer",
     .types = " blip-2 codegen dbrx "
              "emu3 gpt2 gpt_neo gptj hyperclovax_vision_v2 instructblip jais2 opt phi starcoder2 ",
     .named = {[CAKE_BOS] = END, [CAKE_EOS] = END, [CAKE_UNK] = END},
     .builds = true,
     .spm = CAKE_SPM_NONE},
};

/* Classes and model types with their own ways of reading SentencePiece models or their conversions. */
static const char others[] =
    " AlbertTokenizer BarthezTokenizer BertGenerationTokenizer BigBirdTokenizer CamembertTokenizer "
    "CohereTokenizer CpmTokenizer DebertaV2Tokenizer FNetTokenizer GPTNeoXTokenizer GPTSw3Tokenizer "
    "LayoutXLMTokenizer M2M100Tokenizer MBartTokenizer MBart50Tokenizer MLukeTokenizer MarianTokenizer "
    "NllbTokenizer PegasusTokenizer ReformerTokenizer RemBertTokenizer RobertaTokenizer BertTokenizer "
    "SeamlessM4TTokenizer SiglipTokenizer Siglip2Tokenizer Speech2TextTokenizer SpeechT5Tokenizer "
    "T5Tokenizer UdopTokenizer XGLMTokenizer XLMRobertaTokenizer XLNetTokenizer MistralCommonBackend ";
static const char other_types[] = " albert barthez bert bert-generation "
                                  "big_bird camembert cohere cohere2 cpm deberta-v2 falcon_mamba fnet "
                                  "gpt-sw3 gpt_neox layoutxlm m2m_100 mamba mamba2 marian mbart mbart50 "
                                  "mluke mpt mt5 musicgen nllb nllb-moe olmo olmoe pegasus reformer rembert "
                                  "roberta rwkv seamless_m4t seamless_m4t_v2 siglip siglip2 speech_to_text "
                                  "speecht5 switch_transformers t5 udop xglm xlm-roberta xlnet ";
static const cake_tokenizer_class other = {.name = "another", .types = other_types, .spm = CAKE_SPM_NONE};

/* The hub's configurations of these are known to be wrong: the model type overrides the class. */
static const char forced[] =
    " qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp hyperclovax_vision_v2 siglip2 ";

/* Whether text [len] is one of the words in list. */
static bool has_word(const char *list, const char *text, size_t len)
{
    for (const char *at = list; len && (at = strstr(at, " ")) && *++at;)
        if (!strncmp(at, text, len) && at[len] == ' ')
            return true;
    return false;
}

/* The length of a class's name without a final "Fast". */
static size_t plain_length(const char *name)
{
    size_t len = strlen(name);
    return len > 4 && !strcmp(name + len - 4, "Fast") ? len - 4 : len;
}

static bool is_named(const cake_tokenizer_class *c, const char *name)
{
    return strlen(c->name) == plain_length(name) && !strncmp(c->name, name, plain_length(name));
}

static const cake_tokenizer_class *by_name(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (is_named(&classes[i], name))
            return &classes[i];
    return has_word(others, name, plain_length(name)) ? &other : &cake_tokenizer_class_plain;
}

/* NULL: transformers has no class for this model type. */
static const cake_tokenizer_class *by_type(const char *type)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (has_word(classes[i].types, type, strlen(type)))
            return &classes[i];
    if (has_word(cake_tokenizer_class_plain.types, type, strlen(type)))
        return &cake_tokenizer_class_plain;
    return has_word(other.types, type, strlen(type)) ? &other : NULL;
}

static const char *declared(const cake_json *config, const cake_json *model)
{
    const char *name = cake_json_text(cake_json_get(config, "tokenizer_class"), NULL);
    return name ? name : cake_json_text(cake_json_get(model, "tokenizer_class"), NULL);
}

const char *cake_tokenizer_class_says(const cake_json *config, const cake_json *model)
{
    const char *name = declared(config, model);
    return name ? name : cake_json_text(cake_json_get(model, "model_type"), NULL);
}

bool cake_tokenizer_class_asks(const cake_json *config, const cake_json *model)
{
    const char *name = declared(config, model);
    return name && is_named(&classes[0], name);
}

const cake_tokenizer_class *cake_tokenizer_class_find(const cake_json *config, const cake_json *model,
                                                      bool bytes)
{
    const cake_json *map = cake_json_get(config, "auto_map");
    bool remote = cake_json_kind(map) == CAKE_JSON_ARRAY || cake_json_get(map, "AutoTokenizer");
    const char *name = declared(config, model);
    const char *type = cake_json_text(cake_json_get(model, "model_type"), NULL);
    const cake_tokenizer_class *usual = type ? by_type(type) : NULL;
    bool force = type && has_word(forced, type, strlen(type));
    if (!name)
        return usual ? usual : &cake_tokenizer_class_plain;
    if (!remote && bytes && !force && cake_tokenizer_class_asks(config, model))
        return &cake_tokenizer_class_plain;
    if (remote || !usual || is_named(usual, name))
        return by_name(name);
    return usual == &cake_tokenizer_class_plain ? usual : force ? usual : by_name(name);
}
