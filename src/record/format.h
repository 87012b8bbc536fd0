/* format.h - events as text and as JSON, by the labels of event.def.
 *
 * Text is one line per event, `key=value`, in a fixed order; strings that are not plain words are
 * quoted and escaped, so that a line stays a line whatever a recording holds. Errors of the stream
 * stay in it. Any number of threads, each with its own stream. */
#ifndef RECORD_FORMAT_H
#define RECORD_FORMAT_H

#include <stdio.h>

#include "base/json.h"
#include "record/reader.h"

/* "12 0.000123456 t1 s1 copy D2H dst=0x… src=0x… bytes=4096 tensor=logits call=hipMemcpy
 * status=hipSuccess took=1234 site=…", without the newline. Times are seconds from the start of the
 * recording, took nanoseconds. */
void format_event(FILE *out, const reader *r, const struct reader_event *e);

/* The same as an object, with the labels as keys. Addresses and handles are strings "0x…". */
void format_event_json(struct json *j, const reader *r, const struct reader_event *e);

/* A name as it is shown with an event. The file holds it once, but it is shown with every event
 * that has it, so a very long one is cut; room then holds the result. */
enum { FORMAT_NAME = 4096 };
const char *format_name(const char *text, char room[static FORMAT_NAME]);

/* A frame of a call stack, one line for each function that was inlined there: "function at
 * file.c:12 module+0x1234". `before` stands before each. */
void format_frame(FILE *out, const reader *r, const struct site_frame *f, const char *before);

/* The whole stack of a site as an array, innermost first. */
void format_stack_json(struct json *j, const reader *r, uint32_t site);

/* Text as it is if it is a plain word, else quoted, with \" \\ \n \t and \xNN. */
void format_text(FILE *out, const char *text);

/* The Markdown tables of event kinds, details, extras and definitions, for docs/recording.md. */
void format_tables(FILE *out);

#endif
