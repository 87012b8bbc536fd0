/* fuzz_report - all reports on damaged recordings. */
#include "fuzz_recording.h"

#include "report/report.h"
#include "report/report_html.h"
#include "report/report_md.h"
#include "report/report_perfetto.h"
#include "verdict/verdict.h"

static void report(void) {
    reader *r;
    verdict *v = NULL;
    if (reader_open(&r, path, NULL) != RC_OK)
        return;
    if (verdict_open(&v, r, NULL, NULL) == RC_OK) {
        (void)!report_text(sink, v, NULL, NULL);
        (void)!report_json(sink, v, NULL);
        (void)!report_md(sink, v, r, NULL, NULL);
        (void)!report_html(sink, v, r, NULL, NULL);
        (void)!report_perfetto(sink, v, r, NULL);
    }
    verdict_close(&v);
    reader_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_with(data, size, report);
}
