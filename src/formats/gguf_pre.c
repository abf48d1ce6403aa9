/* SPDX-License-Identifier: Apache-2.0
 *
 * In: tokenizer.ggml.pre. Out: how its byte-level BPE cuts texts into words, as a tokenizer.json says it.
 * A new name is a row of the table; the patterns are those of the original models' files.
 */
#include "formats/gguf_pre.h"

#include <string.h>

#include "formats/json.h"

#define SHORTS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORDS(digits)                                                                                        \
    SHORTS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                                                          \
           "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define MARKED_WORDS                                                                                         \
    SHORTS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"                                                   \
           "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED(ending, digits)                                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" ending "|"   \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" ending       \
    "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SEED                                                                                                 \
    SHORTS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}"                                                        \
           "| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define DEEPSEEK                                                                                             \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"      \
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* From U+4E00 to U+9FA5, from U+3040 to U+309F, from U+30A0 to U+30FF. */
#define CHINESE "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+"
/* Letters that have two cases, as DeepSeek LLM lists them. */
#define CASES                                                                                                \
    "\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"                \
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}"                    \
    "\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}"          \
    "\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}"          \
    "\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}"        \
    "\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}"         \
    "\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}"         \
    "\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"        \
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"          \
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"                   \
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"                   \
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"         \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}"        \
    "\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}"                       \
    "\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}"                   \
    "\\x{1E900}-\\x{1E943}"
#define EAST  "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define SIGNS "[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+"
#define KIMI                                                                                                 \
    "\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*"                     \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+" SHORTS "?|[^\\r\\n\\p{L}\\p{N}]?"                          \
    "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*" SHORTS   \
    "?"                                                                                                      \
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static const cake_gguf_pre cuts[] = {
    {" llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 ",
     false,
     true,
     true,
     {WORDS("\\p{N}{1,3}")}},
    {" dbrx smaug-bpe chatglm-bpe ", false, false, false, {WORDS("\\p{N}{1,3}")}},
    {" glm4 glm5 ", false, true, false, {WORDS("\\p{N}{1,3}")}},
    {" qwen2 deepseek-r1-qwen megrez ", true, false, false, {WORDS("\\p{N}")}},
    {" hunyuan stablelm2 grok-2 kormo ", false, false, false, {WORDS("\\p{N}")}},
    {" qwen35 ", true, false, false, {MARKED_WORDS}},
    {" gpt-4o llama4 minimax-m2 kanana2 ", false, false, false, {CASED(SHORTS "?", "\\p{N}{1,3}")}},
    {" tekken ", false, true, true, {CASED("", "\\p{N}")}},
    {" deepseek-v3 hunyuan-dense joyai-llm ", false, false, false, {"\\p{N}{1,3}", CHINESE, DEEPSEEK}},
    {" deepseek-llm ",
     false,
     false,
     false,
     {"[\\r\\n]", "\\s?[A-Za-z" CASES "]+", "\\s?" SIGNS, "\\s+$", EAST, "\\p{N}+"}},
    {" deepseek-coder ", false, false, false, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", EAST, "\\p{N}"}},
    {" kimi-k2 ", false, true, false, {KIMI}},
    {" minicpm5 ", false, true, false, {"\\p{N}{1,3}", WORDS("\\p{N}+")}},
    {" seed-coder ", false, false, false, {SEED}},
    {" smollm starcoder refact command-r codeshell exaone minerva-7b ",
     false,
     false,
     false,
     {"\\p{N}", GPT2}},
    {" gpt-2 phi-2 gigachat mellum modern-bert exaone4 a.x-4.0 olmo jais mpt trillion granite-docling ",
     false,
     false,
     false,
     {GPT2}},
};

enum { N_CUT = sizeof cuts / sizeof *cuts };

cake_err cake_gguf_pre_find(const cake_gguf *g, const char *topic, const cake_gguf_pre **out)
{
    cake_gguf_text pre;
    cake_buf word = {0};
    if (cake_gguf_text_of(g, "tokenizer.ggml.pre", &pre))
        return CAKE_ERR_FATAL;
    cake_buf_addc(&word, ' ');
    cake_buf_add(&word, pre.at, pre.len);
    cake_buf_addc(&word, ' ');
    int i = 0;
    while (i < N_CUT && !strstr(cuts[i].names, word.data))
        i++;
    cake_buf_free(&word);
    *out = i < N_CUT ? &cuts[i] : NULL;
    if (*out && pre.len && !memchr(pre.at, ' ', pre.len))
        return CAKE_OK;
    return cake_fail(
        topic,
        "%s: tokenizer.ggml.pre is \"%.*s\": how its model cuts texts into words is not known; put the "
        "original model's tokenizer.json (and tokenizer_config.json) beside it, in a directory of its "
        "own",
        cake_gguf_path(g), (int)(pre.len < 80 ? pre.len : 80), pre.len ? pre.at : "");
}

void cake_gguf_pre_add(const cake_gguf_pre *cut, cake_buf *out)
{
    cake_buf_addf(out,
                  ", \"normalizer\": %s, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [",
                  cut->nfc ? "{\"type\": \"NFC\"}" : "null");
    for (int i = 0; cut->pattern[i]; i++) {
        cake_buf_adds(out, "{\"type\": \"Split\", \"pattern\": {\"Regex\": ");
        cake_json_add_text(out, cut->pattern[i], strlen(cut->pattern[i]));
        cake_buf_adds(out, "}, \"behavior\": \"Isolated\", \"invert\": false}, ");
    }
    cake_buf_adds(
        out, "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
             "\"use_regex\": false}]}, \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
             "\"trim_offsets\": true, \"use_regex\": true}");
}
