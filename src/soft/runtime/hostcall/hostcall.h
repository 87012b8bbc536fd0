/* hostcall.h - what kernels ask of the host while they run: printf, memory, function calls.
 *
 * The protocol is that of AMD's device libraries. A wave takes a packet from the buffer's free
 * stack, writes up to eight 64-bit words per lane, pushes the packet on the ready stack, rings the
 * doorbell (a signal whose mailbox makes the wave send an interrupt) and waits until the packet's
 * ready bit is clear. The interrupt is served on the thread that runs the wave, so that output
 * comes in the order in which waves asked for it, and before the launch ends.
 *
 *   hostcall.c          the buffer, its packets, the services
 *   hostcall_message.c  printf messages, which come in several packets
 *   hostcall_format.c   a message's text
 *
 * Thread-safe, except that messages belong to the thread that serves packets. */
#ifndef SOFT_RUNTIME_HOSTCALL_H
#define SOFT_RUNTIME_HOSTCALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Device addresses, made at first use and kept; 0 if the device has no memory left. The heap is the
 * device libraries' own state of malloc, all zeros at first. */
uint64_t soft_hostcall_buffer(int device);
uint64_t soft_hostcall_heap(int device);

/* Serves every packet that is ready, on any device. */
void soft_hostcall_serve(void);

/* ---- between the parts ---- */

enum { HOSTCALL_WORDS = 8 }; /* of a lane in a packet */

/* One lane's part of a printf message: begins one, adds to it or ends it, as words[0] says.
 * Answers in words[0]. */
void hostcall_message(uint64_t words[HOSTCALL_WORDS]);

/* Prints a message: format string and arguments, each padded to words, strings in place. The word
 * after the last must be 0. Returns the characters printed, or a negative number. */
int hostcall_format(FILE *to, const uint64_t *words, size_t count);

#endif
