/* verdict_words.h - what must hold for the sentences of every verdict. */
#ifndef TESTS_SUPPORT_VERDICT_WORDS_H
#define TESTS_SUPPORT_VERDICT_WORDS_H

#include "verdict/verdict.h"

/* Fails the test if a sentence is missing in a language, if two languages state different numbers,
 * if a finding shows other bytes than its sentence names, or if a call that returned success is
 * said to have reported an error. */
void verdict_check_words(const verdict *v);

#endif
