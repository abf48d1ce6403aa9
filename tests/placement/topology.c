/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/size.h"
#include "tests/suite.h"

enum { MOST_RANKS = 8, LAYERS = 8 };

/* "0-1 4-7,9-9 -": the layers of each rank, or "LINE:COLUMN message". hosts: as in "a,b,b", a name each. */
static const char *parse(const char *text, size_t len, const char *hosts, int n_layer)
{
    static char out[1024];
    char names[512], *host[MOST_RANKS];
    int n_rank = 0;
    size_t used = 0;
    snprintf(names, sizeof names, "%s", hosts);
    for (char *at = strtok(names, ","); at; at = strtok(NULL, ","))
        host[n_rank++] = at;
    cake_topology topology;
    cake_yaml_fault fault = {.message = ""};
    if (cake_topology_parse(text, len, (const char *const *)host, n_rank, n_layer, &topology, &fault)) {
        snprintf(out, sizeof out, "%d:%d %s", fault.at.line, fault.at.column, fault.message);
        return out;
    }
    for (int r = 0; r < n_rank; r++) {
        const char *before = r ? " " : "";
        size_t begin = used;
        const cake_plan *plan = &topology.plan[r / (n_rank / topology.n_replica)];
        for (int i = 0; i<plan->n_hop; i++, before = used> begin ? "," : before) {
            const cake_hop *hop = &plan->hop[i];
            if (hop->rank == r - plan->first)
                used += (size_t)snprintf(out + used, sizeof out - used, "%s%d-%d", before, hop->first,
                                         hop->first + hop->count - 1);
        }
        if (used == begin)
            used += (size_t)snprintf(out + used, sizeof out - used, "%s-", before);
    }
    cake_topology_free(&topology);
    return out;
}

static void check(const char *text, const char *hosts, const char *expected)
{
    const char *got = parse(text, strlen(text), hosts, LAYERS);
    /* of a fault its beginning: the place and the first words */
    bool same = strchr(expected, ':') ? !strncmp(got, expected, strlen(expected)) : !strcmp(got, expected);
    CU_ASSERT(same);
    if (!same)
        printf("    %s\n    got      %s\n    expected %s\n", text, got, expected);
}

/* A file of cake's documentation, for its model of 32 layers. */
static void test_cake(void)
{
    static const char text[] = "linux_server_1:\n"
                               "  host: 'linux_server.host:10128'\n"
                               "  description: 'NVIDIA Titan X Pascal (12GB)'\n"
                               "  layers:\n"
                               "    - 'model.layers.0-5'\n"
                               "\n"
                               "linux_server_2:\n"
                               "  host: 'linux_server2.host:10128'\n"
                               "  description: 'NVIDIA GeForce 3080 (10GB)'\n"
                               "  layers:\n"
                               "    - 'model.layers.6-16'\n"
                               "\n"
                               "iphone:\n"
                               "  host: 'iphone.host:10128'\n"
                               "  description: 'iPhone 15 Pro Max'\n"
                               "  layers:\n"
                               "    - 'model.layers.17'\n"
                               "\n"
                               "ipad:\n"
                               "  host: 'ipad.host:10128'\n"
                               "  description: 'iPad'\n"
                               "  layers:\n"
                               "    - 'model.layers.18-19'\n"
                               "\n"
                               "macbook:\n"
                               "  host: 'macbook.host:10128'\n"
                               "  description: 'M1 Max'\n"
                               "  layers:\n"
                               "    - 'model.layers.20-31'";
    const char *hosts = "here,macbook,ipad.host,iphone,linux_server2.host,linux_server";
    CU_ASSERT_STRING_EQUAL(parse(text, strlen(text), hosts, 32), "- 20-31 18-19 17-17 6-16 0-5");
    CU_ASSERT_STRING_EQUAL(parse(text, strlen(text), hosts, 36), "32-35 20-31 18-19 17-17 6-16 0-5");
    CU_ASSERT_PTR_NOT_NULL(strstr(parse(text, strlen(text), hosts, 31), "29:7 "));
}

#define A(layers) "a:\n  host: h1\n  layers: [" layers "]\n"

/* Accepted files: forms of YAML and of layers, and the ranks of workers. */
static void test_read(void)
{
    static const char *const cases[][3] = {
        {"{}", "h", "0-7"},
        {A("'model.layers.0-7'"), "h,h1", "- 0-7"},
        {A("model.layers.3"), "h,h1", "0-2,4-7 3-3"},
        {A("model.layers.6-7, 'model.layers.3-3', \"model.layers.1\""), "h,h1", "0-0,2-2,4-5 1-1,3-3,6-7"},
        {A("model.layers.2, model.layers.1, model.layers.3-4"), "h,h1", "0-0,5-7 1-4"},
        {A("model.language_model.layers.0, language_model.model.layers.007"), "h,h1", "1-6 0-0,7-7"},
        {"\xEF\xBB\xBF" A("model.layers.3"), "h,h1", "0-2,4-7 3-3"},
        {"{a: {layers: [model.layers.0-3], host: h1}, b: {layers: [model.layers.4], host: h2}}", "h,h2,h1",
         "5-7 4-4 0-3"},
        {"'a b':\n  host: h1:1\n  vram_bytes: 12884901888\n  tflops: 6.5\n  backend: CUDA\n  hostname: x\n"
         "  os: linux\n  description:\n  layers:\n  - model.layers.1\n",
         "h,h1", "0-0,2-7 1-1"},
        /* several ranks of a host match its workers in order; rank 0 only if it has to */
        {"a: {host: h, layers: [model.layers.0]}\nb: {host: h, layers: [model.layers.1]}", "h,h,h",
         "2-7 0-0 1-1"},
        {"a: {host: h, layers: [model.layers.0]}\nb: {host: h, layers: [model.layers.1]}", "h,h",
         "0-0,2-7 1-1"},
        {"a: {host: h, layers: [model.layers.0]}\nb: {host: g, layers: [model.layers.1]}", "h,g",
         "0-0,2-7 1-1"},
        {"b: {host: 'n*', layers: [model.layers.0]}\na: {host: n1, layers: [model.layers.1]}", "h,n1,n2",
         "2-7 1-1 0-0"},
        {"a: {rank: 2, layers: [model.layers.0]}\nb: {host: h, layers: [model.layers.1]}", "h,h,h",
         "2-7 1-1 0-0"},
        {"a: {rank: 0, threads: 2}\nb: {rank: 1, kv_memory: 80%, layers: [model.layers.1]}", "h,h",
         "0-0,2-7 1-1"},
        {"a: {rank: 0, layers: [model.layers.1]}\nb: {rank: 1, layers: [model.layers.2-7]}", "h,h",
         "0-1 2-7"},
        /* replicas: ranks in order, equally many each; unlisted layers go to a replica's first rank */
        {"a: {host: h, replica: 1, layers: [model.layers.0-3]}", "h,h", "0-7 0-7"},
        {"a: {host: h, replica: 1, layers: [model.layers.0-3]}\nb: {host: h, layers: [model.layers.6-7]}",
         "h,h,h,h", "0-5 6-7 4-7 0-3"},
        {"a: {host: h, replica: 1, layers: [model.layers.0-3]}\nb: {host: g, layers: [model.layers.6-7]}\n"
         "c: {host: g, replica: 1, layers: [model.layers.4-7]}",
         "h,g,g,h", "0-5 6-7 4-7 0-3"},
        {"a: {rank: 3, layers: [model.layers.0-3]}\nb: {rank: 1, layers: [model.layers.0]}\n"
         "c: {rank: 2, replica: 1}",
         "h,h,h,h", "1-7 0-0 4-7 0-3"},
        {"a: {host: h, replica: 1}\nb: {host: '*', layers: [model.layers.7]}\n"
         "c: {host: g, replica: 1, layers: [model.layers.7]}",
         "h,h,h,g", "0-6 7-7 0-6 7-7"},
        /* names, domains, addresses, patterns, this host */
        {A("model.layers.0"), "h,H1.cluster.org", "1-7 0-0"},
        {"a: {host: n1.local:10128, layers: [model.layers.0]}", "h,n1", "1-7 0-0"},
        {"a: {host: 10.0.0.7:10128, layers: [model.layers.0]}", "h 10.0.0.6,n1 10.0.0.7 fe80::1", "1-7 0-0"},
        {"a: {host: '[fe80::1]:10128', layers: [model.layers.0]}", "h,n1 10.0.0.7 fe80::1", "1-7 0-0"},
        {"a: {host: 'fe80::1', layers: [model.layers.0]}", "h,n1 10.0.0.7 fe80::1", "1-7 0-0"},
        {"a: {host: 'n?*1', layers: [model.layers.0]}\nb: {host: n1, layers: [model.layers.1]}", "h,n1,n001",
         "2-7 1-1 0-0"},
        {"a: {host: 'n*', layers: [model.layers.0]}", "h,n1.cluster", "1-7 0-0"},
        {"a: {host: localhost:1, layers: [model.layers.0]}\nb: {host: '*', layers: [model.layers.1]}",
         "h,n1,h", "2-7 1-1 0-0"},
        {"a: {host: 127.0.0.1, layers: [model.layers.0]}\nb: {host: '*', layers: [model.layers.1]}", "h,n1,h",
         "2-7 1-1 0-0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i][0], cases[i][1], cases[i][2]);
    char name[1100];
    memset(name, 'k', sizeof name);
    memcpy(name + sizeof name - 5, ": {}", 5);
    check(name, "h", "1:1 a topology is a map of workers by name; this is a text that is too long for a key");
}

/* Refused files, and the position in the message. */
static const char *const refused[][3] = {
    /* not YAML, or more of it than is read */
    {"a:\n\thost: h1\n", "h,h1", "2:1 a tab"},
    {"a:\n  host: h1\n  layers:\n\t- model.layers.0\n", "h,h1", "4:1 a tab"},
    {"a: {host: h1\n", "h,h1", "2:1 this is not YAML"},
    {"a: 'x\n", "h,h1", "2:1 this is not YAML"},
    {"a: \"\\q\"", "h,h1", "1:5 this is not YAML"},
    {"a:\n  host: \xFF\n", "h,h1", "2:9 this is not text"},
    {"a:\n  \xC3\xA9: \x01\n", "h,h1", "2:6 this is not text"},
    {"a: &x\n  host: h1\n", "h,h1", "1:4 anchors and aliases are not supported: write out '&x'"},
    {"a: *x\n", "h,h1", "1:4 anchors and aliases are not supported: write out what '*x'"},
    {"a:\n  <<: *x\n", "h,h1", "2:3 '<<' is not a key of a worker"},
    {"a: !!map\n  host: h1\n", "h,h1", "1:4 tags are not supported: remove 'tag:yaml.org,2002:map'"},
    {"{}\n---\n{}\n", "h", "2:1 a second document"},
    {"", "h", "1:1 this file is empty"},
    {"# nothing\n", "h", "1:1 this file is empty"},
    {"# nothing\n---\n...\n", "h", "1:1 this file is empty"},
    /* types */
    {"[]", "h", "1:1 a topology is a map of workers by name; this is a list"},
    {"x", "h", "1:1 a topology is a map of workers by name; this is a single value"},
    {"a:\n", "h,h1", "1:3 worker 'a' is nothing"},
    {"a: []\n", "h,h1", "1:4 worker 'a' is a list"},
    {"[a]: {}\n", "h,h1", "1:1 a worker's name is a list"},
    {"~: {}\n", "h,h1", "1:1 a worker's name is empty"},
    {"a:\n  [host]: h1\n", "h,h1", "2:3 a key is a list"},
    {"a:\n  host: [h1]\n", "h,h1", "2:9 host is a list"},
    {"a:\n  host:\n", "h,h1", "2:8 host is empty"},
    {"a:\n  host: \"h\\0\"\n", "h,h1", "2:9 host has a NUL"},
    {"a:\n  host: h1\n  layers: model.layers.0\n", "h,h1", "3:11 layers is a single value; expected a list"},
    {"a:\n  host: h1\n  layers: {model.layers.0: 1}\n", "h,h1", "3:11 layers is a map"},
    {A("[model.layers.0]"), "h,h1", "3:12 an entry of layers is a list"},
    {"a:\n  host: h1\n  layers: []\n", "h,h1", "3:11 layers is an empty list"},
    {"a:\n  host: h1\n  description: [x]\n", "h,h1", "3:16 this is a list"},
    {"a:\n  rank: '1'\n", "h,h1", "2:9 rank is the text '1'; expected a whole number"},
    {"a:\n  rank: -1\n", "h,h1", "2:9 rank is '-1'"},
    {"a:\n  rank: 1.5\n", "h,h1", "2:9 rank is '1.5'"},
    {"a:\n  rank: 99999999999999999999\n", "h,h1", "2:9 rank is '9"},
    {"a:\n  rank: {}\n", "h,h1", "2:9 rank is a map"},
    {"a:\n  threads: 0\n", "h,h1", "2:12 threads is '0'; expected a whole number from 1 to 4096"},
    {"a:\n  threads: 4097\n", "h,h1", "2:12 threads is '4097'"},
    {"a:\n  kv_memory: much\n", "h,h1", "2:14 kv_memory is 'much'; expected a size"},
    {"a:\n  kv_memory: 101%\n", "h,h1", "2:14 kv_memory is '101%'"},
    /* keys */
    {"a:\n  host: h1\n  layer: []\n", "h,h1", "3:3 'layer' is not a key of a worker; the keys are host"},
    {"a:\n  host: h1\n  host: h1\n", "h,h1",
     "3:3 'host' is given twice; the first one is in line 2, column 3"},
    {A("model.layers.0") A("model.layers.1"), "h,h1,h1",
     "4:1 worker 'a' is given twice; the first one is in line 1"},
    {"a:\n  layers: [model.layers.0]\n", "h,h1", "1:1 worker 'a' has no host (or rank)"},
    {"a:\n  host: h1\n", "h,h1", "1:1 worker 'a' has no layers"},
    {"a\n\x1b[31m: 1\n", "h,h1", "2:1 this is not text"},
    {"\"a\\e[31m\": 1\n", "h,h1", "1:12 worker 'a?[31m' is a single value"},
    /* layers */
    {A("model.layer.0"), "h,h1", "3:12 'model.layer.0' names no layers; expected 'model.layers.0-7'"},
    {A("model.layers."), "h,h1", "3:12 'model.layers.' names no layers"},
    {A("model.layers.-1"), "h,h1", "3:12 'model.layers.-1' names no layers"},
    {A("model.layers.1-"), "h,h1", "3:12 'model.layers.1-' names no layers"},
    {A("model.layers.1--2"), "h,h1", "3:12 'model.layers.1--2' names no layers"},
    {A("model.layers.1-2-3"), "h,h1", "3:12 'model.layers.1-2-3' names no layers"},
    {A("model.layers.1.mlp"), "h,h1", "3:12 'model.layers.1.mlp' names no layers"},
    {A("model.norm"), "h,h1", "3:12 'model.norm' names no layers"},
    {A("7"), "h,h1", "3:12 '7' names no layers"},
    {A("model.layers.7-3"), "h,h1",
     "3:12 'model.layers.7-3' runs backwards; did you mean 'model.layers.3-7'?"},
    {A("model.layers.8"), "h,h1", "3:12 'model.layers.8': the model has 8 layers, from 0 to 7"},
    {A("model.layers.4-4294967299"), "h,h1", "3:12 'model.layers.4-4294967299': the model has 8"},
    {A("model.layers.0-99999999999999999999999"), "h,h1", "3:12 'model.layers.0-999"},
    {A("model.layers.1, model.layers.0-2"), "h,h1",
     "3:28 'model.layers.0-2': layer 1 is worker 'a's already (line 3, column 12)"},
    {A("model.layers.1-3") "b:\n  host: h1\n  layers:\n  - model.layers.3\n", "h,h1,h1",
     "7:5 'model.layers.3': layer 3 is worker 'a's already (line 3, column 12)"},
    /* hosts and ranks */
    {"a:\n  host: 'h1:'\n", "h,h1", "2:9 host 'h1:': '' is not a port"},
    {"a:\n  host: h1:65536\n", "h,h1", "2:9 host 'h1:65536': '65536' is not a port"},
    {"a:\n  host: h1:http\n", "h,h1", "2:9 host 'h1:http': 'http' is not a port"},
    {"a:\n  host: ':10128'\n", "h,h1", "2:9 host ':10128' is not a host name"},
    {"a:\n  host: 'h1 h2'\n", "h,h1", "2:9 host 'h1 h2' is not a host name"},
    {"a:\n  host: '[fe80::1'\n", "h,h1", "2:9 host '[fe80::1': expected '[address]:port'"},
    {A("model.layers.0"), "h,h2,h2", "2:9 host 'h1' is not in this job, whose hosts are: h, h2 ("},
    {"a: {host: h1.x, layers: [model.layers.0]}", "h,h1.y", "1:11 host 'h1.x' is not in this job"},
    {A("model.layers.0") "b:\n  host: h1\n  layers: [model.layers.1]\n", "h,h1,h2",
     "5:9 no rank is left for worker 'b': 'h1' has 1"},
    {A("model.layers.0"), "h,h1,h1", "4:1 rank 2 on h1 has no worker"},
    {"{}", "h,h1", "1:2 rank 1 on h1 has no worker"},
    {A("model.layers.0") "b: {host: h1, layers: [model.layers.1]}\nc: {host: h1, layers: "
                         "[model.layers.2]}\n",
     "h,h1", "5:1 worker 'c': 3 workers for 2 ranks; start it with -np 3"},
    {"a:\n  rank: 2\n  layers: [model.layers.0]\n", "h,h1", "2:9 there is no rank 2: the job has 2 ranks"},
    {"a:\n  rank: 1\n  layers: [model.layers.0]\nb:\n  rank: 1\n  layers: [model.layers.1]\n", "h,h1",
     "5:9 rank 1 is worker 'a' already (line 2, column 9)"},
    {"a:\n  rank: 1\n  host: h2\n  layers: [model.layers.0]\n", "h,h1", "3:9 rank 1 is on h1, not on 'h2'"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check(refused[i][0], refused[i][1], refused[i][2]);
}

static void test_refused_places(void)
{
    static const char *const cases[][3] = {
        /* where ranks run, on what, with how much */
        {"a:\n  cpus: much\n", "h,h1", "2:9 cpus is 'much': expected numbers and ranges like 0-7,16"},
        {"a:\n  cpus: 0-\n", "h,h1", "2:9 cpus is '0-': expected"},
        {"a:\n  cpus: -1\n", "h,h1", "2:9 cpus is '-1': expected"},
        {"a:\n  cpus: 1,,2\n", "h,h1", "2:9 cpus is '1,,2': expected"},
        {"a:\n  cpus: 1, 2\n", "h,h1", "2:9 cpus is '1, 2': expected"},
        {"a:\n  cpus: 3-0\n", "h,h1", "2:9 cpus is '3-0': a range runs backwards"},
        {"a:\n  cpus: 0-3,2\n", "h,h1", "2:9 cpus is '0-3,2': a number is given twice"},
        {"a:\n  cpus: [0-3, 3]\n", "h,h1", "2:15 cpus is '3': a number is given twice"},
        {"a:\n  cpus: 0-8192\n", "h,h1", "2:9 cpus is '0-8192': numbers go up to 8191"},
        {"a:\n  cpus: 00000000000000000000000099999999999999999999\n", "h,h1", "2:9 cpus is '0000"},
        {"a:\n  cpus: []\n", "h,h1", "2:9 cpus is an empty list"},
        {"a:\n  cpus: [[0]]\n", "h,h1", "2:10 cpus is a list; expected a text"},
        {"a:\n  cpus: {0: 1}\n", "h,h1", "2:9 cpus is a map"},
        {"a:\n  cpus:\n", "h,h1", "2:8 cpus is empty"},
        {"a:\n  numa: all\n", "h,h1", "2:9 numa is 'all': expected"},
        {"a:\n  numa: 0\n  cpus: 0-3\n", "h,h1", "3:9 both cpus and numa (line 2, column 9)"},
        {"a:\n  device: gpu\n", "h,h1", "2:11 device is 'gpu'; expected auto, cpu or cuda"},
        {"a:\n  gpu: -1\n", "h,h1", "2:8 gpu is '-1'; expected a whole number from 0 to 63"},
        {"a:\n  gpu: cuda0\n", "h,h1", "2:8 gpu is 'cuda0'"},
        {"a:\n  rank: 0\n  gpu: 0\n  device: cpu\n", "h,h1",
         "3:8 both gpu and device: cpu (line 4, column 11)"},
        {"a:\n  memory: 12 G\n", "h,h1", "2:11 memory is '12 G'; expected a size"},
        {"a:\n  memory: 0\n", "h,h1", "2:11 memory is '0'"},
        /* replicas */
        {"a:\n  replica: -1\n", "h,h1", "2:12 replica is '-1'"},
        {"a:\n  rank: 2\n  replica: 1\n", "h,h,h",
         "3:12 replica 1, counted from 0, makes 2 of them, and 3 ranks cannot be divided evenly among them; "
         "start it "
         "with -np 4"},
        {"a:\n  rank: 1\n  replica: 999999999\n", "h,h",
         "3:12 replica 999999999, counted from 0, makes 1000000000"},
        {"a:\n  rank: 0\n  replica: 2\n", "h,h,h", "3:12 replica 2, but no worker is of replica 1"},
        {"a:\n  rank: 0\n  replica: 1\n", "h,h", "3:12 rank 0 is in replica 0, not in 1"},
        {"a:\n  host: h\n  replica: 1\n  layers: [model.layers.0]\n"
         "b: {host: h, replica: 1, layers: [model.layers.0]}",
         "h,h,h,h", "5:35 'model.layers.0': layer 0 is worker 'a's already (line 4, column 12)"},
        {"a:\n  host: g\n  replica: 1\n  layers: [model.layers.0]\n", "g,g,h,h",
         "2:9 no rank is left for worker 'a': 'g' has 0 in replica 1 (ranks 2 to 3)"},
        {"a: {host: h, replica: 1}\nb: {host: h, replica: 1}\n", "h,h,h,h",
         "2:11 no rank is left for worker 'b'"},
        {"a: {host: h, replica: 1}\n", "h,h,h,h",
         "2:1 rank 1 on h has no worker: there are 1 for 4 ranks, of which "
         "the first of a replica needs none"},
        {"a: {rank: 1, replica: 0}\nb: {rank: 2, replica: 1}\n", "h,h,h,h", "1:1 worker 'a' has no layers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i][0], cases[i][1], cases[i][2]);
}

/* Files that would take much memory or time if they were believed. */
static void test_bombs(void)
{
    static char text[CAKE_YAML_BYTES + 2];
    memset(text, ' ', sizeof text);
    text[CAKE_YAML_BYTES - 2] = '{', text[CAKE_YAML_BYTES - 1] = '}';
    CU_ASSERT_STRING_EQUAL(parse(text, CAKE_YAML_BYTES, "h", 8), "0-7");
    CU_ASSERT(!strncmp(parse(text, CAKE_YAML_BYTES + 1, "h", 8),
                       "1:1048577 a topology may have at most 1048576 bytes", 51));
    memset(text, '[', sizeof text);
    CU_ASSERT(!strncmp(parse(text, CAKE_YAML_BYTES, "h", 8), "1:1 ", 4));
    memset(text, '{', sizeof text);
    CU_ASSERT(!strncmp(parse(text, CAKE_YAML_BYTES, "h", 8), "1:2 ", 4));
    memset(text, '-', sizeof text);
    CU_ASSERT(strchr(parse(text, CAKE_YAML_BYTES, "h", 8), ':') != NULL);
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "- ", 2);
    CU_ASSERT(!strncmp(parse(text, CAKE_YAML_BYTES, "h", 8), "1:1 ", 4));
    for (size_t i = 0; i + 2 < sizeof text; i += 3)
        memcpy(text + i, "? \n", 3);
    CU_ASSERT(strchr(parse(text, CAKE_YAML_BYTES, "h", 8), ':') != NULL);
    size_t len = 0; /* a hundred thousand workers on two ranks */
    for (int i = 0; i < 100000 && len + 10 < sizeof text; i++)
        len += (size_t)sprintf(text + len, "%d: {}\n", i);
    CU_ASSERT(strchr(parse(text, len, "h,h1", 8), ':') != NULL);
    len = (size_t)sprintf(text, "a: {host: h1, layers: [model.layers.0"); /* and as many entries of a list */
    while (len + 20 < sizeof text)
        len += (size_t)sprintf(text + len, ", model.layers.1-7");
    len += (size_t)sprintf(text + len, "]}");
    CU_ASSERT(!strncmp(parse(text, len, "h,h1", 8), "1:58 ", 5));
}

static bool same_rank(const cake_topology_rank *a, const cake_topology_rank *b)
{
    return a->threads == b->threads && a->kv_memory == b->kv_memory && a->memory == b->memory &&
           a->where == b->where && !memcmp(&a->set, &b->set, sizeof a->set) && a->device == b->device &&
           a->has_gpu == b->has_gpu && a->gpu == b->gpu;
}

/* A topology that is written is read as the same, and written again as the same. */
static void write_again(const cake_topology *one, const char *const *hosts, int n_layer)
{
    static const char *const about[MOST_RANKS] = {"a", "it's", "\n", "", "# \"", "b", "c", "d"};
    cake_topology two;
    cake_yaml_fault fault;
    cake_buf out = {0}, again = {0};
    cake_topology_write(one->plan, one->n_replica, one->rank, about, &out);
    cake_buf_adds(&out, "");
    cake_err err = cake_topology_parse(out.data, out.len, hosts, one->n_rank, n_layer, &two, &fault);
    CU_ASSERT_FATAL(!err);
    CU_ASSERT_FATAL(two.n_replica == one->n_replica && two.n_rank == one->n_rank);
    for (int i = 0; i < one->n_replica; i++)
        CU_ASSERT(one->plan[i].n_hop == two.plan[i].n_hop && one->plan[i].first == two.plan[i].first &&
                  !memcmp(one->plan[i].hop, two.plan[i].hop, (size_t)one->plan[i].n_hop * sizeof(cake_hop)));
    for (int r = 0; r < one->n_rank; r++)
        CU_ASSERT(same_rank(&one->rank[r], &two.rank[r]));
    cake_topology_write(two.plan, two.n_replica, two.rank, about, &again);
    cake_buf_adds(&again, "");
    CU_ASSERT_STRING_EQUAL(out.data, again.data);
    cake_topology_free(&two);
    cake_buf_free(&out);
    cake_buf_free(&again);
}

/* Settings of ranks reach them, and a written plan is read back. */
static void test_written(void)
{
    static const char text[] =
        "one: {rank: 3, threads: 7, numa: [0, 2], layers: [model.layers.0, model.layers.6-7]}\n"
        "two: {host: g, kv_memory: 1.5G, cpus: ['0-3,5', 8191], device: cpu, layers: [model.layers.2-3]}\n"
        "root: {rank: 0, kv_memory: 33%, memory: 80%, device: auto}\n"
        "four: {host: g, device: cuda, gpu: 3, layers: [model.layers.5]}\n";
    const char *const hosts[] = {"h", "g", "g", "h"};
    cake_topology one;
    cake_yaml_fault fault;
    CU_ASSERT_FATAL(!cake_topology_parse(text, strlen(text), hosts, 4, LAYERS, &one, &fault));
    CU_ASSERT(one.rank[3].threads == 7 && one.rank[0].kv_memory == -33 && one.rank[1].kv_memory == 3LL << 29);
    CU_ASSERT(one.rank[2].threads == 0 && one.rank[2].kv_memory == 0 && !one.ports && one.n_replica == 1);
    CU_ASSERT(!strcmp(one.rank[1].worker, "two") && one.rank[1].at.line == 2 && one.rank[1].at.column == 1);
    CU_ASSERT(one.rank[0].memory == -80 && one.rank[0].memory_at.line == 3 && one.rank[2].has_gpu);
    CU_ASSERT(one.rank[2].gpu == 3 && one.rank[2].device == CAKE_DEVICE_CUDA &&
              one.rank[1].device == CAKE_DEVICE_CPU);
    CU_ASSERT(one.rank[1].where == CAKE_WHERE_CPUS && cake_cpuset_count(&one.rank[1].set) == 6 &&
              cake_cpuset_has(&one.rank[1].set, 8191) && !cake_cpuset_has(&one.rank[1].set, 4));
    CU_ASSERT(one.rank[3].where == CAKE_WHERE_DOMAINS && cake_cpuset_count(&one.rank[3].set) == 2);
    write_again(&one, hosts, LAYERS);
    cake_topology_free(&one);
}

/* A file that is made up, and what it says. */
typedef struct made {
    unsigned seed;
    int n_replica, size, owner[MOST_RANKS][LAYERS]; /* of each replica, counted in it */
    cake_topology_rank rank[MOST_RANKS];
    bool by_host;
    cake_buf text;
} made;

static int draw(made *m, int n)
{
    return rand_r(&m->seed) % n;
}

static void shuffle(made *m, int *number, int n)
{
    for (int i = 0; i < n; i++)
        number[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = draw(m, i + 1), kept = number[i];
        number[i] = number[j];
        number[j] = kept;
    }
}

/* Ranges and single numbers, in a text or a list, that go up. */
static void make_set(made *m, cake_topology_rank *rank)
{
    bool list = draw(m, 2);
    int at = draw(m, 70);
    rank->where = draw(m, 2) ? CAKE_WHERE_CPUS : CAKE_WHERE_DOMAINS;
    cake_buf_addf(&m->text, "  %s: %s", rank->where == CAKE_WHERE_CPUS ? "cpus" : "numa", list ? "[" : "'");
    for (int i = 0, n = 1 + draw(m, 4); i < n; i++) {
        int last = at + draw(m, 3);
        cake_buf_addf(&m->text, list ? "%s'%d-%d'" : "%s%d-%d", i ? "," : "", at, last);
        for (; at <= last; at++)
            rank->set.bit[at / 64] |= (uint64_t)1 << at % 64;
        at += 1 + draw(m, 100);
    }
    cake_buf_addf(&m->text, "%s\n", list ? "]" : "'");
}

static void make_said(made *m, cake_topology_rank *rank)
{
    if (draw(m, 2))
        make_set(m, rank);
    if (!draw(m, 3))
        cake_buf_addf(&m->text, "  threads: %d\n", rank->threads = 1 + draw(m, 4096));
    if (!draw(m, 3)) {
        rank->memory = (int64_t)(1 + draw(m, 999)) << 30;
        cake_buf_addf(&m->text, "  memory: %lldG\n", (long long)(rank->memory >> 30));
    }
    if (!draw(m, 3))
        cake_buf_addf(&m->text, "  kv_memory: %d%%\n", -(int)(rank->kv_memory = -1 - draw(m, 100)));
    if (!draw(m, 4)) {
        rank->device = draw(m, 2) ? CAKE_DEVICE_CUDA : CAKE_DEVICE_CPU;
        cake_buf_addf(&m->text, "  device: %s\n", rank->device == CAKE_DEVICE_CUDA ? "cuda" : "cpu");
    }
    if (rank->device != CAKE_DEVICE_CPU && !draw(m, 4)) {
        rank->has_gpu = true;
        cake_buf_addf(&m->text, "  gpu: %d\n", rank->gpu = draw(m, 64));
    }
}

/* The layers of a rank, one by one or in ranges, in any order. */
static void make_layers(made *m, int replica, int own)
{
    int order[LAYERS];
    const char *before = "  layers:\n";
    shuffle(m, order, LAYERS);
    for (int i = 0; i < LAYERS; i++)
        if (m->owner[replica][order[i]] == own) {
            cake_buf_addf(&m->text, "%s  - model.layers.%d\n", before, order[i]);
            before = "";
        }
}

static void make_worker(made *m, int r)
{
    int replica = r / m->size, own = r % m->size;
    if (r == 0 && draw(m, 2))
        return;
    cake_buf_addf(&m->text, "worker-%d:\n", r);
    cake_buf_addf(&m->text, m->by_host ? "  host: n%d.cluster:10128\n" : "  rank: %d\n", r);
    if (m->n_replica > 1 && (replica || draw(m, 2)))
        cake_buf_addf(&m->text, "  replica: %d\n", replica);
    make_said(m, &m->rank[r]);
    if (own || m->by_host || draw(m, 2))
        make_layers(m, replica, own);
}

static void make_file(made *m, unsigned seed)
{
    int order[MOST_RANKS], layers[LAYERS], left[LAYERS];
    *m = (made){.seed = seed};
    m->n_replica = 1 + draw(m, 3);
    m->size = 1 + draw(m, MOST_RANKS / m->n_replica);
    m->by_host = draw(m, 2);
    for (int i = 0; i < m->n_replica; i++) {
        shuffle(m, layers, LAYERS);
        shuffle(m, left, LAYERS);
        for (int k = 0; k < LAYERS; k++) /* one for each rank, the rest as it comes */
            m->owner[i][layers[k]] = k < m->size ? k : left[k] % m->size;
    }
    shuffle(m, order, m->n_replica * m->size);
    for (int k = 0; k < m->n_replica * m->size; k++)
        make_worker(m, order[k]);
    if (!m->text.len)
        cake_buf_adds(&m->text, "{}");
}

static void check_made(const made *m, const cake_topology *t)
{
    CU_ASSERT_FATAL(t->n_replica == m->n_replica && t->n_rank == m->n_replica * m->size);
    bool same = true;
    for (int i = 0; i < t->n_replica; i++)
        for (int h = 0; h < t->plan[i].n_hop; h++)
            for (int k = 0; k < t->plan[i].hop[h].count; k++)
                same = same && m->owner[i][t->plan[i].hop[h].first + k] == t->plan[i].hop[h].rank;
    for (int r = 0; r < t->n_rank; r++)
        same = same && same_rank(&t->rank[r], &m->rank[r]);
    CU_ASSERT(same);
    if (!same)
        printf("%s", m->text.data);
}

static int lines_of(const char *text, size_t len)
{
    int n = 1;
    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    return n;
}

/* Appends a wrong line after the last worker: the fault is there, or earlier if the file was wrong
 * already. */
static void break_file(made *m, const char *const *hosts)
{
    static const char *const bad[] = {
        "cpus: 3-1",   "numa: x",     "cpu: 0",          "memory: 0",
        "replica: -1", "rank: 1.5",   "threads: 99999",  "layers: []",
        "gpu: 64",     "device: tpu", "layers: [m.9]",   "host: 'a b'",
        "cpus: 9,9",   "numa: 8192",  "kv_memory: 200%", "layers: [model.layers.8]"};
    static const char wild[] = "\n\t :-,'\"[]{}#&*!|>%@`09aZ\xC3\xFF";
    cake_topology t;
    cake_yaml_fault fault = {.message = ""};
    size_t len = m->text.len;
    int n_rank = m->n_replica * m->size, lines = lines_of(m->text.data, len);
    if (m->text.data[0] == '{')
        return;
    cake_buf_addf(&m->text, "  %s\n", bad[draw(m, sizeof bad / sizeof *bad)]);
    CU_ASSERT_FATAL(cake_topology_parse(m->text.data, m->text.len, hosts, n_rank, LAYERS, &t, &fault) != 0);
    CU_ASSERT(fault.at.line == lines && fault.at.column >= 3 && fault.message[0]);
    for (int i = 0, n = 1 + draw(m, 4); i < n; i++) /* and anything at all */
        m->text.data[draw(m, (int)len)] = wild[draw(m, sizeof wild - 1)];
    if (!cake_topology_parse(m->text.data, len, hosts, n_rank, LAYERS, &t, &fault)) {
        cake_topology_free(&t);
        return;
    }
    CU_ASSERT(fault.at.line >= 1 && fault.at.line <= lines_of(m->text.data, len) + 1 &&
              fault.at.column >= 1 && fault.message[0]);
}

static void test_random(void)
{
    static const char *const hosts[MOST_RANKS] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"};
    for (unsigned round = 0; round < 4000; round++) {
        made m;
        cake_topology t;
        cake_yaml_fault fault = {.message = ""};
        make_file(&m, round);
        cake_err err =
            cake_topology_parse(m.text.data, m.text.len, hosts, m.n_replica * m.size, LAYERS, &t, &fault);
        if (err)
            printf("%s%d:%d: %s\n", m.text.data, fault.at.line, fault.at.column, fault.message);
        CU_ASSERT_FATAL(!err);
        check_made(&m, &t);
        write_again(&t, hosts, LAYERS);
        cake_topology_free(&t);
        break_file(&m, hosts);
        cake_buf_free(&m.text);
    }
}

/* The files in topologies/, each with the ranks and hosts that it names, and the layers that it promises. */
static void test_examples(void)
{
    static const char *const names[] = {"cake",   "gaps",  "hosts",   "interleaved",
                                        "places", "ranks", "replicas"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64], hosts[256] = "", layers[256] = "";
        int n_rank = 0;
        cake_buf text = {0};
        snprintf(path, sizeof path, "../topologies/%s.yml", names[i]);
        CU_ASSERT_FATAL(!cake_file_read("placement", suite_path(path), false, CAKE_YAML_BYTES, &text));
        const char *said = strstr(text.data, "# try: ");
        CU_ASSERT_FATAL(said && sscanf(said, "# try: %d ranks on %255[^,], layers %255[^\n]", &n_rank, hosts,
                                       layers) == 3);
        for (char *c = hosts; *c; c++)
            *c = *c == ' ' ? ',' : *c;
        const char *got = parse(text.data, text.len, hosts, LAYERS);
        CU_ASSERT_STRING_EQUAL(got, layers);
        cake_buf_free(&text);
    }
}

static void test_size(void)
{
    static const char *const bad[] = {"",    "M",    "-1",       "0",   "0.5",  "1Q",  "512MB", "101%", "nan",
                                      "inf", "1e30", "9999999T", "1 G", "0x10", "1e9", "+5K",   ".5G"};
    int64_t size = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(!cake_size_read(bad[i], &size) && size == 7);
    CU_ASSERT(cake_size_read("512M", &size) && size == 512 << 20);
    CU_ASSERT(cake_size_read("1.5k", &size) && size == 1536);
    CU_ASSERT(cake_size_read("16G", &size) && size == 16LL << 30);
    CU_ASSERT(cake_size_read("2T", &size) && size == 2LL << 40);
    CU_ASSERT(cake_size_read("123", &size) && size == 123);
    CU_ASSERT(cake_size_read("80%", &size) && size == -80);
}

int main(void)
{
    static const suite_test tests[] = {
        {"a file of cake", test_cake},
        {"what is understood", test_read},
        {"what is refused, and where", test_refused},
        {"... of places and replicas", test_refused_places},
        {"what would take much memory or time", test_bombs},
        {"a plan that is written is read again", test_written},
        {"files with places and replicas, sound and broken", test_random},
        {"the examples", test_examples},
        {"sizes", test_size},
    };
    return SUITE_MAIN("topology", tests);
}
