# What the jobs of these tests are made of. They run in the folder where the ledger is.

# One line in the ledger: what happened, in which attempt, and who says so.
say() {
    echo "$1 $QUEUECTL_JOB_ID $QUEUECTL_ATTEMPT ${2:-$$}" >> ledger
}

first() {
    [ "$QUEUECTL_ATTEMPT" = 1 ]
}

# Lives until it is killed, and shows that it lives.
hang() {
    while :; do
        say TICK
        sleep 0.05
    done
}

# Works until this file is there, or long enough for the test to have failed.
until_there() {
    for _ in $(seq 2000); do
        [ -e "$1" ] && return
        say TICK
        sleep 0.02
    done
}

# escape NAME COMMAND...: starts something in the background, by way of this command, that hangs under this name.
escape() {
    name=$1
    shift
    "$@" sh daemon.sh "$QUEUECTL_JOB_ID" "$QUEUECTL_ATTEMPT" "$name" &
}
