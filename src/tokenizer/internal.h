/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a tokenizer, in the order in which text passes them:
 *
 *   added tokens -> normalizers -> pre-tokenizers -> model -> post-processor -> ids -> decoders -> text
 *
 * Normalizers, pre-tokenizers, post-processors and decoders are flat lists: a Sequence in the file is
 * replaced by its members. Each list's file has a table of its kinds; a new kind is a row there. All parts
 * are read-only once opened; the state of an encoding lives in a cake_encode_ws.
 */
#ifndef CAKE_TOKENIZER_INTERNAL_H
#define CAKE_TOKENIZER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json_path.h"
#include "tokenizer/cache.h"
#include "tokenizer/fast_patterns.h"
#include "tokenizer/specials.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocab.h"
#include "tokenizer/vocab_reader.h"

/* The workspace of one encoding. Zeroed is fine. */
typedef struct cake_encode_ws {
    cake_buf normal, spare; /* for the normalizers */
    bool moved;             /* the normalizers removed the beginning of the text */
    size_t made;            /* bytes written by the pre-tokenizers */
    void *match;            /* for the patterns */
    cake_buf
        *step; /* [n_step] pre_tokenizer.c: two a step, its text with a prefix and a piece in its spelling */
    size_t n_step;
    int32_t *symbols; /* bpe.c: [n_symbols] */
    size_t n_symbols;
    uint64_t *heap; /* bpe.c: [heap_room] */
    size_t n_heap, heap_room;
    cake_buf character;             /* bpe.c; wordpiece.c: the rest of a word, with the prefix */
    cake_buf spelled;               /* tokenizer_model.c: a piece in the byte-level alphabet */
    struct cake_unigram_path *path; /* unigram.c: [n_path] */
    size_t n_path;
} cake_encode_ws;

/* The last character of text (UTF-8, not empty), and where it begins (byte_level.c). */
uint32_t cake_text_last(const char *text, size_t len, size_t *at);

/* Maximum size of a text after a step of any list: a Replace may multiply it by thousands, and so may the
 * next one. More is a fault of `what` (replace.c). */
#define CAKE_MAX_GROWN ((size_t)256 << 20)
cake_err cake_text_grown(size_t len, const char *what, cake_fault *fault);

/* Maximum length of a list that is processed recursively. */
#define CAKE_MAX_STEPS 1000

/* --- Replace, which is a normalizer and a decoder (replace.c) --- */

typedef struct cake_replace {
    char *from, *to; /* owned; from NULL: use the pattern */
    size_t from_len, to_len;
    struct cake_pattern *pattern; /* owned */
} cake_replace;

cake_err cake_replace_open(const cake_json_path *path, cake_replace *out);
void cake_replace_close(cake_replace *replace);
/* Appends text with every match replaced to *out. *first, unless NULL: bytes of a match at the beginning, or
 * 0. */
cake_err cake_replace_run(const cake_replace *replace, const char *text, size_t len, cake_buf *out,
                          size_t *first, void **match, cake_fault *fault);

/* Appends text with every `from` (not empty) replaced by `to`. */
void cake_text_replace(const char *text, size_t len, const char *from, size_t from_len, const char *to,
                       size_t to_len, cake_buf *out);

/* --- Precompiled: SentencePiece's normal forms (charsmap.c) --- */

typedef struct cake_charsmap cake_charsmap;

cake_err cake_charsmap_open(const cake_json_path *path, cake_charsmap **out); /* from the base64 string */
void cake_charsmap_close(cake_charsmap *map);
void cake_charsmap_run(const cake_charsmap *map, const char *text, size_t len, cake_buf *out);

void cake_encode_ws_free(cake_encode_ws *scratch); /* frees and zeroes (workspace.c) */

/* --- normalizers: text to text (normalize.c) --- */

typedef struct cake_normalizer {
    const struct cake_normalizer_kind *kind;
    cake_replace replace;    /* Replace; Prepend: `to` */
    cake_charsmap *charsmap; /* Precompiled: owned */
    bool left, right;        /* Strip */
} cake_normalizer;

typedef struct cake_normalizers {
    cake_normalizer *step;
    size_t n;
} cake_normalizers;

cake_err cake_normalizers_open(const cake_json_path *path, cake_normalizers *out); /* null: none */
/* The maximum factor by which they shorten a text; 0: unbounded. */
size_t cake_normalizers_shrink(const cake_normalizers *normalizers);
bool cake_normalizers_spell(const cake_normalizers *normalizers); /* they produce the byte-level alphabet */
void cake_normalizers_close(cake_normalizers *normalizers);
/* Changes scratch->normal in place; scratch->moved: its beginning was removed. Fails if a pattern does. */
cake_err cake_normalizers_run(const cake_normalizers *normalizers, cake_encode_ws *scratch,
                              cake_fault *fault);
/* --- pre-tokenizers: text to pieces (pre_tokenizer.c) --- */

typedef enum cake_meta { CAKE_META_ALWAYS, CAKE_META_FIRST, CAKE_META_NEVER } cake_meta;

typedef struct cake_pre_tokenizer {
    const struct cake_pre_tokenizer_kind *kind;
    struct cake_pattern *pattern; /* owned; NULL: none */
    cake_fast_pattern known;      /* the same pattern, matched by hand */
    int behaviour;
    bool invert;        /* the parts between matches count as matches */
    bool prefix_space;  /* ByteLevel: every piece begins with a space */
    bool bytes;         /* ByteLevel: pieces are written in the byte-level alphabet */
    uint8_t *script;    /* UnicodeScripts: owned */
    uint32_t character; /* Metaspace, CharDelimiterSplit */
    bool meta;          /* Metaspace: spaces become `character` */
    cake_meta scheme;   /* Metaspace: where one goes before the text */
    int64_t length;     /* FixedLength: characters */
} cake_pre_tokenizer;

typedef struct cake_pre_tokenizers {
    cake_pre_tokenizer *step;
    size_t n;
    bool raw; /* the last step's byte-level spelling is left to the receiver of the pieces */
} cake_pre_tokenizers;

cake_err cake_pre_tokenizers_open(const cake_json_path *path, cake_pre_tokenizers *out); /* null: none */
bool cake_pre_tokenizers_spell(
    const cake_pre_tokenizers *splitters); /* the model needs the byte-level alphabet */
bool cake_pre_tokenizers_drop(const cake_pre_tokenizers *splitters); /* parts of the text are removed */
void cake_pre_tokenizers_close(cake_pre_tokenizers *splitters);

/* The receiver of the pieces of a text. */
typedef struct cake_split_sink {
    void *self;
    cake_err (*add)(void *self, const char *piece, size_t len);
} cake_split_sink;

/* Passes the pieces of text (UTF-8, not empty) to the sink, in order; none is empty. With splitters->raw they
 * are not spelled yet. first: the text is the start of the input. Fails if a pattern or the sink does. */
cake_err cake_pre_tokenizers_run(const cake_pre_tokenizers *splitters, const char *text, size_t len,
                                 bool first, cake_encode_ws *scratch, const cake_split_sink *sink,
                                 cake_fault *fault);
/* The script of each of CAKE_CODES characters as a number, 0: that of the previous character; owned
 * (scripts.c). */
#define CAKE_CODES 0x110000
cake_err cake_scripts_open(const cake_json_path *path, uint8_t **out);
/* The length of the run of one script at text (not empty); 0: it begins without one. */
size_t cake_scripts_match(const uint8_t *script, const char *text, size_t len);
/* The byte-level alphabet writes every byte as one printable character. */
void cake_byte_level_spell(const char *bytes, size_t len, cake_buf *out);
/* The bytes that text stands for, or -1 if it has a character outside of the alphabet (out is unchanged). */
int cake_byte_level_read(const char *text, size_t len, cake_buf *out);

/* --- models: a piece to ids (bpe.c, unigram.c, wordpiece.c) --- */

typedef struct cake_tokenizer_model {
    const struct cake_tokenizer_model_kind *kind;
    cake_vocab vocab;
    void *own; /* of the kind */
    cake_cache *cache;
    cake_vocab_reader *lists; /* borrowed during open; NULL: none */
} cake_tokenizer_model;

/* lists: a BPE model's vocab and merges, or a Unigram model's scores, read already and taken over; NULL: they
 * are at path. */
cake_err cake_tokenizer_model_open(const cake_json_path *path, cake_vocab_reader *lists,
                                   cake_tokenizer_model *out);
void cake_tokenizer_model_close(cake_tokenizer_model *words);
bool cake_tokenizer_model_bpe(const cake_tokenizer_model *words); /* whether the model is BPE */
/* Appends a piece's ids. raw: its bytes are not spelled yet. Fails if a character has no token and there is
 * none for unknown ones. */
cake_err cake_tokenizer_model_run(const cake_tokenizer_model *words, const char *piece, size_t len, bool raw,
                                  cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault);
/* Whether characters can be lost: unknown ones without a token, or runs of them that share one. */
bool cake_tokenizer_model_drop(const cake_tokenizer_model *words, bool spelled);
int cake_byte_token(const char *text, size_t len); /* the byte of "<0x0A>"; -1: another token */

/* Opens a model: reads path into words->own; words->vocab is set already. */
cake_err cake_bpe_open(const cake_json_path *path, cake_tokenizer_model *words);
void cake_bpe_close(cake_tokenizer_model *words);
bool cake_bpe_drop(const cake_tokenizer_model *words, bool spelled);
cake_err cake_bpe_run(const cake_tokenizer_model *words, const char *piece, size_t len,
                      cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault);
/* The end of the part of a piece from `from` on that can be encoded separately. */
size_t cake_bpe_cut(const cake_tokenizer_model *words, const char *piece, size_t len, size_t from);
cake_err cake_unigram_vocab(const cake_json_path *path,
                            cake_tokenizer_model *words); /* [["token", score], ...] */
cake_err cake_unigram_open(const cake_json_path *path, cake_tokenizer_model *words);
void cake_unigram_close(cake_tokenizer_model *words);
bool cake_unigram_drop(const cake_tokenizer_model *words, bool spelled);
cake_err cake_unigram_run(const cake_tokenizer_model *words, const char *piece, size_t len,
                          cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault);
cake_err cake_wordpiece_open(const cake_json_path *path, cake_tokenizer_model *words);
void cake_wordpiece_close(cake_tokenizer_model *words);
bool cake_wordpiece_drop(const cake_tokenizer_model *words, bool spelled);
cake_err cake_wordpiece_run(const cake_tokenizer_model *words, const char *piece, size_t len,
                            cake_encode_ws *scratch, cake_ids *ids, cake_fault *fault);

/* --- added tokens: found in the text before the other steps (added.c) --- */

typedef struct cake_added_token {
    char *text, *shown; /* owned; shown: its decoded form */
    size_t len, shown_len;
    int32_t id;
    int32_t file_id; /* the id in the file; -1: none */
    cake_token_flags is;
    bool skipped; /* it was special once: decoding skips its text */
    bool normal;  /* it was normalized once: it decodes as normalized */
} cake_added_token;

typedef struct cake_added {
    cake_added_token *token; /* [n], with different texts */
    size_t n, cap;
    cake_vocab texts;     /* text to index into token */
    int32_t top, next;    /* the highest id; the next new one */
    bool split;           /* skipped tokens are not recognized */
    cake_trie raw;        /* matched in the original text */
    cake_trie normalized; /* matched in the normalized text */
} cake_added;

typedef struct cake_added_match {
    const cake_added_token *token; /* NULL: plain text up to the end */
    size_t start, end;             /* of the token, including the white space that it takes */
} cake_added_match;

/* Adds the tokens of a tokenizer.json, then those of other files; finish applies the normalizers to them. */
cake_err cake_added_read(const cake_json_path *path, const cake_vocab *vocab, cake_added *out);
cake_err cake_added_specials(cake_added *added, const cake_vocab *vocab, const cake_specials *specials,
                             const char *where);
cake_err cake_added_finish(cake_added *added, const cake_json_path *path,
                           const cake_normalizers *normalizers);
void cake_added_close(cake_added *added);
const cake_added_token *cake_added_find(const cake_added *added, const char *text, size_t len);
/* The first token of the trie at or after *at, which advances; plain text reaches from `from` to
 * match.start. */
cake_added_match cake_added_next(const cake_added *added, const cake_trie *trie, const char *text, size_t len,
                                 size_t from, size_t *at);

/* --- post-processor: ids around those of a text (post_processor.c) --- */

typedef struct cake_post_processor {
    cake_ids before, after;
    /* Of a pair of texts: the ids before, between and behind them. The second text has token type 1, and so
     * have the ids between them from number `second` on; negative: all types are 0. */
    cake_ids pair[3];
    int second;
    bool no_pair; /* what the file says of pairs is not supported */
} cake_post_processor;

cake_err cake_post_processor_open(const cake_json_path *path, cake_post_processor *out); /* null: nothing */
void cake_post_processor_close(cake_post_processor *post);

/* --- decoders: tokens to text (decode.c) --- */

typedef struct cake_decode_stage {
    const struct cake_stage_kind *kind;
    cake_replace replace; /* Strip, Metaspace, BPEDecoder, WordPiece: `from` is their text */
    int64_t start, stop;  /* Strip */
    bool keeps;           /* Metaspace: the first token keeps its space, too */
    bool cleans;          /* WordPiece: English contractions and punctuation join the word before them */
    bool fused;           /* an earlier stage joined the tokens into one string */
} cake_decode_stage;

typedef struct cake_decode_stages {
    cake_decode_stage *step;
    size_t n;
} cake_decode_stages;

cake_err cake_stages_open(const cake_json_path *path,
                          cake_decode_stages *out); /* null: tokens joined by spaces */
void cake_stages_close(cake_decode_stages *stages);
/* WordPiece (wordpiece.c). spell: out, which is empty, becomes a token's text; inside: not the first one. */
cake_err cake_wordpiece_stage_open(const cake_json_path *path, cake_decode_stage *out);
void cake_wordpiece_spell(const cake_decode_stage *stage, bool inside, const char *text, size_t len,
                          cake_buf *out, cake_buf *spare);
/* The bytes of one token, without effects of its neighbours. */
void cake_stages_bytes(const cake_decode_stages *stages, const char *text, size_t len, cake_buf *out);

/* --- the tokenizer (tokenizer.c) --- */

typedef struct cake_token_info {
    const char *text; /* NULL: no token has this id */
    size_t len;
    bool added, special;
} cake_token_info;

struct cake_tokenizer {
    char *where; /* file name, for messages */
    cake_normalizers normalizers;
    cake_pre_tokenizers splitters;
    cake_tokenizer_model words;
    cake_added added;
    cake_post_processor post;
    cake_decode_stages stages;
    cake_token_info *known; /* [count], by id */
    int32_t bos, eos;       /* the bos_token and eos_token in a file; -1: none */
    int32_t count;
    size_t longest; /* maximum bytes of text for one token */
};

#endif
