# Building blocks for the jobs of these tests. They run in the folder of the ledger.

# Writes one line to the ledger: the event, the attempt, and the writing process.
say() {
    echo "$1 $QUEUECTL_JOB_ID $QUEUECTL_ATTEMPT ${2:-$$}" >> ledger
}

first() {
    [ "$QUEUECTL_ATTEMPT" = 1 ]
}

# Runs until it is killed, and writes TICK lines meanwhile.
hang() {
    while :; do
        say TICK
        sleep 0.05
    done
}

# Runs until this file exists, or until the test must have timed out.
until_there() {
    for _ in $(seq 2000); do
        [ -e "$1" ] && return
        say TICK
        sleep 0.02
    done
}

# escape NAME COMMAND...: starts a background process through this command that writes TICK lines under this name.
escape() {
    name=$1
    shift
    "$@" sh daemon.sh "$QUEUECTL_JOB_ID" "$QUEUECTL_ATTEMPT" "$name" &
}
