#include "tools/audit/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

struct process {
    pid_t pid, parent, group;
    bool in_tree;
};

struct list {
    struct process *at;
    size_t count, room;
};

void tree_adopt(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* False if there is no such process, or it has ended and waits to be reaped. */
static bool read_process(struct process *out, pid_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    /* pid (name) state ppid pgrp …; the name may hold anything */
    const char *p = strrchr(text, ')');
    char *rest;
    if (!p || strlen(p) < 4 || p[2] == 'Z' || p[2] == 'X')
        return false;
    *out = (struct process){ .pid = pid, .parent = (pid_t)strtol(p + 3, &rest, 10) };
    out->group = (pid_t)strtol(rest, NULL, 10);
    return true;
}

static void read_all(struct list *l) {
    DIR *d = opendir("/proc");
    const struct dirent *entry;
    while (d && (entry = readdir(d))) {
        struct process p;
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || !read_process(&p, (pid_t)pid))
            continue;
        struct process *at = grow_array(l->at, &l->room, l->count, sizeof *at);
        if (!at)
            break;
        l->at = at;
        l->at[l->count++] = p;
    }
    if (d)
        closedir(d);
}

static bool is_in_tree(const struct list *l, pid_t root, pid_t pid) {
    if (pid == root)
        return true;
    for (size_t i = 0; i < l->count; i++)
        if (l->at[i].pid == pid)
            return l->at[i].in_tree;
    return false;
}

/* Marks the descendants of root. A parent may come after its child in the list, so this takes as
 * many passes as the tree is deep. */
static void mark(struct list *l, pid_t root) {
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < l->count; i++) {
            struct process *p = &l->at[i];
            if (!p->in_tree && p->pid != root && is_in_tree(l, root, p->parent))
                more = p->in_tree = true;
        }
    }
}

/* True if it was still there. */
static bool send_to(const struct process *p, int number) {
    struct process now;
    int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (fd < 0 && errno != ENOSYS)
        return false;
    /* Its parent may have changed because the old one has just ended; its group hardly ever does.
     */
    bool same = read_process(&now, p->pid) && (now.parent == p->parent || now.group == p->group);
    if (same && number)
        same = fd < 0 ? kill(p->pid, number) == 0
                      : syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0;
    if (fd >= 0)
        close(fd);
    return same;
}

unsigned tree_signal(pid_t root, bool with_root, pid_t not_group, int number) {
    struct list l = { 0 };
    unsigned count = 0;
    read_all(&l);
    mark(&l, root);
    for (size_t i = 0; i < l.count; i++) {
        const struct process *p = &l.at[i];
        bool wanted = p->pid == root ? with_root : p->in_tree;
        if (wanted && (!not_group || p->group != not_group))
            count += send_to(p, number);
    }
    free(l.at);
    return count;
}

void tree_kill(pid_t root) {
    enum { TRIES = 500, PAUSE_NS = 10000000 }; /* a process stuck in the kernel cannot be killed */
    for (int i = 0; i < TRIES && tree_signal(root, false, 0, SIGKILL); i++) {
        struct timespec pause = { .tv_nsec = PAUSE_NS };
        nanosleep(&pause, NULL);
        if (root == getpid())
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
    }
}
