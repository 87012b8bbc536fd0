/* Every line of gfx9.def has a model in a test or a line in isa_unmodelled.def that says why not.
 */
#include "unit/isa_modelled.h"
#include "unit/test.h"

static const enum isa_op listed[] = {
/* vector instructions, matrices */
#define MODEL(name, ...) ISA_OP_##name,
#include "isa_model.def"
#undef MODEL
#define MATRIX(name, ...) ISA_OP_##name,
#define SPARSE(name, ...) ISA_OP_##name,
#include "isa/matrix.def"
};

static const struct {
    enum isa_op op;
    const char *reason;
} unmodelled[] = {
#define UNMODELLED(name, reason) { ISA_OP_##name, reason },
#include "isa_unmodelled.def"
#undef UNMODELLED
};

/* Lines whose tests fail without a model: scalar instructions (test_isa_salu), comparisons
 * (test_isa_compare), and those of isa_modelled.h. */
static bool is_modelled(enum isa_op op) {
    const struct isa_info *info = &isa_info[op];
    for (size_t n = 0; n < sizeof listed / sizeof *listed; n++)
        if (listed[n] == op)
            return true;
    return (info->encoding >= ISA_ENC_SOP2 && info->encoding <= ISA_ENC_SOPC) ||
           info->encoding == ISA_ENC_VOPC || isa_is_plain_move(info) || isa_is_lds_move(info) ||
           isa_is_scalar_move(info) || isa_is_atomic(info);
}

static void every_line_has_a_model_or_a_reason(void **state) {
    (void)state;
    unsigned modelled = 0, missing = 0;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++) {
        const char *reason = NULL;
        for (size_t n = 0; n < sizeof unmodelled / sizeof *unmodelled; n++)
            if (unmodelled[n].op == op)
                reason = unmodelled[n].reason;
        bool model = is_modelled(op);
        modelled += model;
        if (model == (reason != NULL)) {
            print_error("%s: %s\n", isa_info[op].name,
                        model ? "has a model; take its line out of isa_unmodelled.def"
                              : "no test has a model of it");
            missing++;
        }
    }
    print_message("%u of %d instructions have a model\n", modelled, ISA_OP_COUNT - 1);
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_has_a_model_or_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
