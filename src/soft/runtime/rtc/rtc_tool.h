/* rtc_tool.h - the installed clang, as hiprtc's compiler and linker.
 *
 * A job is a folder of its own for temporary files: sources are put into it, a compiler is run in
 * it, and what it wrote is read back. Not thread-safe; different jobs may run in different threads.
 */
#ifndef SOFT_RUNTIME_RTC_TOOL_H
#define SOFT_RUNTIME_RTC_TOOL_H

#include <stdbool.h>
#include <stddef.h>

struct rtc_job;

/* NULL without memory or a place for temporary files. */
struct rtc_job *rtc_job_open(void);
void rtc_job_close(struct rtc_job **job); /* removes the files */

/* A file of the job; folders in its name are made, ".." is refused. */
bool rtc_job_write(struct rtc_job *job, const char *name, const void *bytes, size_t size);
/* The file as a new string of *size bytes and a zero, or NULL. */
char *rtc_job_read(struct rtc_job *job, const char *name, size_t *size);

/* Compiles for the GPU that the device says it is. The first compiler that is installed is run with
 * what it needs to find ROCm's device libraries, and arguments (NULL at the end). False if it
 * failed, or if there is none. *log is a new string with what it said; NULL without memory. */
bool rtc_job_run(struct rtc_job *job, const char *const arguments[], char **log);

#endif
