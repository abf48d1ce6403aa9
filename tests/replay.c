/* SPDX-License-Identifier: Apache-2.0
 *
 * The main function of a fuzz target in `make check`: every input of its kept corpus, once. What a fuzzer
 * found stays found, also where no fuzzer is.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        perror(path);
        return 1;
    }
    size_t size = (size_t)ftell(file);
    uint8_t *data =
        malloc(size ? size : 1); /* exactly as long as the input: sanitizers see one byte too many */
    rewind(file);
    int bad = !data || fread(data, 1, size, file) != size;
    fclose(file);
    if (!bad)
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    return bad;
}

int main(int argc, char **argv)
{
    const char *root = getenv("top_srcdir");
    const char *name = argc > 0 && strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : "";
    char dir[2048], path[4096];
    snprintf(dir, sizeof dir, "%s/tests/fuzz/corpus/%s", root ? root : ".", name);
    DIR *corpus = opendir(dir);
    if (!corpus) {
        perror(dir);
        return 1;
    }
    int n = 0, bad = 0;
    for (struct dirent *entry; (entry = readdir(corpus));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        bad += replay(path);
        n++;
    }
    closedir(corpus);
    printf("%s: %d inputs, %d unreadable\n", name, n, bad);
    return bad || n == 0;
}
