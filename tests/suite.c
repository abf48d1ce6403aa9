/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char tmp[64];

static const char *source_root(void)
{
    const char *root = getenv("top_srcdir");
    return root ? root : ".";
}

bool suite_all(void)
{
    return getenv("CAKE_ALL");
}

const char *suite_path(const char *name)
{
    static char path[4096];
    bool from_root = !strncmp(name, "jobs/", 5);
    snprintf(path, sizeof path, "%s/%s%s", source_root(), from_root ? "" : "tests/", name);
    return path;
}

static void remove_tmp(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", tmp);
    if (system(command))
        fprintf(stderr, "%s is left behind\n", tmp);
}

void suite_launches(void)
{
    setenv("OMPI_MCA_orte_tmpdir_base", suite_tmp(), 1);
    setenv("PRTE_MCA_prte_tmpdir_base", suite_tmp(), 1);
    setenv("HWLOC_COMPONENTS", "-pci,-linuxio", 0); /* this and the plug-ins as tests/shell.sh */
    setenv("HWLOC_PLUGINS_PATH", suite_path("."), 0);
}

const char *suite_tmp(void)
{
    if (!tmp[0]) {
        strcpy(tmp, "/tmp/cake-test-XXXXXX");
        if (!mkdtemp(tmp)) {
            perror("mkdtemp");
            exit(1);
        }
        atexit(remove_tmp);
    }
    return tmp;
}

const char *suite_asset(const char *name)
{
    static char path[4096];
    const char *assets = getenv("CAKE_ASSETS");
    if (assets)
        snprintf(path, sizeof path, "%s/%s", assets, name);
    else
        snprintf(path, sizeof path, "%s/../shared/assets/%s", source_root(), name);
    if (!access(path, R_OK))
        return path;
    printf("  SKIPPED: %s is not here (CAKE_ASSETS)\n", path);
    return NULL;
}

int suite_main(const char *noun, const suite_test *tests, int n)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite(noun, NULL, NULL);
    for (int i = 0; i < n; i++)
        if (!CU_add_test(suite, tests[i].name, tests[i].run))
            return 1;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    int failed = CU_get_number_of_tests_failed() > 0 || CU_get_number_of_tests_run() != (unsigned)n;
    CU_cleanup_registry();
    return failed;
}
