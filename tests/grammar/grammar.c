/* SPDX-License-Identifier: Apache-2.0
 *
 * Constraints: what patterns, grammars, choices and schemas take and refuse; masks against a check of every
 * token at every step; what is refused, and bombs.
 */
#include "grammar/grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "tests/suite.h"

static cake_constraint_source source_of(cake_constraint_kind kind, const char *text)
{
    return (cake_constraint_source){.kind = kind, .text = (char *)(uintptr_t)text, .len = strlen(text)};
}

/* Whether each text is taken: texts up to NULL that are, then texts up to NULL that are not. */
static void check_texts(cake_constraint_kind kind, const char *source, const char *const *texts)
{
    const cake_constraint_source from = source_of(kind, source);
    cake_grammar *g = NULL;
    cake_fault fault = {0};
    cake_err err = cake_grammar_open(&from, &g, &fault);
    if (err)
        fprintf(stderr, "    %s: %s\n", source, fault.message);
    CU_ASSERT_FATAL(!err);
    for (int refused = 0; refused < 2; refused++, texts++)
        for (; *texts; texts++) {
            const bool has = cake_grammar_has(g, *texts, strlen(*texts));
            if (has == refused)
                fprintf(stderr, "    %s: %s is %s\n", source, *texts, has ? "taken" : "refused");
            CU_ASSERT_EQUAL(has, !refused);
        }
    cake_grammar_close(g);
}

#define TAKES(kind, source, ...) check_texts(kind, source, (const char *const[]){__VA_ARGS__, NULL})
#define REGEX(source, ...)       TAKES(CAKE_CONSTRAINT_REGEX, source, __VA_ARGS__)
#define GRAMMAR(source, ...)     TAKES(CAKE_CONSTRAINT_GRAMMAR, source, __VA_ARGS__)
#define SCHEMA(source, ...)      TAKES(CAKE_CONSTRAINT_SCHEMA, source, __VA_ARGS__)
#define STRUCTURE(source, ...)   TAKES(CAKE_CONSTRAINT_STRUCTURE, source, __VA_ARGS__)

static void refuses(cake_constraint_kind kind, const char *source, const char *message)
{
    const cake_constraint_source from = source_of(kind, source);
    cake_grammar *g = NULL;
    cake_fault fault = {0};
    CU_ASSERT_EQUAL(cake_grammar_open(&from, &g, &fault), CAKE_ERR_REQUEST);
    if (!strstr(fault.message, message))
        fprintf(stderr, "    %s: %s\n", source, fault.message);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, message));
    if (g)
        cake_grammar_close(g);
}

#define TEXT(value) "{\"type\": \"const_string\", \"value\": \"" value "\"}"
#define SEQ(list)   "{\"type\": \"sequence\", \"elements\": [" list "]}"
#define INTEGER     "{\"type\": \"json_schema\", \"json_schema\": {\"type\": \"integer\"}}"
#define ANY         "{\"type\": \"any_text\"}"
#define TAG(begin, content, end)                                                                             \
    "{\"type\": \"tag\", \"begin\": \"" begin "\", \"content\": " content ", \"end\": \"" end "\"}"

static void test_structure(void)
{
    STRUCTURE(SEQ(TEXT("a=") ", " INTEGER ", " TEXT(";")), "a=1;", "a=-20;", NULL, "a=1", "a=x;", "a=1;;");
    STRUCTURE(SEQ(ANY ", " TEXT("abab") ", " INTEGER), "abab1", "xaabab2", "abaabab3", "\xC3\xA9\n abab0",
              NULL, "aba1", "abababab1", "ababab1", "1",
              "\xFF"
              "abab1");
    STRUCTURE(TAG("<t>", ANY, "</t>"), "<t></t>", "<t>a<</t>", "<t>\n</</t>", NULL, "<t>", "<t></t>x",
              "<t></t></t>");
    STRUCTURE("{\"type\": \"or\", \"elements\": [" TEXT(
                  "a") ", {\"type\": \"regex\", \"pattern\": \"[0-9]{2}\"}, "
                       "{\"type\": \"grammar\", \"grammar\": \"root ::= \\\"g\\\"+\"}]}",
              "a", "42", "ggg", NULL, "4", "", "ag");
    STRUCTURE(
        SEQ("{\"type\": \"optional\", \"content\": " TEXT("o") "}, {\"type\": \"star\", \"content\": " TEXT(
            "s") "}, {\"type\": \"plus\", \"content\": " TEXT("p") "}"),
        "p", "opp", "ossp", "ssp", NULL, "", "oop", "os");
#define TAGS "[" TAG("<i>", INTEGER, "</i>") ", " TAG("<a>", ANY, "</a>") "]"
    STRUCTURE("{\"type\": \"tags_with_separator\", \"separator\": \"; \", \"tags\": " TAGS "}", "",
              "<i>1</i>", "<i>1</i>; <a>x</a>", NULL, "<i>1</i>;", "<i>1</i><i>2</i>");
    STRUCTURE("{\"type\": \"tags_with_separator\", \"separator\": \",\", \"at_least_one\": true, "
              "\"stop_after_first\": true, \"tags\": " TAGS "}",
              "<i>1</i>", "<a></a>", NULL, "", "<i>1</i>,<i>2</i>");
    STRUCTURE("{\"structures\": [{\"begin\": \"<f=a>\", \"schema\": {\"type\": \"integer\"}, \"end\": "
              "\"</f>\"}, {\"begin\": \"<f=b>\", \"schema\": {\"enum\": [true]}, \"end\": \"</f>\"}], "
              "\"triggers\": "
              "[\"<f=\"]}",
              "", "plain < f=", "x<f=a>1</f> and <f=b>true</f>", "<f=a>1</f><f=a>2</f>", NULL,
              "<f=", "<f=c>1</f>", "<f=a>x</f>");
    STRUCTURE("{\"type\": \"structural_tag\", \"structures\": [{\"begin\": \"<f>\", \"schema\": {\"type\": "
              "\"integer\"}, \"end\": \"</f>\"}], \"triggers\": [\"<f\"]}",
              "", "x<f>1</f>", NULL, "<f>x</f>");
    STRUCTURE(SEQ("{\"type\": \"triggered_tags\", \"triggers\": [\"<i\"], \"at_least_one\": true, "
                  "\"stop_after_first\": true, \"tags\": " TAGS "}, " TEXT("!")),
              "<i>1</i>!", "<a>q</a>!", NULL, "!", "x<i>1</i>!", "<i>1</i>");
}

static void test_structure_more(void)
{
    STRUCTURE(
        "{\"type\": \"structural_tag\", \"format\": {\"type\": \"qwen_xml_parameter\", \"json_schema\": "
        "{\"properties\": {\"a\": {\"type\": \"string\"}, \"b\": {\"$ref\": \"#/$defs/n\"}, \"c\": "
        "{\"type\": "
        "\"string\", \"enum\": [\"x\", \"y z\"]}}, \"required\": [\"a\"], \"$defs\": {\"n\": {\"type\": "
        "\"integer\"}}}}}",
        "<parameter=a>\nq\nr\n</parameter>\n",
        "<parameter=a>\n\n</parameter>\n<parameter=b>\n5\n</parameter>\n<parameter=c>\ny z\n</parameter>\n",
        NULL, "", "<parameter=b>\n5\n</parameter>\n",
        "<parameter=a>\nq\n</parameter>\n<parameter=b>\nx\n</parameter>\n");
    STRUCTURE(SEQ(ANY ", {\"type\": \"token\", \"token\": \"<|end|>\"}"), "hi\xFF<|end|>", "\xFF<|end|>",
              NULL, "hi<|end|>", "hi");
    STRUCTURE("{\"type\": \"any_text\", \"excludes\": [\"ab\", \"c\"]}", "", "a b", "ba", NULL, "xab", "c");
    STRUCTURE(SEQ("{\"type\": \"any_text\", \"excludes\": [\"b\"]}, " TEXT("!")), "a!", NULL, "b!", "a");
    STRUCTURE("{\"type\": \"triggered_tags\", \"triggers\": [\"<a\"], \"at_least_one\": true, \"tags\": "
              "[{\"begin\": "
              "\"<a>\", \"content\": {\"type\": \"any_text\"}, \"end\": [\"</a>\", \"</b>\"]}]}",
              "<a>x</a>", "<a></b>", "<a>x</a> <a>y</b>", NULL, "", "<a>x");
    refuses(CAKE_CONSTRAINT_STRUCTURE, "{\"type\": \"any_text\", \"exclude\": []}",
            "structural tag: any_text: exclude is not supported");
    refuses(CAKE_CONSTRAINT_STRUCTURE,
            "{\"begin\": \"a\", \"content\": {\"type\": \"any_text\"}, \"end\": []}",
            "expected the strings `begin` and `end`, or an array of these");
    refuses(CAKE_CONSTRAINT_STRUCTURE, "{}", "expected an element, an object with a `type`");
    refuses(CAKE_CONSTRAINT_STRUCTURE, "{\"type\": \"sum\"}", "type sum is not supported");
    refuses(CAKE_CONSTRAINT_STRUCTURE, SEQ(TEXT("a") ", 1"), "expected an element");
    refuses(CAKE_CONSTRAINT_STRUCTURE, "{\"type\": \"or\", \"elements\": []}",
            "or: expected an array of elements");
    refuses(CAKE_CONSTRAINT_STRUCTURE,
            "{\"type\": \"triggered_tags\", \"triggers\": [\"<q\"], \"tags\": " TAGS "}",
            "no tag begins with one of the triggers");
    refuses(CAKE_CONSTRAINT_STRUCTURE, "{\"type\": \"qwen_xml_parameter\", \"json_schema\": {\"allOf\": []}}",
            "allOf at # of the schema is not supported");
    refuses(CAKE_CONSTRAINT_STRUCTURE,
            "{\"type\": \"qwen_xml_parameter\", \"json_schema\": {\"required\": [\"a\"]}}",
            "not in properties");
    STRUCTURE(
        "{\"type\": \"qwen_xml_parameter\", \"json_schema\": {\"properties\": {\"a\": {\"type\": \"string\", "
        "\"minLength\": 2, \"maxLength\": 3}, \"d\": {\"type\": \"string\", \"format\": \"date\"}}}}",
        "", "<parameter=a>\n\"\xC3\xA9\n</parameter>\n", "<parameter=d>\n2024-02-29\n</parameter>\n", NULL,
        "<parameter=a>\na\n</parameter>\n", "<parameter=a>\nabcd\n</parameter>\n",
        "<parameter=d>\n\"2024-02-29\"\n</parameter>\n", "<parameter=d>\n2024-02-30\n</parameter>\n");
    refuses(
        CAKE_CONSTRAINT_STRUCTURE,
        "{\"type\": \"qwen_xml_parameter\", \"json_schema\": {\"properties\": {\"a\": {\"type\": \"string\", "
        "\"minLength\": \"x\"}}}}",
        "minLength at #/properties/a");
    STRUCTURE(
        "{\"type\": \"qwen_xml_parameter\", \"json_schema\": {\"properties\": {\"a\": {\"type\": \"string\", "
        "\"pattern\": \"^[0-9]+$\"}, \"b\": {\"type\": \"string\", \"const\": \"x\"}}, \"required\": "
        "[\"b\"]}}",
        "<parameter=b>\nx\n</parameter>\n",
        "<parameter=a>\n12\n</parameter>\n<parameter=b>\nx\n</parameter>\n", NULL,
        "<parameter=a>\nx\n</parameter>\n<parameter=b>\nx\n</parameter>\n");
    refuses(CAKE_CONSTRAINT_STRUCTURE, "{\"type\": \"json_schema\", \"json_schema\": {\"if\": {}}}",
            "if at #");
}

static void test_regex(void)
{
    REGEX("a(b|c)*d?", "a", "abcbc", "abd", NULL, "", "d", "abdd", "ab d");
    REGEX("[^a-c\\d]{2,3}", "xy", "xyz", "\xC3\xA9\xE6\x9D\xB1", NULL, "x", "ax", "x1", "wxyz");
    REGEX("\\d+\\.\\d{2}", "3.14", "0.00", NULL, "3.1", ".14", "3,14");
    REGEX("^\\w+@\\w+\\.(com|org)$", "me@here.org", NULL, "me@here.net", "@here.org");
    REGEX("(?:yes|no)|maybe", "yes", "no", "maybe", NULL, "yesmaybe", "");
    REGEX("(?<year>[0-9]{4})-(0[1-9]|1[0-2])", "2026-11", NULL, "2026-13", "26-11");
    REGEX("\\u00e9\\x41\\t[\\]\\-a]",
          "\xC3\xA9"
          "A\t]",
          "\xC3\xA9"
          "A\t-",
          NULL,
          "\xC3\xA9"
          "A\tb");
    REGEX(".", "x", "\xF0\x9F\x98\x80", NULL, "\n", "xx", "\xFF", "\xED\xA0\x80");
    REGEX("\\p{Lu}\\p{Ll}+", "Abc", "\xC3\x84rger", NULL, "abc", "A1");
    REGEX("[\\s\\S]*", "", "a\nb", "\xE2\x82\xAC", "\xEF\xBB\xBF\x1C", NULL, "\xE2\x82");
    /* what ECMA-262 and Python's re do not agree on: U+FEFF, U+001C, an accented letter, an Arabic digit */
    REGEX("\\s\\S\\W\\D", " x!y", "\xC2\xA0.\xE2\x82\xAC_", NULL, "\xEF\xBB\xBFx!y", " \xEF\xBB\xBF!y",
          " \x1C!y", " x\xC3\xA9y", " x!\xD9\xA3");
    REGEX("[^\\s\\d][^\\w][^\\W]", "x!y", NULL, "\xEF\xBB\xBF!y", "\x1C!y", "\xD9\xA3!y", "x\xC3\xA9y",
          "x!\xC3\xA9");
    REGEX("a{0}b{3,}", "bbb", "bbbbbb", NULL, "bb", "abbb");
    REGEX("((a*)*)*b", "b", "aaaaaaaaaaaaaaaaaaaaaaaab", NULL, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    refuses(CAKE_CONSTRAINT_REGEX, "(a", "at byte 2 of the pattern \"(a\": a group without )");
    refuses(CAKE_CONSTRAINT_REGEX, "a)", "a ) without (");
    refuses(CAKE_CONSTRAINT_REGEX, "a**", "nothing to repeat");
    refuses(CAKE_CONSTRAINT_REGEX, "(a)\\1", "references back");
    refuses(CAKE_CONSTRAINT_REGEX, "a(?=b)", "looking ahead");
    refuses(CAKE_CONSTRAINT_REGEX, "\\bword", "word boundaries");
    refuses(CAKE_CONSTRAINT_REGEX, "a^b", "at the ends only");
    refuses(CAKE_CONSTRAINT_REGEX, "[z-a]", "ends before it begins");
    refuses(CAKE_CONSTRAINT_REGEX, "[a", "a class without ]");
    refuses(CAKE_CONSTRAINT_REGEX, "a{3,2}", "out of order");
    refuses(CAKE_CONSTRAINT_REGEX, "\\", "a backslash at the end");
    refuses(CAKE_CONSTRAINT_REGEX, "(((((.{100}){100}){100}){100}){100}){100}", "needs more than");
    refuses(CAKE_CONSTRAINT_REGEX, "[]", "allows no answer");
}

static void test_grammar(void)
{
    GRAMMAR("root ::= expr\n"
            "expr ::= term ([-+*/] term)* # a comment\n"
            "term ::= num | \"(\" ws expr ws \")\"\n"
            "num ::= [0-9]+\nws ::= [ \\t\\n]*\n",
            "1", "1+2*(3-4)", "((((1))))", "( 1+1 )", NULL, "", "1+", "(1", "1)", "a");
    GRAMMAR("root ::= \"a\" root \"b\" | \"\"", "", "ab", "aaabbb", NULL, "a", "aab", "abb", "ba");
    GRAMMAR("root ::= (\"x\" |\n  \"y\"\n)+ \"\\x41\\u00e9\\n\"", "xyA\xC3\xA9\n", NULL, "A\xC3\xA9\n");
    GRAMMAR("root ::= item{2,3} | [^\"a-z]\nitem ::= \"i\" .", "iaib", "iiiiii", "Z", NULL, "ia", "\"", "q");
    GRAMMAR("root ::= \"a\" {2} (\"b\"\n *) \"c\" ? # end\nother ::= \"d\" +", "aa", "aabbc", NULL, "ab",
            "aacc");
    GRAMMAR("root ::= \"a\"\n  | \"b\"\n\n\nother ::= \"c\"", "a", "b", NULL, "c");
    /* ambiguous: so many stacks that they must be shared */
    GRAMMAR("root ::= \"(\" root a | \"(\" root b | \"x\"\na ::= \")\"\nb ::= \")\"", "x",
            "(((((((((((((((((((((((((x)))))))))))))))))))))))))", NULL, "(x", "(x))");
    refuses(CAKE_CONSTRAINT_GRAMMAR, "root ::= thing", "line 1 of the grammar: there is no rule thing");
    refuses(CAKE_CONSTRAINT_GRAMMAR, "rot ::= \"a\"", "no rule called root");
    refuses(CAKE_CONSTRAINT_GRAMMAR, "root ::= root \"a\" | \"b\"", "left recursion");
    refuses(CAKE_CONSTRAINT_GRAMMAR, "root ::= e root | \"b\"\ne ::= \"\" | \"c\"", "left recursion");
    refuses(CAKE_CONSTRAINT_GRAMMAR, "root ::= \"a\n\"",
            "line 1 of the grammar: a text or a class does not end");
    refuses(CAKE_CONSTRAINT_GRAMMAR, "root ::= \"a\"\nroot ::= \"b\"",
            "line 2 of the grammar: this rule is there already");
    refuses(CAKE_CONSTRAINT_GRAMMAR, "root ::= \"a\" root", "allows no answer");
    refuses(CAKE_CONSTRAINT_GRAMMAR, "root := \"a\"", "expected ::=");
    refuses(CAKE_CONSTRAINT_GRAMMAR, "root ::= (\"a\"", "a group without )");
}

static void test_choice(void)
{
    TAKES(CAKE_CONSTRAINT_CHOICE, "[\"yes\", \"yes, sir\", \"no\", \"\xC3\xA9\"]", "yes", "yes, sir", "no",
          "\xC3\xA9", NULL, "", "ye", "yes,", "\xC3");
    TAKES(CAKE_CONSTRAINT_OBJECT, "", "{}", "{ }", "{\"a\": [1, 2.5e-3, {\"b\": null}], \"c\":true}",
          "{\n  \"a\": \"\\u00e9\\n\"\n}", "{\"a\": \"\\ud83d\\ude00\"}", NULL, "[]", "{\"a\"}",
          "{\"a\": 01}", "{\"a\": 1,}", "{a: 1}", " {}", "{} ", "{\"a\": \"\\ud83d\"}", "{\"a\": \"\n\"}");
}

static void test_numbers(void)
{
    SCHEMA("{\"type\": \"integer\", \"minimum\": -12, \"maximum\": 345}", "-12", "-9", "0", "7", "99", "345",
           NULL, "-13", "346", "-0", "007", "1.0", "1e1");
    SCHEMA("{\"type\": \"number\", \"exclusiveMinimum\": 0.5, \"maximum\": 10.25}", "0.51", "0.5000001", "1",
           "9.999", "10.25", "10.250", "10.0", NULL, "0.5", "0.50", "0.4999", "10.2501", "11", "-1");
    SCHEMA("{\"type\": \"number\", \"minimum\": -2.5, \"exclusiveMaximum\": -1}", "-2.5", "-2", "-1.01",
           "-1.5", NULL, "-1", "-1.0", "-2.51", "1.5", "0");
    SCHEMA("{\"type\": \"integer\", \"minimum\": 1000000000000000000000}", "1000000000000000000000",
           "9999999999999999999999", NULL, "999999999999999999999");
    SCHEMA("{\"type\": \"integer\", \"multipleOf\": 7, \"maximum\": 100}", "0", "7", "98", "-7", "-700", NULL,
           "1", "105", "-8");
    SCHEMA("{\"type\": \"number\", \"multipleOf\": 0.25}", "0", "0.25", "0.5", "-17.75", "3.0", "12", NULL,
           "0.3", "0.125", "1.1");
    SCHEMA("{\"type\": \"number\", \"minimum\": 0, \"maximum\": 1}", "0", "1", "0.37", "1.000", NULL, "1.001",
           "2", "-0.1", "10");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"type\": \"integer\", \"minimum\": 3, \"maximum\": 2}",
            "allows no answer");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"type\": \"integer\", \"multipleOf\": 0}",
            "multipleOf at # of the schema");
}

static void test_schema(void)
{
    SCHEMA("{\"type\": \"string\", \"pattern\": \"^[a-z\\\"\\n]+$\", \"minLength\": 2, \"maxLength\": 4}",
           "\"ab\"", "\"a\\\"\\nb\"", NULL, "\"a\"", "\"abcde\"", "\"A\"");
    SCHEMA("{\"type\": \"string\", \"pattern\": \"b\"}", "\"abc\"", "\"b\"", NULL, "\"ac\"", "\"\"");
    SCHEMA("{\"type\": \"string\", \"format\": \"date\"}", "\"2024-02-29\"", "\"1999-12-31\"", NULL,
           "\"2023-02-29\"", "\"1999-13-01\"");
    SCHEMA("{\"properties\": {\"a\": {\"const\": 1}, \"b\": {\"$ref\": \"#\"}}, \"required\": [\"a\"], "
           "\"additionalProperties\": false, \"type\": \"object\"}",
           "{\"a\": 1}", "{\"a\": 1, \"b\": {\"a\": 1}}", NULL, "{}", "{\"a\": 2}",
           "{\"b\": {\"a\": 1}, \"a\": 1}", "{\"a\": 1, \"c\": 2}");
    SCHEMA("{\"type\": \"object\", \"patternProperties\": {\"^x\": {\"type\": \"integer\"}}, \"properties\": "
           "{\"x1\": {\"minimum\": 5}}, \"additionalProperties\": {\"type\": \"null\"}}",
           "{\"x1\": 5, \"x2\": 1, \"y\": null}", "{\"x2\": 1}", NULL, "{\"x1\": 4}", "{\"x2\": \"a\"}",
           "{\"y\": 1}", "{\"x1\": 5, \"x1\": 6}");
    SCHEMA("{\"allOf\": [{\"properties\": {\"a\": {\"type\": \"integer\"}}}, {\"properties\": {\"a\": "
           "{\"minimum\": 3}, \"b\": true}, \"required\": [\"b\"]}], \"type\": \"object\"}",
           "{\"a\": 3, \"b\": 0}", "{\"b\": []}", NULL, "{\"a\": 2, \"b\": 0}", "{\"a\": 3}");
    SCHEMA("{\"type\": \"array\", \"prefixItems\": [{\"const\": \"x\"}], \"items\": {\"type\": \"integer\"}, "
           "\"minItems\": 2, \"maxItems\": 3}",
           "[\"x\", 1]", "[\"x\", 1, 2]", NULL, "[\"x\"]", "[\"x\", 1, 2, 3]", "[1, 2]", "[]");
    SCHEMA("{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"object\", \"properties\": {\"k\": {\"const\": "
           "1}}, \"required\": [\"k\"]}, "
           "{\"type\": \"object\", \"properties\": {\"k\": {\"const\": 2}}, \"required\": [\"k\"]}]}",
           "\"a\"", "{\"k\": 1}", "{\"k\": 2}", NULL, "{\"k\": 3}", "1");
    SCHEMA("{\"enum\": [\"a\\\"b\", 1.5, null, {\"x\": [1]}], \"type\": [\"string\", \"object\"]}",
           "\"a\\\"b\"", "{\"x\": [1]}", NULL, "1.5", "null");
    SCHEMA("{\"type\": \"object\", \"minProperties\": 2, \"patternProperties\": {\"^[ab]$\": {\"type\": "
           "\"boolean\"}, \"^bc?$\": true}, \"additionalProperties\": false}",
           "{\"a\": true, \"b\": false}", "{\"b\": true, \"bc\": 1}",
           "{\"a\": true, \"b\": false, \"bc\": 1}", NULL, "{\"a\": true}", "{\"a\": true, \"a\": false}",
           "{\"a\": true, \"b\": 1}", "{\"a\": true, \"c\": 1}");
    SCHEMA("{\"minProperties\": 2, \"maxProperties\": 3, \"properties\": {\"a\": {}, \"b\": {}}, \"type\": "
           "\"object\"}",
           "{\"a\": 1, \"b\": 2}", "{\"b\": 2, \"c\": 3, \"d\": 4}", NULL, "{}", "{\"a\": 1}",
           "{\"a\": 1, \"b\": 2, \"c\": 3, \"d\": 4}");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"properties\": {\"a\": {\"not\": {}}}}",
            "not at #/properties/a of the schema: this keyword is not supported");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"$ref\": \"#/$defs/none\"}", "$ref at # of the schema");
    SCHEMA("{\"$ref\": \"#/$defs/a%7E1b~01~0\", \"$defs\": {\"a/b~1~\": {\"const\": 1}}}", "1", NULL, "2");
    SCHEMA("{\"$ref\": \"#/anyOf/1\", \"anyOf\": [{\"const\": 1}, {\"const\": 2}]}", "2", NULL, "1");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"$ref\": \"#/anyOf/01\", \"anyOf\": [true, true]}", "$ref at #");
    refuses(CAKE_CONSTRAINT_SCHEMA,
            "{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"$ref\": \"#/$defs/b\"}, \"b\": {\"$ref\": "
            "\"#/$defs/a\"}}}",
            "leads back to itself");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"type\": \"sting\"}", "type at # of the schema");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"type\": \"string\", \"pattern\": \"(\"}",
            "pattern at # of the schema: at byte 1");
    SCHEMA("{\"oneOf\": [{\"type\": \"integer\", \"maximum\": 3}, {\"type\": \"number\", "
           "\"exclusiveMinimum\": 3}, "
           "{\"type\": \"string\", \"minLength\": 2}, {\"type\": [\"string\", \"null\"], \"maxLength\": 1}]}",
           "3", "3.5", "\"ab\"", "\"a\"", "null", NULL, "2.5", "true");
    refuses(CAKE_CONSTRAINT_SCHEMA,
            "{\"oneOf\": [{\"type\": [\"integer\", \"string\"], \"maximum\": 3}, {\"type\": [\"integer\", "
            "\"string\"], "
            "\"minimum\": 4}]}",
            "oneOf at # of the schema: a value may be valid");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}",
            "oneOf at # of the schema: a value may be valid");
    refuses(CAKE_CONSTRAINT_SCHEMA,
            "{\"type\": \"object\", \"properties\": {\"a\": {\"$ref\": \"#\"}}, \"required\": [\"a\"]}",
            "allows no answer");
    refuses(CAKE_CONSTRAINT_STRUCTURE,
            "{\"type\": \"json_schema\", \"json_schema\": {\"type\": \"object\", \"minProperties\": 2}}",
            "minProperties above 1 counts members with any names");
    STRUCTURE("{\"type\": \"json_schema\", \"json_schema\": {\"type\": \"object\", \"minProperties\": 2, "
              "\"patternProperties\": {\"^[ab]$\": {}}, \"additionalProperties\": false}}",
              "{\"a\": 1, \"b\": 2}", NULL, "{\"a\": 1, \"a\": 2}");
    refuses(CAKE_CONSTRAINT_SCHEMA, "[]", "expected an object, true or false");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"type\": \"string\", \"minLength\": -1}", "minLength at #");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"type\": \"array\", \"minItems\": 1000000}", "needs more than");
    SCHEMA("{\"maxItems\": 9007199254740991, \"maxLength\": 1000000000000000000, \"maxProperties\": 1e30, "
           "\"type\": "
           "[\"array\", \"string\", \"object\"]}",
           "[1, 2]", "\"ab\"", "{\"a\": 1}", NULL, "1");
}

/* Keywords about strings that leave none, or say nothing. */
static void test_strings(void)
{
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"type\": \"string\", \"minLength\": 5, \"maxLength\": 2}",
            "allows no answer");
    SCHEMA("{\"anyOf\": [{\"type\": \"string\", \"minLength\": 3}, {\"type\": \"null\"}], \"maxLength\": 2}",
           "null", NULL, "\"\"", "\"ab\"", "\"abc\"");
    SCHEMA(
        "{\"anyOf\": [{\"type\": \"string\", \"minLength\": 3, \"pattern\": \"a\"}, {\"type\": \"null\"}], "
        "\"maxLength\": 2}",
        "null", NULL, "\"a\"", "\"aaa\"");
    SCHEMA("{\"type\": \"string\", \"maxLength\": 3, \"allOf\": [{\"maxLength\": 300000}]}", "\"abc\"", NULL,
           "\"abcd\"");
    SCHEMA("{\"type\": \"string\", \"maxLength\": 300000, \"allOf\": [{\"maxLength\": 3}]}", "\"abc\"", NULL,
           "\"abcd\"");
    SCHEMA("{\"type\": \"string\", \"maxLength\": 300000}", "\"abcd\"", NULL, "1");
    static const char label[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"; /* 63 */
    char host[280], whole[300], long_[300], mail[320];
    snprintf(host, sizeof host, "%s.%s.%s.%.61s", label, label, label, label);
    snprintf(whole, sizeof whole, "\"%s\"", host);
    snprintf(long_, sizeof long_, "\"%sx\"", host);
    snprintf(mail, sizeof mail, "\"me.and.you@%s\"", host);
    SCHEMA("{\"type\": \"string\", \"format\": \"hostname\"}", whole, "\"a.b\"", NULL, long_, "\"a.\"");
    SCHEMA("{\"type\": \"string\", \"format\": \"hostname\", \"minLength\": 3}", whole, NULL, long_, "\"a\"");
    SCHEMA("{\"type\": \"string\", \"format\": \"email\", \"maxLength\": 99}", "\"a@b\"", NULL, mail);
    SCHEMA("{\"type\": \"string\", \"format\": \"hostname\", \"pattern\": \"[.]example[.](com|org)$\"}",
           "\"a.example.org\"", NULL, "\"example.org\"");
    cake_buf many = {0};
    cake_buf_adds(
        &many, "{\"type\": \"object\", \"properties\": {\"a\": {\"format\": \"uuid\", \"type\": \"string\"}");
    for (int i = 0; i < 100; i++) /* one rule for all of them */
        cake_buf_addf(&many, ", \"h%d\": {\"format\": \"hostname\", \"type\": \"string\"}", i);
    cake_buf_adds(&many, "}}");
    SCHEMA(many.data, "{\"h0\": \"x.y\", \"h99\": \"z\"}", NULL, "{\"h0\": \"x.\"}", "{\"a\": \"x\"}");
    cake_buf_free(&many);
}

/* Values of enum and const obey the other keywords, and are written as they were. */
static void test_values(void)
{
    SCHEMA("{\"enum\": [{\"a\": 1}, {\"b\": 1}], \"required\": [\"b\"]}", "{\"b\": 1}", NULL, "{\"a\": 1}");
    SCHEMA("{\"enum\": [[1], [1, 2], [\"x\", 2]], \"minItems\": 2, \"items\": {\"type\": \"integer\"}}",
           "[1, 2]", NULL, "[1]", "[\"x\", 2]");
    SCHEMA("{\"enum\": [{\"a\": [1]}, {\"a\": [\"x\"]}], \"allOf\": [{\"properties\": {\"a\": {\"$ref\": "
           "\"#/$defs/s\"}}}], \"$defs\": {\"s\": {\"items\": {\"type\": \"string\"}}}}",
           "{\"a\": [\"x\"]}", NULL, "{\"a\": [1]}");
    SCHEMA("{\"const\": 0.1, \"maximum\": 0.1}", "0.1", NULL, "0.10000000000000001");
    SCHEMA("{\"enum\": [0.1, 0.3, 0.5, 0.25], \"multipleOf\": 0.1}", "0.1", "0.3", "0.5", NULL, "0.25");
    SCHEMA("{\"const\": -0.0, \"minimum\": 0}", "-0.0", NULL, "1");
    SCHEMA("{\"enum\": [1e-7, -3], \"minimum\": 0}", "1e-07", NULL, "-3");
    SCHEMA("{\"enum\": [\"ab\", \"abc\", \"b\", \"ab\", 7], \"minLength\": 2, \"pattern\": \"^a\"}", "\"ab\"",
           "\"abc\"", "7", NULL, "\"b\"", "\"a\"");
    SCHEMA("{\"enum\": [\"a\\n\", \"\xC3\xA9\", \"\xC3\xA8x\", true, [], {\"k\": 0.1}]}", "\"a\\n\"",
           "\"\xC3\xA9\"", "\"\xC3\xA8x\"", "true", "[]", "{\"k\":0.1}", NULL, "\"\xC3\"", "\"\xC3\xA8\"",
           "false");
    SCHEMA("{\"enum\": [1, 2, 3], \"const\": 2.0}", "2.0", NULL, "1", "3");
    SCHEMA("{\"allOf\": [{\"enum\": [9007199254740993, 1]}, {\"enum\": [9007199254740992, 1.0]}]}", "1", NULL,
           "9007199254740993", "9007199254740992");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"enum\": [[1]], \"uniqueItems\": true}",
            "uniqueItems at # of the schema");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"enum\": [[1]], \"items\": {\"not\": {\"const\": 2}}}",
            "not at #/items of the schema");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"enum\": [{\"a\": 1}], \"properties\": {\"a\": {\"if\": {}}}}",
            "if at #/properties/a of the schema");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"enum\": [1], \"multipleOf\": 0}", "multipleOf at # of the schema");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"enum\": [\"a\"], \"pattern\": \"(\"}", "pattern at # of the schema");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"enum\": [\"a\"], \"format\": \"regex\"}",
            "format at # of the schema");
}

/* Names of members, and what addresses mean. */
static void test_names(void)
{
    SCHEMA("{\"type\": \"object\", \"propertyNames\": false}", "{}", NULL, "{\"a\": 1}");
    SCHEMA("{\"type\": \"object\", \"propertyNames\": {\"type\": \"integer\"}, \"properties\": {\"a\": {}}}",
           "{}", NULL, "{\"a\": 1}", "{\"b\": 1}");
    SCHEMA(
        "{\"type\": \"object\", \"propertyNames\": {\"type\": [\"string\", \"null\"], \"pattern\": \"^a\"}}",
        "{\"a\": 1}", NULL, "{\"b\": 1}");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"type\": \"object\", \"propertyNames\": false, \"minProperties\": 1}",
            "allows no answer");
    refuses(CAKE_CONSTRAINT_SCHEMA, "{\"type\": \"object\", \"propertyNames\": {\"not\": {}}}",
            "not at #/propertyNames of the schema: this keyword is not supported");
    refuses(CAKE_CONSTRAINT_SCHEMA,
            "{\"type\": \"object\", \"propertyNames\": {\"pattern\": \"^a\", \"not\": {\"const\": \"ab\"}}}",
            "not at #/propertyNames of the schema");
    refuses(CAKE_CONSTRAINT_SCHEMA,
            "{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"$id\": \"http://x/a\", \"items\": {\"$ref\": "
            "\"#/$defs/b\"}, \"$defs\": {\"b\": true}}, \"b\": false}}",
            "$id at #/$defs/a of the schema: below the root");
    SCHEMA("{\"$id\": \"http://x\", \"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"$id\": \"http://x/a\", "
           "\"type\": "
           "\"null\"}}}",
           "null", NULL, "1");
}

/* Without members that are not listed. */
static void test_closed(void)
{
    static const struct {
        const char *schema, *yes, *no;
    } cases[] = {{"{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}}, \"required\": "
                  "[\"a\", \"b\"], \"allOf\": "
                  "[{\"properties\": {\"b\": {\"type\": \"integer\"}}}]}",
                  "{\"a\": 1, \"b\": 2}", "{\"a\": 1, \"b\": 2, \"c\": 3}"},
                 {"{\"type\": \"object\", \"properties\": {\"a\": {}}, \"allOf\": [{\"patternProperties\": "
                  "{\"^x\": {}}}]}",
                  "{\"a\": 1, \"xy\": 2}", "{\"b\": 2}"},
                 {"{\"type\": \"object\", \"properties\": {\"a\": {}}, \"allOf\": "
                  "[{\"additionalProperties\": {\"type\": "
                  "\"integer\"}}]}",
                  "{\"a\": 1, \"b\": 2}", "{\"b\": \"x\"}"},
                 {"{\"type\": \"object\", \"required\": [\"a\"]}", "{\"a\": 1, \"b\": 2}", "{\"b\": 2}"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_constraint_source from = source_of(CAKE_CONSTRAINT_SCHEMA, cases[i].schema);
        cake_grammar *g = NULL;
        cake_fault fault = {0};
        from.closed = true;
        CU_ASSERT_FATAL(!cake_grammar_open(&from, &g, &fault));
        CU_ASSERT(cake_grammar_has(g, cases[i].yes, strlen(cases[i].yes)));
        CU_ASSERT(!cake_grammar_has(g, cases[i].no, strlen(cases[i].no)));
        cake_grammar_close(g);
    }
}

/* A NUL is a character like others, and no digit. */
static void test_nul(void)
{
    static const struct {
        const char *text;
        size_t len;
    } wrong[] = {{"\\x\0"
                  "1",
                  4},
                 {"\\u00\0"
                  "0",
                  6},
                 {"[\\x00-\\x\0\0]", 10}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const cake_constraint_source from = {
            .kind = CAKE_CONSTRAINT_REGEX, .text = (char *)(uintptr_t)wrong[i].text, .len = wrong[i].len};
        cake_grammar *g = NULL;
        cake_fault fault = {0};
        CU_ASSERT_EQUAL(cake_grammar_open(&from, &g, &fault), CAKE_ERR_REQUEST);
        CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "hexadecimal digits"));
        if (g)
            cake_grammar_close(g);
    }
}

/* Appends before, and n times item with its number, all but the first after a comma; then after. */
static void add_many(cake_buf *out, const char *before, const char *item, int n, const char *after)
{
    cake_buf_adds(out, before);
    for (int i = 0; i < n; i++) {
        cake_buf_adds(out, i ? "," : "");
        for (const char *at = item; *at; at++)
            if (*at == '#')
                cake_buf_addf(out, "%d", i);
            else
                cake_buf_addc(out, *at);
    }
    cake_buf_adds(out, after);
}

/* Compiles, and frees out. message NULL: it takes yes, and not no. */
static void check_large(cake_constraint_kind kind, cake_buf *out, const char *message, const char *yes,
                        const char *no)
{
    const clock_t begin = clock();
    if (message)
        refuses(kind, out->data, message);
    else
        TAKES(kind, out->data, yes, NULL, no);
    const double took = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (took > 15)
        fprintf(stderr, "    %.60s: %.1f s\n", out->data, took);
    CU_ASSERT(took < 15); /* 1 s at most, without a sanitizer */
    cake_buf_free(out);
}

/* Lists are looked through once, and what is left of long ways is refused: these took 4 s to 4 minutes, or
 * all memory. */
static void test_large(void)
{
    cake_buf s = {0};
    add_many(&s, "{\"enum\": [", "\"value number #\"", 100000, "]}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, NULL, "\"value number 77777\"", "\"value number 100000\"");
    add_many(&s, "{\"minimum\": 7, \"enum\": [", "#", 100000, "]}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, NULL, "99999", "6");
    add_many(&s, "{\"allOf\": [{\"enum\": [", "\"#\"", 20000, "]}, ");
    add_many(&s, "{\"enum\": [", "\"1#\"", 20000, "]}]}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, NULL, "\"1777\"", "\"2777\"");
    add_many(&s, "{\"pattern\": \"^v.*7$\", \"enum\": [", "\"v#\"", 20000, "]}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, NULL, "\"v1777\"", "\"v1778\"");
    cake_buf_adds(&s, "{\"oneOf\": [");
    for (int i = 0; i < 300; i++) {
        char item[16];
        snprintf(item, sizeof item, "\"%c%d-#\"", 'a', i);
        add_many(&s, i ? ", {\"enum\": [" : "{\"enum\": [", item, 300, "]}");
    }
    cake_buf_adds(&s, "]}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, NULL, "\"a299-299\"", "\"a300-1\"");
    add_many(&s, "{\"type\": \"object\", \"properties\": {", "\"n#\": {}", 100000, "}}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, "needs more than 262144 states at # of the schema", NULL, NULL);
    add_many(&s, "{\"type\": \"object\", \"properties\": {", "\"n#\": {}", 2000, "}}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, NULL, "{\"n7\": 1, \"n1999\": 2}", "{\"n8\": 1, \"n7\": 2}");
    add_many(&s, "{\"type\": \"object\", \"required\": [", "\"n#\"", 90000, "]}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, "needs more than 262144 states at # of the schema", NULL, NULL);
    add_many(&s, "{\"type\": \"array\", \"$defs\": {", "\"d#\": {\"$anchor\": \"a#\", \"const\": #}", 8000,
             "}, ");
    cake_buf_adds(&s, "\"prefixItems\": [{\"$ref\": \"#a0\"}");
    for (int i = 1; i < 8000; i++)
        cake_buf_addf(&s, ", {\"$ref\": \"#a%d\"}", i);
    cake_buf_adds(&s, "]}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, NULL, "[0, 1, 2]", "[1]");
    add_many(&s, "{\"oneOf\": [", "{\"const\": #}", 12000, "]}");
    check_large(CAKE_CONSTRAINT_SCHEMA, &s, "needs too many steps to compile", NULL, NULL);
    cake_buf_adds(&s, "root ::= r0\n");
    for (int i = 0; i < 40000; i++)
        cake_buf_addf(&s, "r%d ::= r%d | \"z\"\n", i, i + 1);
    cake_buf_adds(&s, "r40000 ::= \"\"");
    check_large(CAKE_CONSTRAINT_GRAMMAR, &s, NULL, "z", "zz");
    cake_buf_adds(&s, "(");
    for (int i = 0; i < 2000; i++)
        cake_buf_adds(&s, i % 2 ? "|b" : "|a");
    cake_buf_adds(&s, "){100000}");
    check_large(CAKE_CONSTRAINT_REGEX, &s, "needs more than 4194304 edges", NULL, NULL);
    cake_buf_adds(&s, "root ::= (");
    for (int i = 0; i < 5000; i++)
        cake_buf_addc(&s, '|');
    cake_buf_adds(&s, "\"x\"){100000}");
    check_large(CAKE_CONSTRAINT_GRAMMAR, &s, "needs too many steps to compile", NULL, NULL);
}

int main(void)
{
    static const suite_test tests[] = {{"regular expressions", test_regex},
                                       {"GBNF grammars", test_grammar},
                                       {"choices and objects", test_choice},
                                       {"numbers", test_numbers},
                                       {"schemas", test_schema},
                                       {"structural tags", test_structure},
                                       {"more structural tags", test_structure_more},
                                       {"strings", test_strings},
                                       {"values that are listed", test_values},
                                       {"names", test_names},
                                       {"closed objects", test_closed},
                                       {"NULs", test_nul},
                                       {"large ones", test_large}};
    return SUITE_MAIN("grammar", tests);
}
