/* SPDX-License-Identifier: Apache-2.0
 *
 * In: first bytes, a first line, an ending. Out: the kind of data.
 */
#include "prompt/sniff.h"

#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/log.h"

static const char unpack_it[] = "unpack it first";

/* Compressed formats that are supported are not in this table. */
static const struct {
    const char *bytes;
    size_t at, len;
    const char *what, *advice;
} magics[] = {
    {"\xFD"
     "7zXZ\0",
     0, 6, "packed by xz", unpack_it},
    {"1AY&SY", 4, 6, "packed by bzip2", unpack_it},
    {"PK\3\4", 0, 4, "a zip file", unpack_it},
    {"7z\xBC\xAF\x27\x1C", 0, 6, "a 7z file", unpack_it},
    {"\x89HDF\r\n\x1A\n", 0, 8, "HDF5", "--input-format h5 reads it"},
    {"\x04\x22\x4D\x18", 0, 4, "packed by lz4", unpack_it},
    {"ustar", 257, 5, "a tar file", unpack_it},
    {"PAR1\x15", 0, 5, "Parquet",
     "python3 -c \"import pandas; pandas.read_parquet('FILE').to_json('FILE.jsonl', orient='records', "
     "lines=True)\" makes JSON Lines of it"},
    {"ARROW1\0\0", 0, 8, "an Arrow file", "expected JSON Lines"},
    {"\x93NUMPY", 0, 6, "a NumPy file", "expected JSON Lines"},
    {"SQLite format 3\0", 0, 16, "an SQLite database", "expected JSON Lines"},
    {"\xFF\xFE\0\0", 0, 4, "UTF-32", "expected UTF-8: convert it with iconv -f UTF-32 -t UTF-8"},
    {"\0\0\xFE\xFF", 0, 4, "UTF-32", "expected UTF-8: convert it with iconv -f UTF-32 -t UTF-8"},
    {"\xFF\xFE", 0, 2, "UTF-16", "expected UTF-8: convert it with iconv -f UTF-16 -t UTF-8"},
    {"\xFE\xFF", 0, 2, "UTF-16", "expected UTF-8: convert it with iconv -f UTF-16 -t UTF-8"},
};

/* Zero bytes among the first four of a text that begins with two ASCII characters, by encoding. */
static const struct {
    const char *zeros, *name;
} wide[] = {{"0101", "UTF-16LE"}, {"1010", "UTF-16BE"}, {"0111", "UTF-32LE"}, {"1110", "UTF-32BE"}};

static const char *encoding_of(const char *head, size_t n)
{
    for (size_t i = 0; n >= 4 && i < sizeof wide / sizeof *wide; i++) {
        int byte = 0;
        while (byte < 4 && (head[byte] == 0) == (wide[i].zeros[byte] == '1'))
            byte++;
        if (byte == 4)
            return wide[i].name;
    }
    return NULL;
}

/* Lines as on old Macs. A single \r may be part of a text. */
static bool ends_in_cr(const char *head, size_t n)
{
    const char *first = memchr(head, '\r', n);
    return first && memchr(first + 1, '\r', n - (size_t)(first + 1 - head)) && !memchr(head, '\n', n);
}

cake_err cake_sniff_text(const char *name, const char *head, size_t n)
{
    if (cake_file_check_pointer("prompt", name, head, n))
        return CAKE_ERR_FATAL;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (n >= magics[i].at + magics[i].len && !memcmp(head + magics[i].at, magics[i].bytes, magics[i].len))
            return cake_fail("prompt", "%s: is %s; %s", name, magics[i].what, magics[i].advice);
    if (ends_in_cr(head, n))
        return cake_fail(
            "prompt", "%s: its lines end in \\r alone; expected \\n: convert it with tr '\\r' '\\n'", name);
    const char *encoding = encoding_of(head, n);
    return !encoding ? CAKE_OK
                     : cake_fail("prompt", "%s: is %s; expected UTF-8: convert it with iconv -f %s -t UTF-8",
                                 name, encoding, encoding);
}

/* strchr, but not for the NUL at the end of the set. */
static bool is_among(const char *set, char c)
{
    return c && strchr(set, c);
}

cake_err cake_sniff_line(const char *name, const char *line, size_t len, bool whole)
{
    while (len && is_among(" \t\r", line[len - 1]))
        len--;
    while (len && is_among(" \t", *line))
        line++, len--;
    if (!len || (*line != '[' && *line != '{'))
        return CAKE_OK;
    char last = line[len - 1];
    size_t second = 1;
    while (second < len && is_among(" \t", line[second]))
        second++;
    bool objects = second < len && line[second] == '{' && last != ']';
    if (*line == '[' && (objects || is_among("[{,:", last) || (whole && last == ']')))
        return cake_fail("prompt",
                         "%s: is a JSON array; expected JSON Lines, an object on each line: "
                         "convert it with jq -c '.[]'",
                         name);
    if (!whole && is_among("[{,:", last)) /* else the line was cut off */
        return cake_fail("prompt",
                         "%s: its first line ends in \"%c\": an object spans several lines, or commas stand "
                         "between them; expected JSON Lines, an object on each line: jq -c . makes them of "
                         "objects",
                         name, last);
    return CAKE_OK;
}

void cake_sniff_prompt(const char *name, const char *line, size_t len)
{
    static const char *const keys[] = {"\"prompt\":", "\"messages\":", "\"custom_id\":"};
    bool known = false;
    for (size_t i = 0; len && *line == '{' && i < sizeof keys / sizeof *keys; i++)
        known |= memmem(line, len, keys[i], strlen(keys[i])) != NULL;
    if (known)
        cake_log(CAKE_WARN, "prompt",
                 "%s: looks like JSON Lines, but is read as text: each line is a prompt; "
                 "--input-format jsonl reads its fields",
                 name);
}

const char *cake_sniff_ending(const char *ending)
{
    static const char *const readers[][2] = {
        {".csv", "read_csv('FILE')"},         {".tsv", "read_csv('FILE', sep='\\t')"},
        {".parquet", "read_parquet('FILE')"}, {".feather", "read_feather('FILE')"},
        {".arrow", "read_feather('FILE')"},   {".xlsx", "read_excel('FILE')"}};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strcasecmp(ending, readers[i][0]))
            return readers[i][1];
    return NULL;
}
