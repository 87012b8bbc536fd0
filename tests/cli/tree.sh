#!/usr/bin/env bash
# A run that is ended, by its time limit or by a signal, leaves no process behind: children, their
# children, those that ignore signals, and daemons in sessions of their own.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
audit=$(audit_program)
cd "$TMPDIR" || exit 1

if ! has_preload; then
    skip "greta_audit run" "not in a build with clang's sanitizers"
    finish
fi

# The processes of a run write their numbers into a file each; `ready` is made when all are there.
cat >family <<'END'
#!/usr/bin/env bash
# family KIND - starts relatives and waits.
me=$PWD/pids
case $1 in
plain)
    sleep 1000 & echo $! >$me/child
    ;;
deaf) # neither SIGINT nor SIGTERM ends them
    (trap '' INT TERM; echo $BASHPID >$me/deaf; while :; do sleep 1000; done) &
    ;;
daemon) # its parent has ended, its session is another
    (setsid bash -c 'echo $$ >'"$me"'/daemon; trap "" HUP; while :; do sleep 1000; done' </dev/null >/dev/null 2>&1 &)
    ;;
deep)
    (setsid bash -c 'echo $$ >'"$me"'/first
        (setsid bash -c "echo \$\$ >'"$me"'/second; trap \"\" TERM INT; while :; do sleep 1000; done" &)
        sleep 1000' &)
    ;;
leaves) # and the program itself ends early
    (setsid bash -c 'echo $$ >'"$me"'/daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 &)
    until [ -s "$me/daemon" ]; do sleep 0.02; done
    exit 7
    ;;
esac
echo $$ >$me/self
[ "$1" != deaf ] || trap '' INT TERM
for f in $2; do until [ -s "$me/$f" ]; do sleep 0.02; done; done
touch ready
while :; do sleep 1000; done
END
chmod +x family

alive() { # PID - and not a zombie
    [ -e "/proc/$1/stat" ] && ! grep -q ') Z ' "/proc/$1/stat"
}

nobody_left() {
    local file pid left=0
    for file in pids/*; do
        pid=$(cat "$file")
        if alive "$pid"; then
            echo "$file ($pid) is still there"
            kill -9 "$pid"
            left=1
        fi
    done
    return $left
}

begin() { # KIND FILES OPTIONS… - starts a run and waits until its family is complete; sets pid
    local kind=$1 files=$2
    shift 2
    rm -rf pids ready out
    mkdir pids
    env --default-signal=INT,TERM "$audit" run --device soft --out out "$@" -- ./family "$kind" "$files" >stdout 2>stderr &
    pid=$!
}

until_ready() {
    until [ -e ready ]; do
        kill -0 $pid 2>/dev/null || { echo "it ended too early"; cat stderr; return 1; }
        sleep 0.02
    done
}

signalled() { # KIND FILES SIGNAL
    begin "$1" "$2" && until_ready && kill "-$3" $pid
    wait $pid
    [ $? -ge 128 ] || { echo "not ended by a signal"; return 1; }
    nobody_left
}

limited() { # KIND FILES
    begin "$1" "$2" --timeout 3
    wait $pid
    [ $? -ge 128 ] || { echo "not ended by a signal"; return 1; }
    grep -q 'took longer than 3 s' stderr && nobody_left
}

twice() { # a second signal does not wait for the grace to pass
    begin deaf "deaf self" && until_ready && kill -INT $pid && sleep 0.3 && kill -INT $pid && sleep 0.3 && kill -INT $pid
    wait $pid
    is 137 $? && nobody_left
}

# A program that ends by itself keeps what it started: that may be a service.
ends_by_itself() {
    begin leaves daemon
    wait $pid
    is 7 $? && alive "$(cat pids/daemon)" && kill "$(cat pids/daemon)"
}

# Ctrl-C at a terminal reaches the whole foreground group, but not the daemon.
at_a_terminal() {
    rm -rf pids ready out
    mkdir pids
    command -v python3 >/dev/null || { echo "no python3"; return 1; }
    python3 - "$audit" <<'END' || return 1
import os, pty, sys, time, signal
pid, fd = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.argv[1], [sys.argv[1], "run", "--device", "soft", "--out", "out", "--", "./family", "daemon", "daemon self"])
while not os.path.exists("ready"):
    time.sleep(0.02)
os.write(fd, b"\x03")
try:
    while os.read(fd, 4096):
        pass
except OSError:
    pass
_, status = os.waitpid(pid, 0)
print("status", status)
sys.exit(0 if os.WEXITSTATUS(status) >= 128 else 1)
END
    nobody_left
}

check "SIGINT ends a program and its child" signalled plain "child self" INT
check "SIGTERM ends a program and its child" signalled plain "child self" TERM
check "SIGINT ends a daemon, too" signalled daemon "daemon self" INT
check "SIGTERM ends the daemon of a daemon" signalled deep "first second self" TERM
check "SIGINT ends what ignores it" signalled deaf "deaf self" INT
check "asking again asks harder" twice
check "the time limit ends a daemon" limited daemon "daemon self"
check "the time limit ends what ignores it" limited deaf "deaf self"
check "a program that ends leaves its daemon alone" ends_by_itself
check "Ctrl-C at a terminal ends all" at_a_terminal
finish
