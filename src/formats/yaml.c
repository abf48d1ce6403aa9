/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the text of a YAML file. Out: its events one by one. The only door to libyaml, for topologies and
 * config files.
 */
#include "formats/yaml.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct cake_yaml {
    yaml_parser_t parser;
    yaml_event_t event; /* the last one read */
    const char *text;   /* [len] */
    size_t len;
    const cake_yaml_form *form;
    cake_yaml_fault *fault;
};

cake_err cake_yaml_wrong(cake_yaml_fault *fault, cake_yaml_position at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(fault->message, sizeof fault->message, fmt, args);
    va_end(args);
    fault->at = at;
    fault->misfit = false;
    return CAKE_ERR_FATAL;
}

cake_err cake_yaml_refuse(cake_yaml *y, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(y->fault->message, sizeof y->fault->message, fmt, args);
    va_end(args);
    y->fault->at = cake_yaml_at(y);
    y->fault->misfit = false;
    return CAKE_ERR_FATAL;
}

cake_yaml_str cake_yaml_show(const char *text, size_t len)
{
    cake_yaml_str shown = {""};
    const size_t most = sizeof shown.s - sizeof "...";
    size_t n = len < most ? len : most;
    for (size_t i = 0; i < n; i++)
        shown.s[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
    while (n < len && n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--; /* not within a character */
    strcpy(shown.s + n, n < len ? "..." : "");
    return shown;
}

static cake_yaml_position spot(yaml_mark_t mark)
{
    enum { MOST = INT_MAX - 1 };
    return (cake_yaml_position){mark.line < MOST ? (int)mark.line + 1 : MOST,
                                mark.column < MOST ? (int)mark.column + 1 : MOST};
}

cake_yaml_position cake_yaml_at(const cake_yaml *y)
{
    return spot(y->event.start_mark);
}

/* The position of a byte, for errors that libyaml reports without a line. */
static cake_yaml_position spot_of_byte(const cake_yaml *y, size_t offset)
{
    cake_yaml_position at = {1, 1};
    for (size_t i = 0; i < offset && i < y->len; i++) {
        if (y->text[i] == '\n')
            at = (cake_yaml_position){at.line + 1, 1};
        else
            at.column += ((unsigned char)y->text[i] & 0xC0) != 0x80;
    }
    return at;
}

/* The byte at a position in the text; 0: after its end. */
static char byte_at(const cake_yaml *y, yaml_mark_t mark)
{
    size_t i = 0, line = 0, column = 0;
    for (; i < y->len && line < mark.line; i++)
        line += y->text[i] == '\n';
    for (; i < y->len && column < mark.column; i++)
        column += i + 1 == y->len || ((unsigned char)y->text[i + 1] & 0xC0) != 0x80;
    return i < y->len ? y->text[i] : 0;
}

static cake_err not_yaml(cake_yaml *y)
{
    const yaml_parser_t *p = &y->parser;
    if (p->error == YAML_MEMORY_ERROR)
        cake_die("out of memory while %s was read", y->form->name);
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->error == YAML_READER_ERROR)
        return cake_yaml_wrong(y->fault, spot_of_byte(y, p->problem_offset), "this is not text: %s", problem);
    if (byte_at(y, p->problem_mark) == '\t')
        return cake_yaml_wrong(y->fault, spot(p->problem_mark), "a tab: YAML is indented by spaces only");
    cake_yaml_position since = spot(p->context_mark);
    if (p->context)
        return cake_yaml_wrong(y->fault, spot(p->problem_mark),
                               "this is not YAML: %s, %s that begins in line %d, column %d", problem,
                               p->context, since.line, since.column);
    return cake_yaml_wrong(y->fault, spot(p->problem_mark), "this is not YAML: %s", problem);
}

static cake_err check_plain(cake_yaml *y, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        return cake_yaml_refuse(y, "anchors and aliases are not supported: write out '&%s' where it is used",
                                cake_yaml_show((const char *)anchor, strlen((const char *)anchor)).s);
    if (tag)
        return cake_yaml_refuse(y, "tags are not supported: remove '%s'",
                                cake_yaml_show((const char *)tag, strlen((const char *)tag)).s);
    return CAKE_OK;
}

cake_err cake_yaml_next(cake_yaml *y)
{
    yaml_event_delete(&y->event);
    if (!yaml_parser_parse(&y->parser, &y->event))
        return not_yaml(y);
    const yaml_char_t *alias;
    switch (y->event.type) {
    case YAML_ALIAS_EVENT:
        alias = y->event.data.alias.anchor;
        return cake_yaml_refuse(y, "anchors and aliases are not supported: write out what '*%s' stands for",
                                cake_yaml_show((const char *)alias, strlen((const char *)alias)).s);
    case YAML_SCALAR_EVENT:
        return check_plain(y, y->event.data.scalar.anchor, y->event.data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        return check_plain(y, y->event.data.sequence_start.anchor, y->event.data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return check_plain(y, y->event.data.mapping_start.anchor, y->event.data.mapping_start.tag);
    default:
        return CAKE_OK;
    }
}

cake_yaml_kind cake_yaml_event(const cake_yaml *y)
{
    switch (y->event.type) {
    case YAML_SCALAR_EVENT:
        return CAKE_YAML_VALUE;
    case YAML_SEQUENCE_START_EVENT:
        return CAKE_YAML_LIST;
    case YAML_SEQUENCE_END_EVENT:
        return CAKE_YAML_LIST_END;
    case YAML_MAPPING_START_EVENT:
        return CAKE_YAML_MAP;
    case YAML_MAPPING_END_EVENT:
        return CAKE_YAML_MAP_END;
    default:
        return CAKE_YAML_OTHER;
    }
}

const char *cake_yaml_found(const cake_yaml *y)
{
    enum { KEY_MAX = 1024 }; /* YAML 1.2.2, 7.4.2: characters of a key before its colon */
    size_t length = y->event.type == YAML_SCALAR_EVENT ? y->event.data.scalar.length : 0;
    switch (y->event.type) {
    case YAML_SEQUENCE_START_EVENT:
        return "a list";
    case YAML_MAPPING_START_EVENT:
        return "a map";
    case YAML_SCALAR_EVENT:
        return length > KEY_MAX ? "a text that is too long for a key" : length ? "a single value" : "nothing";
    default:
        return "the end";
    }
}

const char *cake_yaml_value(const cake_yaml *y)
{
    return (const char *)y->event.data.scalar.value;
}

size_t cake_yaml_length(const cake_yaml *y)
{
    return y->event.data.scalar.length;
}

bool cake_yaml_plain(const cake_yaml *y)
{
    return y->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

cake_err cake_yaml_need_text(cake_yaml *y, const char *what)
{
    return cake_yaml_need(y, what, "a text");
}

cake_err cake_yaml_need(cake_yaml *y, const char *what, const char *expected)
{
    static const char *const none[] = {"", "~", "null", "Null", "NULL"};
    if (y->event.type != YAML_SCALAR_EVENT)
        return cake_yaml_refuse(y, "%s is %s; expected %s", what, cake_yaml_found(y), expected);
    size_t len = cake_yaml_length(y);
    if (strlen(cake_yaml_value(y)) != len)
        return cake_yaml_refuse(y, "%s has a NUL character in it", what);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if ((cake_yaml_plain(y) || !len) && !strcmp(cake_yaml_value(y), none[i]))
            return cake_yaml_refuse(y, "%s is empty; expected %s", what, expected);
    return CAKE_OK;
}

/* An empty file was cut off or never written; it does not mean {}. */
static cake_err refuse_empty(cake_yaml *y)
{
    return cake_yaml_wrong(y->fault, (cake_yaml_position){1, 1}, "this file is empty; %s is %s",
                           y->form->name, y->form->map);
}

/* Reads the one document of the file. */
static cake_err read_document(cake_yaml *y, void *self, cake_yaml_position *end)
{
    bool value = y->event.type == YAML_SCALAR_EVENT;
    if (value && cake_yaml_plain(y) && !cake_yaml_length(y))
        return refuse_empty(y);
    if (y->event.type != YAML_MAPPING_START_EVENT)
        return cake_yaml_refuse(y, "%s is %s; this is %s", y->form->name, y->form->map, cake_yaml_found(y));
    cake_err err = cake_yaml_next(y);
    while (!err && y->event.type != YAML_MAPPING_END_EVENT) {
        err = y->form->read_key(self, y);
        err = err ? err : cake_yaml_next(y);
    }
    if (end)
        *end = cake_yaml_at(y);
    return err;
}

static cake_err read_file(cake_yaml *y, void *self, cake_yaml_position *end)
{
    if (y->len > CAKE_YAML_BYTES)
        return cake_yaml_wrong(y->fault, spot_of_byte(y, CAKE_YAML_BYTES), "%s may have at most %d bytes",
                               y->form->name, CAKE_YAML_BYTES);
    cake_err err = cake_yaml_next(y); /* start of the stream */
    err = err ? err : cake_yaml_next(y);
    if (!err && y->event.type == YAML_STREAM_END_EVENT)
        return refuse_empty(y);
    err = err ? err : cake_yaml_next(y);
    err = err ? err : read_document(y, self, end);
    err = err ? err : cake_yaml_next(y); /* end of the document */
    err = err ? err : cake_yaml_next(y);
    if (!err && y->event.type != YAML_STREAM_END_EVENT)
        err = cake_yaml_refuse(y, "a second document; %s has one", y->form->name);
    return err;
}

cake_err cake_yaml_read(const char *text, size_t len, const cake_yaml_form *form, void *self,
                        cake_yaml_position *end, cake_yaml_fault *fault)
{
    cake_yaml y = {.text = text, .len = len, .form = form, .fault = fault};
    if (!yaml_parser_initialize(&y.parser))
        cake_die("out of memory while %s was read", form->name);
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)text, len);
    cake_err err = read_file(&y, self, end);
    yaml_event_delete(&y.event);
    yaml_parser_delete(&y.parser);
    return err;
}
