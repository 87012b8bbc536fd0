/* selftest.c - greta_infer --self-test: every kernel of the device against the CPU, one line each.
 */
#include <stdio.h>

#include "infer/device.h"
#include "kernels/selftest.h"
#include "tools/infer/app.h"

static void print_line(const struct selftest_line *l, void *user) {
    (void)user;
    if (l->why)
        printf("FAIL  %-16s %s\n", l->kernel, l->why);
    else
        printf("%s  %-16s %2u %-6s at most %.3g of the difference that is allowed\n",
               l->distance <= 1 ? "ok  " : "FAIL", l->kernel, l->cases,
               l->cases == 1 ? "case," : "cases,", l->distance);
}

enum rc app_self_test(const struct app *a, bool *opened, struct err *e) {
    struct device d;
    char text[200];
    enum rc rc = device_open(&d, a->options.device, a->options.exec, a->options.record, e);
    *opened = rc == RC_OK;
    if (rc)
        return rc;
    device_describe(&d, text, sizeof text);
    printf("%s\n", text);
    rc = selftest_run(d.kernels, d.hip, print_line, NULL, e);
    device_close(&d);
    return rc;
}
