#include "tools/infer/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/folder.h"
#include "base/json.h"
#include "greta_build.h"

enum rc dump_open(struct dump *d, const char *folder, uint32_t vocab, struct err *e) {
    char path[500];
    *d = (struct dump){ 0 };
    if (strlen(folder) >= sizeof d->folder)
        return err_set(e, RC_USAGE, "--dump-logits: the folder's name is too long");
    strcpy(d->folder, folder);
    if (!folder_make(folder))
        return err_set(e, RC_IO, "%s: cannot be made: %s", folder, strerror(errno));
    snprintf(path, sizeof path, "%s/logits.npy", folder);
    enum rc rc = npy_open(&d->logits, path, NPY_F32, vocab, e);
    snprintf(path, sizeof path, "%s/tokens.npy", folder);
    rc = rc ? rc : npy_open(&d->tokens, path, NPY_I32, 0, e);
    d->open = rc == RC_OK;
    return rc;
}

enum rc dump_row(struct dump *d, uint32_t position, int32_t token, const float *logits,
                 struct err *e) {
    if (!d->any)
        d->first = position;
    d->any = true;
    enum rc rc = npy_add(&d->logits, logits, 1, e);
    return rc ? rc : npy_add(&d->tokens, &token, 1, e);
}

static enum rc write_metadata(const struct dump *d, const engine *g, const char *model,
                              const struct engine_result *result, struct err *e) {
    char path[500];
    snprintf(path, sizeof path, "%s/metadata.json", d->folder);
    struct output out;
    enum rc rc = output_open(&out, path, e);
    if (rc)
        return rc;
    const struct config *c = engine_config(g);
    struct json j = json_begin(out.file, 2);
    json_object_open(&j, NULL);
    json_string(&j, "model", model ? model : "embedded demo model");
    json_string(&j, "architecture", config_arch_name(c->arch));
    json_u64(&j, "vocab", c->vocab);
    json_u64(&j, "positions", d->logits.rows);
    json_u64(&j, "first_position", d->first);
    json_string(&j, "rows", "logits[i] is what the model predicts after tokens[i]");
    json_u64(&j, "generated", result->generated);
    json_array_open(&j, "sequence");
    for (size_t i = 0; i < result->tokens.count; i++)
        json_i64(&j, NULL, result->tokens.ids[i]);
    json_array_close(&j);
    json_string(&j, "greta", GRETA_VERSION);
    json_string(&j, "commit", GRETA_BUILD_COMMIT);
    json_object_close(&j);
    return output_close(&out, json_end(&j, e), e);
}

enum rc dump_close(struct dump *d, const engine *g, const char *model,
                   const struct engine_result *result, struct err *e) {
    enum rc rc = npy_close(&d->logits, RC_OK, e);
    rc = npy_close(&d->tokens, rc, e);
    if (d->open && !rc)
        rc = write_metadata(d, g, model, result, e);
    d->open = false;
    return rc;
}
